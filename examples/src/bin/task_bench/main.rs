//! Task Bench: a grid of points, each computed from some points of the step before, as a graph with
//! a node for each (Slaughter et al., *Task Bench*, SC20). It measures how small tasks may be.
//!
//! [`pattern`] has what is computed.

mod pattern;

use clap::{Parser, ValueEnum};
use pattern::{Grid, compute};
use rayon::prelude::*;
use std::iter;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine_examples::{GraphFlags, JobFlags, Report, name_of};

/// Compute a grid of points step by step, each from some of the step before.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    grid: Grid,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Dag)]
    skeleton: Skeleton,
    #[command(flatten)]
    graph: GraphFlags,
    #[command(flatten)]
    job: JobFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A graph with a node for each point of each step.
    Dag,
    /// Each step in parallel by rayon, on the root.
    Rayon,
    /// On one thread of the root.
    Sequential,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, run)
}

/// The graph: a node for each point of each step. What is wanted is the sum of those that no other
/// needs.
fn build(g: &mut Builder, grid: &Grid) -> Node<u64> {
    let first = |(point, iterations): &(u32, u32)| compute(*point, *iterations, iter::empty());
    let later = |(point, iterations): &(u32, u32), inputs: &[&u64]| {
        compute(*point, *iterations, inputs.iter().map(|input| **input))
    };
    let points = |step| (0..grid.width_at(step)).map(|point| (point, grid.iterations));
    let mut row: Vec<_> = points(0).map(|own| g.source(first, own)).collect();
    let mut ends = Vec::new();
    for step in 1..grid.steps {
        ends.extend(grid.unread(step).into_iter().map(|point| row[point as usize]));
        let node = |own: (u32, u32)| {
            let inputs = grid.inputs(step, own.0).map(|input| row[input as usize]);
            g.reduce(later, own, inputs)
        };
        row = points(step).map(node).collect();
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

async fn run(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { grid, skeleton, graph, job } = arguments;
    let mut graph = graph.begin(&name_of(&skeleton))?;
    let cx = job.begin(cx)?;
    // The PEs connect when they first speak to each other.
    dag(build, Grid { steps: 4, iterations: 0, ..grid }).run(&cx).await?;
    let start = Instant::now();
    let result = match skeleton {
        Skeleton::Dag => graph.run(&cx, &job, dag(build, grid)).await?,
        Skeleton::Rayon => {
            let rayon = |grid: Grid| {
                by_steps(&grid, |width, point| (0..width).into_par_iter().map(point).collect())
            };
            cx.spawn_fn(Distance::ZERO, rayon, grid).await?
        }
        Skeleton::Sequential => by_steps(&grid, |width, point| (0..width).map(point).collect()),
    };
    let flags = (name_of(&skeleton), &job);
    let report = Report::gather(&cx, "task_bench", flags, start, result.cast_signed()).await?;
    let point_us = report.elapsed().as_secs_f64() * 1e6 / grid.points() as f64;
    report.with("points", grid.points()).with("point_us", point_us).print(&job)?;
    graph.finish()
}
