//! The computation of `task_bench` with plain MPI, written by hand: each rank has a part of the
//! points, and sends each to the ranks that need it for the next step. The benchmark `dag` compares
//! with it. It uses nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::programs::task_bench::pattern::{Grid, compute};

/// Compute a grid of points step by step, divided among the ranks, with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    grid: Grid,
}

fn main() -> Result<()> {
    let Arguments { grid } = Arguments::parse();
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let root = world.process_at_rank(0);
    let owner = |point: u32| (u64::from(point) * size as u64 / u64::from(grid.width)) as i32;
    let own = |step| (0..grid.width_at(step)).filter(move |point| owner(*point) == rank);
    world.barrier();
    let start = Instant::now();

    let mut old = vec![0; grid.width as usize];
    for point in own(0) {
        old[point as usize] = compute(point, grid.iterations, std::iter::empty());
    }
    let mut part = 0_u64;
    for step in 1..grid.steps {
        for point in grid.unread(step).into_iter().filter(|point| owner(*point) == rank) {
            part = part.wrapping_add(old[point as usize]);
        }
        exchange(&world, &grid, step, owner, &mut old);
        let input = |input: u32| old[input as usize];
        let new: Vec<_> = own(step)
            .map(|point| {
                let inputs = grid.inputs(step, point).map(input);
                (point, compute(point, grid.iterations, inputs))
            })
            .collect();
        for (point, value) in new {
            old[point as usize] = value;
        }
    }
    let part = own(grid.steps - 1).fold(part, |sum, point| sum.wrapping_add(old[point as usize]));
    if rank != 0 {
        root.reduce_into(&part, SystemOperation::sum());
        return Ok(());
    }
    let mut all = 0_u64;
    root.reduce_into_root(&part, &mut all, SystemOperation::sum());
    let seconds = start.elapsed().as_secs_f64();
    let (result, points) = (all.cast_signed(), grid.points());
    println!("{}", serde_json::json!({ "result": result, "seconds": seconds, "points": points }));
    Ok(())
}

/// Sends each own point once to each rank that needs it for this step, and receives those that this
/// rank needs. Both sides go through the points in the same order. The messages are so short that
/// sending does not wait for the receiver.
fn exchange(
    world: &impl Communicator,
    grid: &Grid,
    step: u32,
    owner: impl Fn(u32) -> i32,
    old: &mut [u64],
) {
    let rank = world.rank();
    let mut edges: Vec<(u32, i32)> = (0..grid.width_at(step))
        .flat_map(|point| {
            let reader = owner(point);
            grid.inputs(step, point).map(move |input| (input, reader))
        })
        .filter(|(input, reader)| owner(*input) != *reader)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    for (input, reader) in edges.iter().filter(|(input, _)| owner(*input) == rank) {
        world.process_at_rank(*reader).send(&old[*input as usize]);
    }
    for (input, _) in edges.iter().filter(|(_, reader)| *reader == rank) {
        let (value, _) = world.process_at_rank(owner(*input)).receive::<u64>();
        old[*input as usize] = value;
    }
}
