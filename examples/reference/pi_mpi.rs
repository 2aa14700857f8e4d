//! The computation of `pi` with plain MPI, written by hand. The benchmark `programs` compares with
//! it. It uses nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::programs::pi::Intervals;

/// Compute π with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    intervals: Intervals,
}

fn main() -> Result<()> {
    let Arguments { intervals } = Arguments::parse();
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    world.barrier();
    let start = Instant::now();
    let (area, mut pi) = (intervals.area(world.rank() as u32, world.size() as u32), 0.0);
    world.all_reduce_into(&area, &mut pi, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    if world.rank() == 0 {
        println!("{}", serde_json::json!({ "result": pi, "seconds": seconds }));
    }
    Ok(())
}
