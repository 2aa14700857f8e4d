//! The largest clique of a graph: the largest set of vertices that are all joined to each other.
//!
//! An example of branch and bound. All nodes share the graph, so it is sent once to each PE. A node
//! is a clique and the vertices that may still be added. `graph` reads files in DIMACS format,
//! and `search` has the tree and its bound.

mod graph;
mod search;

use crate::expanded::expanded;
use crate::{Job, SearchFlags, name_of, ranged, run_program};
use clap::ValueEnum;
use graph::{Graph, VERTICES_MAX};
use search::Clique;
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;

/// Find the largest clique of an undirected graph.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// Read the graph from this file in DIMACS format: `p edge VERTICES EDGES`, then `e VERTEX
    /// VERTEX` for each edge.
    #[arg(long, value_name = "GRAPH.clq", required_unless_present = "vertices")]
    file: Option<PathBuf>,
    /// Draw a graph of this number of vertices at random instead.
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = ranged::<usize>(0..=VERTICES_MAX as i64))]
    vertices: Option<usize>,
    /// The probability in percent that two vertices of a random graph are joined.
    #[arg(long, value_name = "PERCENT", default_value_t = 70, conflicts_with = "file")]
    #[arg(value_parser = ranged::<u64>(0..=100))]
    density: u64,
    /// The seed of the random graph.
    #[arg(long, default_value_t = 1, conflicts_with = "file")]
    seed: u64,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMaximise)]
    skeleton: Skeleton,
    #[command(flatten)]
    search: SearchFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// Tasks that any PE may steal.
    ParMaximise,
    /// One thread of the root, node after node.
    Sequential,
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("maxclique", maxclique)
}

async fn maxclique(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { file, vertices, density, seed, skeleton, search: flags } = arguments;
    let drawn = || Ok(Graph::drawn(vertices.unwrap_or(0), density, seed));
    let graph = file.as_deref().map_or_else(drawn, Graph::read)?;
    if !matches!(skeleton, Skeleton::ParMaximise) {
        flags.journal.refuse_for(&skeleton)?;
    }
    let splitting = flags.splitting.unwrap_or(Splitting::Ordered);
    let start = Instant::now();
    let graph = graph.sorted();
    let best = match skeleton {
        Skeleton::ParMaximise => {
            let (tree, root) = (graph.clone(), Clique::root(&graph));
            let best = flags.run(&job, maximise(splitting, tree, root)).await?;
            best.map_or_else(Clique::default, |(_, clique)| clique)
        }
        Skeleton::Sequential => search::maximise(&graph),
    };
    let mut vertices: Vec<_> = best.vertices.iter().map(|v| graph.name(*v as usize)).collect();
    vertices.sort_unstable();
    let report = job.report(name_of(&skeleton), start, vertices.len()).await?;
    report.with("vertices", vertices).with("expanded", expanded(&job.cx).await?).print()
}
