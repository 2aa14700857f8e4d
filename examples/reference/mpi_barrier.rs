//! The time of an `MPI_Barrier`, in microseconds, as the median of some batches. The benchmark
//! `bsp` compares with it.

use mpi::traits::{Communicator, CommunicatorCollectives};
use std::time::Instant;
use ultramarine::{Error, Result};

const BATCHES: usize = 21;
const BARRIERS: u32 = 2000;

fn main() -> Result<()> {
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let mut found = vec![];
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BARRIERS {
            world.barrier();
        }
        found.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(BARRIERS));
    }
    found.sort_by(f64::total_cmp);
    if world.rank() == 0 {
        println!("{}", serde_json::json!({ "micros": found[BATCHES / 2] }));
    }
    Ok(())
}
