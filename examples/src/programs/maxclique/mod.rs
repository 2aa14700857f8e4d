//! The largest clique of a graph: the largest set of vertices that are all joined to each other.
//!
//! An example of branch and bound. All nodes share the graph, so it is sent once to each PE. A node
//! is a clique and the vertices that may still be added. `graph` reads files in DIMACS format,
//! and `search` has the tree and its bound.

mod graph;
mod search;

use crate::{JobFlags, JournalFlags, Report, splitting};
use clap::{Parser, ValueEnum};
use graph::Graph;
use search::Clique;
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;

/// Find the largest clique of an undirected graph.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    /// Read the graph from this file in DIMACS format: `p edge VERTICES EDGES`, then `e VERTEX
    /// VERTEX` for each edge.
    #[arg(long, value_name = "GRAPH.clq")]
    file: PathBuf,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::ParMaximise)]
    skeleton: Skeleton,
    /// When a task splits off tasks for others: `steal-driven` (when no task is left to steal),
    /// `depth:N` (a task for each node down to depth N) or `budget:N` (after each N nodes).
    #[arg(long, default_value = "steal-driven", value_parser = splitting)]
    splitting: Splitting,
    #[command(flatten)]
    journal: JournalFlags,
    #[command(flatten)]
    job: JobFlags,
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
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, maxclique)
}

async fn maxclique(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { file, skeleton, splitting, journal, job } = arguments;
    let graph = Graph::read(&file)?;
    if !matches!(skeleton, Skeleton::ParMaximise) {
        journal.refuse_for(&skeleton)?;
    }
    let cx = job.begin(cx)?;
    let start = Instant::now();
    let graph = graph.sorted();
    let best = match skeleton {
        Skeleton::ParMaximise => {
            let (tree, root) = (graph.clone(), Clique::root(&graph));
            let work = journal.search(&cx, maximise(splitting, tree, root));
            let best = job.progress(&cx, None, work).await?;
            best.map_or_else(Clique::default, |(_, clique)| clique)
        }
        Skeleton::Sequential => search::maximise(&graph),
    };
    let mut vertices: Vec<_> = best.vertices.iter().map(|v| graph.name(*v as usize)).collect();
    vertices.sort_unstable();
    let value = skeleton.to_possible_value();
    let skeleton = value.as_ref().map_or("", |value| value.get_name());
    let report = Report::gather(&cx, "maxclique", (skeleton, &job), start, vertices.len()).await?;
    report.with("vertices", vertices).print(&job)
}
