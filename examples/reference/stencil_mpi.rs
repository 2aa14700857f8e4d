//! The computation of `stencil` with plain MPI, written by hand: each rank has a band of rows, and
//! exchanges its edges with its neighbours at each step. The benchmark `programs` compares with it.
//! It uses nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::point_to_point::send_receive_into;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::own_range;
use ultramarine_examples::programs::stencil::plate::{Plate, digest, step};

/// Let heat spread through a plate that is divided among the ranks, with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    plate: Plate,
}

fn main() -> Result<()> {
    let Arguments { plate } = Arguments::parse();
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    let root = world.process_at_rank(0);
    let own = own_range(plate.rows, rank as u32, size as u32);
    let around = plate.around(&own);
    let columns = plate.columns;
    world.barrier();
    let start = Instant::now();

    let mut old = plate.points()[around.clone()].to_vec();
    let mut new = old.clone();
    let last = old.len() - columns;
    for _ in 0..plate.steps {
        step(columns, 1..own.len() + 1, &old, &mut new);
        std::mem::swap(&mut old, &mut new);
        if rank > 0 {
            let above = world.process_at_rank(rank as i32 - 1);
            let (row, rows) = old.split_at_mut(columns);
            send_receive_into(&rows[..columns], &above, row, &above);
        }
        if rank + 1 < size {
            let below = world.process_at_rank(rank as i32 + 1);
            let (rows, row) = old.split_at_mut(last);
            send_receive_into(&rows[last - columns..], &below, row, &below);
        }
    }
    // The edge rows of the plate belong to the first and the last rank.
    let first = if rank == 0 { 0 } else { columns };
    let end = if rank + 1 == size { old.len() } else { last };
    let part = digest(around.start + first, &old[first..end]);
    if rank != 0 {
        root.reduce_into(&part, SystemOperation::sum());
        return Ok(());
    }
    let mut all = 0_u64;
    root.reduce_into_root(&part, &mut all, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "result": all.cast_signed(), "seconds": seconds }));
    Ok(())
}
