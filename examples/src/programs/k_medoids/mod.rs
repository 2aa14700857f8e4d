//! Clusters around medoids, by turns (Park and Jun, A simple and fast algorithm for K-medoids
//! clustering, 2009), as a bulk-synchronous program: each point goes to the nearest medoid; then
//! the point of each cluster with the least sum of distances becomes its medoid; until none
//! changes.
//!
//! The stages are those of NEWT (figure 4.7). There a rank has some clusters, to which points move.
//! Here it knows all points, looks at a range of them, and says to which clusters these belong: so
//! all ranks have as much to do, even if clusters differ in size.
//!
//! [`points`] has what is computed.

pub mod points;

use crate::supersteps::Skeleton;
use crate::{Job, SuperstepFlags, name_of, own_range, run_program};
use points::{Flags, Points, Problem, better, replace, total};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start};

/// Divide points into clusters around medoids.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    supersteps: SuperstepFlags,
}

/// What a rank does in a superstep.
#[derive(Clone, Copy, Serialize, Deserialize, Default, Debug)]
enum Stage {
    /// It says to which clusters its points belong, unless no medoid has changed.
    #[default]
    Divide,
    /// It looks for better medoids among its points.
    Recalculate,
}

#[derive(Serialize, Deserialize)]
struct Clusters {
    medoids: Vec<u32>,
    rounds: u64,
    rounds_max: u64,
    #[serde(skip)]
    points: Points,
}

impl Program for Clusters {
    type Argument = Problem;
    type Stage = Stage;
    /// The clusters of the points of a rank.
    type Message = Vec<u32>;
    /// The medoids, the sum of the distances to them, and the number of rounds.
    type Output = (Vec<u32>, f64, u64);

    fn new(_: &Start, Problem { points, medoids, rounds }: &Problem) -> Self {
        let (medoids, points) = (medoids.clone(), points.clone());
        Clusters { medoids, rounds: 0, rounds_max: *rounds, points }
    }

    fn restored(&mut self, _: &Start, problem: &Problem) {
        self.points = problem.points.clone();
    }

    fn step(&mut self, stage: Stage, comm: &mut Comm<Self>) -> Next<Self> {
        let own = own_range(self.points.number(), comm.rank(), comm.ranks());
        match stage {
            Stage::Divide => {
                if let Some(best) = comm.result()
                    && (!replace(&mut self.medoids, &best) || self.rounds == self.rounds_max)
                {
                    let medoids = std::mem::take(&mut self.medoids);
                    return Next::End((medoids, total(&best), self.rounds));
                }
                comm.send_all(self.points.nearest(own, &self.medoids).collect());
                Next::Stage(Stage::Recalculate)
            }
            Stage::Recalculate => {
                let mut clusters = Vec::with_capacity(self.points.number());
                while let Some((_, part)) = comm.next() {
                    clusters.extend(part);
                }
                self.rounds += 1;
                comm.all_reduce(&self.points.best(own, &clusters, self.medoids.len()), better);
                Next::Stage(Stage::Divide)
            }
        }
    }
}

/// The same by one loop.
fn sequential(Problem { points, mut medoids, rounds }: Problem) -> (Vec<u32>, f64, u64) {
    let (all, mut round) = (0..points.number(), 0);
    loop {
        round += 1;
        let clusters: Vec<u32> = points.nearest(all.clone(), &medoids).collect();
        let best = points.best(all.clone(), &clusters, medoids.len());
        if !replace(&mut medoids, &best) || round == rounds {
            return (medoids, total(&best), round);
        }
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("k_medoids", k_medoids)
}

async fn k_medoids(job: Job, Arguments { flags, supersteps }: Arguments) -> Result<()> {
    let problem = flags.problem()?;
    let start = Instant::now();
    let (medoids, sum, rounds) = match supersteps.skeleton {
        Skeleton::Ranks => {
            let number = problem.points.number();
            supersteps.run::<Clusters>(&job, problem, number).await?.swap_remove(0)
        }
        Skeleton::Sequential => sequential(problem),
    };
    let report = job.report(name_of(&supersteps.skeleton), start, sum).await?;
    report.with("medoids", medoids).with("rounds", rounds).print()
}
