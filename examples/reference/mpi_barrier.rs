//! The time of an `MPI_Barrier`, in microseconds, as the median of some batches of the given number
//! of barriers. The benchmark `bsp` compares with it.

use mpi::traits::{Communicator, CommunicatorCollectives};
use std::time::Instant;
use ultramarine::{Error, Result};

const BATCHES: usize = 21;

fn main() -> Result<()> {
    let barriers = std::env::args().nth(1).map(|barriers| barriers.parse::<u32>());
    let barriers = barriers.ok_or_else(|| Error::other("how many barriers are a batch?"))?;
    let barriers = barriers.map_err(Error::other)?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let mut found = vec![];
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..barriers {
            world.barrier();
        }
        found.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(barriers));
    }
    found.sort_by(f64::total_cmp);
    if world.rank() == 0 {
        println!("{}", serde_json::json!({ "micros": found[BATCHES / 2] }));
    }
    Ok(())
}
