//! The computation of `conjugate_gradient` with plain MPI, written by hand. The benchmark `bsp`
//! compares with it. It uses nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::request::{WaitGuard, scope};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use std::time::Instant;
use ultramarine::skeletons::bsp::own_range;
use ultramarine::{Error, Result};
use ultramarine_examples::programs::conjugate_gradient::matrix::{Flags, Problem, Rows, dot};
use ultramarine_examples::programs::stencil::plate::digest;

/// Solve A·x = b, where b = A·1, by conjugate gradients, with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> Result<()> {
    let Problem { matrix, tolerance, iterations } = Arguments::parse().flags.problem()?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    world.barrier();
    let start = Instant::now();
    let rows = Rows::of(&matrix, world.rank() as u32, world.size() as u32);
    let mut r = rows.sums.clone();
    let own = r.len();
    let (mut x, mut q, mut p) = (vec![0.0; own], vec![0.0; own], r.clone());
    p.resize(rows.width(), 0.0);
    let sum = |part: f64| {
        let mut all = 0.0;
        world.all_reduce_into(&part, &mut all, SystemOperation::sum());
        all
    };
    // Multiplies with a vector, of which others send what this rank needs.
    let multiply = |vector: &mut [f64], product: &mut [f64]| {
        let sent: Vec<Vec<f64>> = rows
            .neighbours
            .iter()
            .map(|(.., places)| places.iter().map(|place| vector[*place as usize]).collect())
            .collect();
        let (_, mut others) = vector.split_at_mut(own);
        scope(|scope| {
            let mut guards = Vec::new();
            for ((rank, places, _), sent) in rows.neighbours.iter().zip(&sent) {
                let neighbour = world.process_at_rank(*rank as i32);
                let (from, rest) = std::mem::take(&mut others).split_at_mut(places.len());
                others = rest;
                guards.push(WaitGuard::from(neighbour.immediate_receive_into(scope, from)));
                guards.push(WaitGuard::from(neighbour.immediate_send(scope, &sent[..])));
            }
        });
        rows.multiply(vector, product);
    };
    let norm = sum(dot(&r, &r));
    let (mut rho, mut count) = (norm, 0);
    while count < iterations {
        multiply(&mut p, &mut q);
        let far = rho / sum(dot(&p[..own], &q));
        for n in 0..own {
            x[n] += far * p[n];
            r[n] -= far * q[n];
        }
        count += 1;
        let next = sum(dot(&r, &r));
        if next.sqrt() <= tolerance * norm.sqrt() {
            break;
        }
        let beta = next / std::mem::replace(&mut rho, next);
        for n in 0..own {
            p[n] = r[n] + beta * p[n];
        }
    }
    p[..own].copy_from_slice(&x);
    multiply(&mut p, &mut q);
    let left: f64 = rows.sums.iter().zip(&q).map(|(b, ax)| (b - ax).powi(2)).sum();
    let residual = (sum(left) / norm).sqrt();
    let first = own_range(matrix.size(), world.rank() as u32, world.size() as u32).start;
    let mut result = 0_u64;
    world.all_reduce_into(&digest(first, &x), &mut result, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    if world.rank() == 0 {
        let said = serde_json::json!({
            "result": result.cast_signed(), "iterations": count, "residual": residual,
            "seconds": seconds
        });
        println!("{said}");
    }
    Ok(())
}
