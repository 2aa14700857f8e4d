//! Task Bench: a grid of points, each computed from some points of the step before, as a graph with
//! a node for each (Slaughter et al., *Task Bench*, SC20). It measures how small tasks may be.
//!
//! `pattern` has what is computed, `blocks` the graph in blocks.

mod blocks;
pub mod pattern;

use crate::{AssignmentChoice, GraphFlags, Job, name_of, ranged, run_program};
use blocks::Blocks;
use clap::ValueEnum;
use pattern::{Grid, compute};
use rayon::prelude::*;
use std::iter;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::{Builder, Node, dag};

/// Compute a grid of points step by step, each from some of the step before.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    grid: Grid,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Dag)]
    skeleton: Skeleton,
    /// Steps in a block of the graph, for `blocks` and `stream`.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = ranged::<u32>(1..=1_000_000))]
    block_steps: u32,
    /// Which PE computes which node of the graph.
    #[arg(long, value_enum, default_value_t = AssignmentChoice::Levels)]
    assignment: AssignmentChoice,
    #[command(flatten)]
    graph: GraphFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A graph with a node for each point of each step.
    Dag,
    /// The same graph in blocks, each built by the PE that computes it.
    Blocks,
    /// The same blocks as an endless graph, of which the program takes as many as it needs.
    Stream,
    /// Each step in parallel by rayon, on the root.
    Rayon,
    /// On one thread of the root.
    Sequential,
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("task_bench", run)
}

/// The graph: a node for each point of each step. What is wanted is the sum of those that no other
/// needs. If the points are placed, each PE has the same ones at all steps.
fn build(g: &mut Builder, (grid, assignment): &(Grid, AssignmentChoice)) -> Node<u64> {
    let first = |(point, iterations): &(u32, u32)| compute(*point, *iterations, iter::empty());
    let later = |(point, iterations): &(u32, u32), inputs: &[&u64]| {
        compute(*point, *iterations, inputs.iter().map(|input| **input))
    };
    let pes = u64::from(g.pes());
    let place = |g: &mut Builder, row: &[Node<u64>]| {
        for (point, node) in (0..).zip(row) {
            assignment.place(g, *node, (point * pes / u64::from(grid.width)) as u32);
        }
    };
    let points = |step| (0..grid.width_at(step)).map(|point| (point, grid.iterations));
    let mut row: Vec<_> = points(0).map(|own| g.source(first, own)).collect();
    place(g, &row);
    let mut ends = Vec::new();
    for step in 1..grid.steps {
        ends.extend(grid.unread(step).into_iter().map(|point| row[point as usize]));
        let node = |own: (u32, u32)| {
            let inputs = grid.inputs(step, own.0).map(|input| row[input as usize]);
            g.reduce(later, own, inputs)
        };
        row = points(step).map(node).collect();
        place(g, &row);
    }
    ends.extend(row);
    g.reduce(|(), ends: &[&u64]| sum(ends.iter().map(|point| **point)), (), ends)
}

fn sum(row: impl Iterator<Item = u64>) -> u64 {
    row.fold(0, u64::wrapping_add)
}

/// Without a graph: step by step, the points of each by `row`.
fn by_steps(grid: &Grid, row: impl Fn(u32, &(dyn Fn(u32) -> u64 + Sync)) -> Vec<u64>) -> u64 {
    let first = |point| compute(point, grid.iterations, iter::empty());
    let mut old = row(grid.width_at(0), &first);
    let mut unread = 0;
    for step in 1..grid.steps {
        let ends = grid.unread(step).into_iter().map(|point| old[point as usize]);
        unread = sum(ends.chain([unread]));
        let later = |point| {
            let inputs = grid.inputs(step, point).map(|input| old[input as usize]);
            compute(point, grid.iterations, inputs)
        };
        old = row(grid.width_at(step), &later);
    }
    sum(old.into_iter().chain([unread]))
}

async fn run(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { grid, skeleton, block_steps: steps, assignment, graph } = arguments;
    let mut graph = graph.begin(&name_of(&skeleton), None)?;
    let (cx, blocks) = (&job.cx, Blocks { grid, steps });
    // The PEs connect when they first speak to each other.
    dag(build, (Grid { steps: 4, iterations: 0, ..grid }, assignment)).run(cx).await?;
    let start = Instant::now();
    let result = match skeleton {
        Skeleton::Dag => {
            let dag = dag(build, (grid, assignment)).assignment(assignment.rule());
            graph.run(&job, dag).await?
        }
        Skeleton::Blocks => {
            let dag = dag(blocks::build, blocks).blocks(blocks.count());
            let row = graph.run(&job, dag.assignment(assignment.rule())).await?;
            sum(row.into_iter())
        }
        Skeleton::Stream => {
            let last = async {
                let mut stream = dag(blocks::build, blocks).stream(cx)?;
                for _ in 1..blocks.count() {
                    stream.next().await?;
                }
                stream.next().await
            };
            sum(job.progress(None, last).await?.into_iter())
        }
        Skeleton::Rayon => {
            let rayon = |grid: Grid| {
                by_steps(&grid, |width, point| (0..width).into_par_iter().map(point).collect())
            };
            cx.spawn_fn(Distance::ZERO, rayon, grid).await?
        }
        Skeleton::Sequential => by_steps(&grid, |width, point| (0..width).map(point).collect()),
    };
    let report = job.report(name_of(&skeleton), start, result.cast_signed()).await?;
    let point_us = report.elapsed().as_secs_f64() * 1e6 / grid.points() as f64;
    report.with("points", grid.points()).with("point_us", point_us).print()?;
    graph.finish()
}
