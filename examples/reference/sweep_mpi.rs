//! The parameter sweep with plain MPI, written by hand: the table of `sweep` is broadcast, and its
//! points are dealt out to the ranks in turn. The benchmark `programs` compares with it. It uses
//! nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::programs::sweep::walk::{Walks, digest};

/// Walk at random through a large table, from many starting points, with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    walks: Walks,
}

fn main() -> Result<()> {
    let Arguments { walks } = Arguments::parse();
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let root = world.process_at_rank(0);
    let mut table = if rank == 0 { walks.table() } else { vec![0.0; walks.length()] };
    world.barrier();
    let start = Instant::now();

    root.broadcast_into(&mut table[..]);
    let start_up = start.elapsed().as_secs_f64();
    let points = (rank as u64..walks.points).step_by(size as usize);
    let digests = points.map(|point| digest(point, walks.walk(&table, point)));
    let own = digests.fold(0, u64::wrapping_add);
    if rank != 0 {
        root.reduce_into(&own, SystemOperation::sum());
        root.reduce_into(&start_up, SystemOperation::max());
        return Ok(());
    }
    let (mut all, mut latest) = (0_u64, 0.0_f64);
    root.reduce_into_root(&own, &mut all, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    root.reduce_into_root(&start_up, &mut latest, SystemOperation::max());
    let (result, start_up_seconds) = (all.cast_signed(), latest);
    println!(
        "{}",
        serde_json::json!({
            "result": result, "seconds": seconds, "start_up_seconds": start_up_seconds
        })
    );
    Ok(())
}
