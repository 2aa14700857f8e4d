//! The method of conjugate gradients (Hestenes and Stiefel, 1952) as a bulk-synchronous program:
//! each rank has some rows of the matrix, and sends its neighbours, before each product, the
//! factors that they need. The stages are those of NEWT (figures 4.5 and 4.6), whose slips are
//! mended: p·q is a sum over all ranks before it divides, and so is the norm.
//!
//! [`matrix`] has what is computed with.

pub mod matrix;

use crate::programs::stencil::plate::digest;
use crate::supersteps::Skeleton;
use crate::{Job, SuperstepFlags, name_of, run_program};
use matrix::{Flags, Problem, Rows, dot};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, op};
use ultramarine::{Error, Result};

/// Solve A·x = b, where b = A·1, by conjugate gradients.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    supersteps: SuperstepFlags,
}

/// What a rank does in a superstep.
#[derive(Clone, Serialize, Deserialize, Default, Debug)]
enum Stage {
    /// It sends what others need of p, and of x at the end.
    #[default]
    Start,
    /// It multiplies: q = A·p.
    Multiply,
    /// It goes along p: x and r.
    Go,
    /// It turns: p.
    Turn,
    /// It computes the residual from x.
    Check,
    /// All know it.
    End,
}

/// How many iterations there were, the residual, and the rank's part of x; or p·A·p, if the matrix
/// is not positive definite.
type Solved = std::result::Result<(u64, f64, Vec<f64>), f64>;

/// ‖b − A·x‖ / ‖b‖, from the squares.
fn residual(left: f64, norm: f64) -> f64 {
    if norm > 0.0 { (left / norm).sqrt() } else { left.sqrt() }
}

/// A rank's rows, and its part of each vector.
#[derive(Serialize, Deserialize)]
struct Solver {
    tolerance: f64,
    /// How many there are at most, and how many there were.
    limit: u64,
    iterations: u64,
    x: Vec<f64>,
    r: Vec<f64>,
    /// With what others have sent of theirs behind it.
    p: Vec<f64>,
    /// ‖r‖², and ‖b‖².
    rho: f64,
    norm: f64,
    #[serde(skip)]
    rows: Rows,
    #[serde(skip)]
    q: Vec<f64>,
}

impl Solver {
    /// Sends what others need of `p`.
    fn send(&self, comm: &mut Comm<Self>) {
        for (rank, _, places) in &self.rows.neighbours {
            let factors = places.iter().map(|place| self.p[*place as usize]);
            comm.send(*rank, factors.collect());
        }
    }

    /// Multiplies with `p`, of which others have sent theirs.
    fn multiply(&mut self, comm: &mut Comm<Self>) {
        for (rank, places, _) in &self.rows.neighbours {
            let factors = comm.receive(*rank).expect("it was sent");
            self.p[places.clone()].copy_from_slice(&factors);
        }
        self.rows.multiply(&self.p, &mut self.q);
    }
}

impl Program for Solver {
    type Argument = Problem;
    type Stage = Stage;
    type Message = Vec<f64>;
    type Output = Solved;

    fn new(start: &Start, problem: &Problem) -> Self {
        let rows = Rows::of(&problem.matrix, start.rank, start.ranks);
        let r = rows.sums.clone();
        let mut p = r.clone();
        p.resize(rows.width(), 0.0);
        let (x, q) = (vec![0.0; r.len()], vec![0.0; r.len()]);
        let Problem { tolerance, iterations: limit, .. } = *problem;
        Solver { tolerance, limit, iterations: 0, x, r, p, rho: 0.0, norm: 0.0, rows, q }
    }

    fn restored(&mut self, start: &Start, problem: &Problem) {
        self.rows = Rows::of(&problem.matrix, start.rank, start.ranks);
        self.q = vec![0.0; self.x.len()];
        // If it is to go next, it has multiplied.
        self.rows.multiply(&self.p, &mut self.q);
    }

