//! MPI's time for the round trip of a short message between two ranks. The benchmark `steal`
//! compares with it.

use mpi::traits::{Communicator, Destination, Source};
use std::time::Instant;
use ultramarine::{Error, Result};

/// About the size of a FISH or a small SCHEDULE.
const MESSAGE_BYTES: usize = 64;
/// The figure is the median of these batches without the first, which warms up.
const BATCHES: usize = 101;
const ROUND_TRIPS: u32 = 1000;

fn main() -> Result<()> {
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    if world.size() != 2 {
        return Err(Error::other("ping-pong is for two ranks: start it with `mpiexec -n 2`"));
    }
    let rank = world.rank();
    let other = world.process_at_rank(1 - rank);
    let mut message = [0u8; MESSAGE_BYTES];
    let mut micros = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..ROUND_TRIPS {
            if rank == 0 {
                other.send(&message[..]);
                other.receive_into(&mut message[..]);
            } else {
                other.receive_into(&mut message[..]);
                other.send(&message[..]);
            }
        }
        micros.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * ROUND_TRIPS));
    }
    micros[1..].sort_by(f64::total_cmp);
    let median = micros[1 + (BATCHES - 1) / 2];
    if rank == 0 {
        println!("{}", serde_json::json!({ "half_round_trip_micros": median }));
    }
    Ok(())
}
