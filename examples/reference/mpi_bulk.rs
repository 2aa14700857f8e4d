//! MPI's rate for large messages: one rank sends a request, the other answers with a number of
//! bytes. The benchmark `bulk` compares with it.

use mpi::traits::{Communicator, Destination, Source};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use ultramarine::{Error, Result};

/// Each size is repeated for this time, but at least this often.
const LASTING: Duration = Duration::from_millis(200);
const REPEATS_MIN: usize = 3;

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|bytes| bytes.parse())
        .collect::<std::result::Result<_, _>>()
        .map_err(Error::other)?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    if world.size() != 2 {
        return Err(Error::other("this is for two ranks: start it with `mpiexec -n 2`"));
    }
    let rank = world.rank();
    let other = world.process_at_rank(1 - rank);
    let mut rates = BTreeMap::new();
    for bytes in sizes {
        let mut message = vec![1u8; bytes];
        let mut found = vec![];
        let start = Instant::now();
        loop {
            let is_over = found.len() > REPEATS_MIN && start.elapsed() > LASTING;
            let mut request = [u8::from(is_over)];
            if rank == 0 {
                let asked = Instant::now();
                other.send(&request[..]);
                if is_over {
                    break;
                }
                other.receive_into(&mut message[..]);
                found.push(bytes as f64 / 1e9 / asked.elapsed().as_secs_f64());
            } else {
                other.receive_into(&mut request[..]);
                if request == [1] {
                    break;
                }
                other.send(&message[..]);
            }
        }
        found.sort_by(f64::total_cmp);
        if rank == 0 {
            rates.insert(bytes, found[found.len() / 2]);
        }
    }
    if rank == 0 {
        println!("{}", serde_json::json!(rates));
    }
    Ok(())
}