    fn step(&mut self, stage: Stage, comm: &mut Comm<Self>) -> Next<Self> {
        let own = self.x.len();
        match stage {
            Stage::Start => {
                comm.all_reduce(&dot(&self.r, &self.r), op::sum::<f64>);
                self.send(comm);
                Next::Stage(Stage::Multiply)
            }
            Stage::Multiply => {
                if self.iterations == 0 {
                    self.rho = comm.result().expect("all took part");
                    self.norm = self.rho;
                }
                self.multiply(comm);
                comm.all_reduce(&dot(&self.p[..own], &self.q), op::sum::<f64>);
                Next::Stage(Stage::Go)
            }
            Stage::Go => {
                let curvature: f64 = comm.result().expect("all took part");
                if self.norm == 0.0 {
                    // So are p and x, which is right.
                    self.send(comm);
                    return Next::Stage(Stage::Check);
                }
                if curvature.is_nan() || curvature <= 0.0 {
                    return Next::End(Err(curvature));
                }
                let far = self.rho / curvature;
                for n in 0..own {
                    self.x[n] += far * self.p[n];
                    self.r[n] -= far * self.q[n];
                }
                self.iterations += 1;
                comm.all_reduce(&dot(&self.r, &self.r), op::sum::<f64>);
                Next::Stage(Stage::Turn)
            }
            Stage::Turn => {
                let rho: f64 = comm.result().expect("all took part");
                comm.note(format_args!("residual {:.1e}", (rho / self.norm).sqrt()));
                let is_near = rho.sqrt() <= self.tolerance * self.norm.sqrt();
                if is_near || self.iterations == self.limit {
                    self.p[..own].copy_from_slice(&self.x);
                    self.send(comm);
                    return Next::Stage(Stage::Check);
                }
                let beta = rho / std::mem::replace(&mut self.rho, rho);
                for n in 0..own {
                    self.p[n] = self.r[n] + beta * self.p[n];
                }
                self.send(comm);
                Next::Stage(Stage::Multiply)
            }
            Stage::Check => {
                self.multiply(comm);
                let left = self.rows.sums.iter().zip(&self.q).map(|(b, ax)| (b - ax).powi(2));
                comm.all_reduce(&left.sum::<f64>(), op::sum::<f64>);
                Next::Stage(Stage::End)
            }
            Stage::End => {
                let left: f64 = comm.result().expect("all took part");
                let residual = residual(left, self.norm);
                Next::End(Ok((self.iterations, residual, std::mem::take(&mut self.x))))
            }
        }
    }
}

/// The same by one loop, for the same number of ranks: sums are added up in another order.
fn sequential(problem: &Problem) -> Solved {
    let rows = Rows::of(&problem.matrix, 0, 1);
    let mut r = rows.sums.clone();
    let (mut x, mut p, mut q) = (vec![0.0; r.len()], r.clone(), r.clone());
    let norm = dot(&r, &r);
    let (mut rho, mut iterations) = (norm, 0);
    while norm > 0.0 && iterations < problem.iterations {
        rows.multiply(&p, &mut q);
        let curvature = dot(&p, &q);
        if curvature.is_nan() || curvature <= 0.0 {
            return Err(curvature);
        }
        let far = rho / curvature;
        for n in 0..x.len() {
            x[n] += far * p[n];
            r[n] -= far * q[n];
        }
        iterations += 1;
        let next = dot(&r, &r);
        if next.sqrt() <= problem.tolerance * norm.sqrt() {
            break;
        }
        let beta = next / std::mem::replace(&mut rho, next);
        for n in 0..x.len() {
            p[n] = r[n] + beta * p[n];
        }
    }
    rows.multiply(&x, &mut q);
    let left: f64 = rows.sums.iter().zip(&q).map(|(b, ax)| (b - ax).powi(2)).sum();
    Ok((iterations, residual(left, norm), x))
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("conjugate_gradient", conjugate_gradient)
}

async fn conjugate_gradient(job: Job, Arguments { flags, supersteps }: Arguments) -> Result<()> {
    let problem = flags.problem()?;
    let start = Instant::now();
    let parts = match supersteps.skeleton {
        Skeleton::Ranks => {
            let size = problem.matrix.size();
            supersteps.run::<Solver>(&job, problem, size).await?
        }
        Skeleton::Sequential => vec![sequential(&problem)],
    };
    let parts: std::result::Result<Vec<_>, f64> = parts.into_iter().collect();
    let parts = parts.map_err(|curvature| {
        Error::other(format!("the matrix is not positive definite: p·A·p is {curvature:.3e}"))
    })?;
    let (iterations, residual, _) = parts[0];
    let x: Vec<f64> = parts.into_iter().flat_map(|(.., x)| x).collect();
    let farthest = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    let result = digest(0, &x).cast_signed();
    let report = job.report(name_of(&supersteps.skeleton), start, result).await?;
    let report = report.with("iterations", iterations).with("residual", residual);
    report.with("error", farthest).print()
}
