//! `MPI_Gatherv` of an array of this length from each rank but the first. The benchmark `gather`
//! compares with it. Prints the median of some times, in milliseconds.

use mpi::collective::Root;
use mpi::datatype::PartitionMut;
use mpi::traits::{Communicator, CommunicatorCollectives};
use std::time::Instant;
use ultramarine::{Error, Result};

const REPEATS: usize = 21;

fn main() -> Result<()> {
    let bytes = std::env::args().nth(1).unwrap_or_default().parse::<usize>();
    let bytes = bytes.map_err(Error::other)?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let root = world.process_at_rank(0);
    let others = world.size() as usize - 1;
    let is_root = world.rank() == 0;
    let own = vec![1u8; if is_root { 0 } else { bytes }];
    let mut all = vec![0u8; if is_root { bytes * others } else { 0 }];
    let counts: Vec<_> =
        (0..=others).map(|rank| if rank == 0 { 0 } else { bytes as i32 }).collect();
    let places: Vec<_> = (0..=others).map(|rank| (rank.saturating_sub(1) * bytes) as i32).collect();
    let mut found = vec![];
    for _ in 0..REPEATS {
        world.barrier();
        let start = Instant::now();
        if is_root {
            let mut parts = PartitionMut::new(&mut all[..], &counts[..], &places[..]);
            root.gather_varcount_into_root(&own[..], &mut parts);
        } else {
            root.gather_varcount_into(&own[..]);
        }
        found.push(start.elapsed().as_secs_f64() * 1e3);
    }
    found.sort_by(f64::total_cmp);
    if is_root {
        println!("{}", serde_json::json!({ "millis": found[REPEATS / 2] }));
    }
    Ok(())
}
