//! MPI's time for half the round trip of a message between two ranks, in microseconds, for each
//! number of bytes that it is given. The benchmarks `steal` and `mail` compare with it.

use mpi::traits::{Communicator, Destination, Source};
use std::collections::BTreeMap;
use std::time::Instant;
use ultramarine::{Error, Result};

/// The figure is the median of these batches without the first, which warms up.
const BATCHES: usize = 101;

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|bytes| bytes.parse())
        .collect::<std::result::Result<_, _>>()
        .map_err(Error::other)?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    if world.size() != 2 {
        return Err(Error::other("ping-pong is for two ranks: start it with `mpiexec -n 2`"));
    }
    let rank = world.rank();
    let other = world.process_at_rank(1 - rank);
    let mut medians = BTreeMap::new();
    for bytes in sizes {
        let mut message = vec![0u8; bytes];
        let round_trips = (4_000_000 / bytes.max(1)).clamp(2, 1000) as u32;
        let mut micros = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            let start = Instant::now();
            for _ in 0..round_trips {
                if rank == 0 {
                    other.send(&message[..]);
                    other.receive_into(&mut message[..]);
                } else {
                    other.receive_into(&mut message[..]);
                    other.send(&message[..]);
                }
            }
            micros.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * round_trips));
        }
        micros[1..].sort_by(f64::total_cmp);
        medians.insert(bytes, micros[1 + (BATCHES - 1) / 2]);
    }
    if rank == 0 {
        println!("{}", serde_json::json!(medians));
    }
    Ok(())
}
