//! The sum of Euler's totient with plain MPI, written by hand: the ranges of `sum_euler`, dealt out
//! to the ranks in turn. The benchmark `sum-euler` compares with it. It uses nothing of the
//! runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use std::time::Instant;
use ultramarine::skeletons::split_range;
use ultramarine::{Error, Result};

/// Sum Euler's totient over 1, 2, …, N, with MPI alone.
#[derive(Parser)]
struct Arguments {
    /// The last number.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    upto: u64,
    /// The number of ranges.
    #[arg(long, value_name = "K", default_value_t = 400)]
    tasks: usize,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn totient(n: u64) -> u64 {
    (1..=n).filter(|k| gcd(n, *k) == 1).count() as u64
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    world.barrier();
    let start = Instant::now();

    let ranges = split_range(1..arguments.upto + 1, arguments.tasks);
    let own: u64 = ranges.into_iter().skip(rank).step_by(size).flatten().map(totient).sum();
    let root = world.process_at_rank(0);
    if rank != 0 {
        root.reduce_into(&own, SystemOperation::sum());
        return Ok(());
    }
    let mut sum = 0u64;
    root.reduce_into_root(&own, &mut sum, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "result": sum, "seconds": seconds, "ranks": size }));
    Ok(())
}
