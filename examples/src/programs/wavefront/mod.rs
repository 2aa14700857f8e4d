//! The best local alignment of two sequences (Smith and Waterman), as a graph of tiles, or by
//! divide and conquer with a memo. A tile needs those to the left of it and above it, so that the
//! work goes through the matrix as a wave.
//!
//! `alignment` has what is computed.

mod alignment;

use crate::{GraphFlags, Job, name_of, ranged, run_program};
use alignment::{Edges, Scoring, read_fasta, tile};
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine::skeletons::table::table;

/// Find the score of the best local alignment of two sequences.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// A FASTA file, of which the first record counts.
    a: PathBuf,
    /// Another FASTA file.
    b: PathBuf,
    #[command(flatten)]
    scoring: Scoring,
    /// The number of rows and columns of a tile.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = ranged::<u32>(1..=100_000))]
    tile: u32,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Dag)]
    skeleton: Skeleton,
    /// With the memo, the number of copies of each tile.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = ranged::<usize>(0..=100))]
    copies: usize,
    #[command(flatten)]
    graph: GraphFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A graph with a node for each tile.
    Dag,
    /// Divide and conquer with a memo, whose parts are tiles.
    Memo,
    /// On one thread of the root.
    Sequential,
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("wavefront", wavefront)
}

/// The sequences, the scoring and the size of tiles.
type Input = (Vec<u8>, Vec<u8>, Scoring, u32);

/// The graph: a node for each tile, and one for the letters of each row and column of tiles. The
/// best score is wanted. Rows of tiles go to the PEs in turn, so that the wave soon reaches all of
/// them; only the last row of numbers of each tile is sent.
fn build(g: &mut Builder, (a, b, scoring, tile_size): &Input) -> Node<i32> {
    let letters = |g: &mut Builder, sequence: &[u8]| -> Vec<(usize, Node<Vec<u8>>)> {
        let parts = sequence.chunks(*tile_size as usize).map(<[u8]>::to_vec);
        parts.map(|part| (part.len(), g.source(Vec::clone, part))).collect()
    };
    let (rows, columns) = (letters(g, a), letters(g, b));
    let outside = |(rows, columns): &(usize, usize)| Edges::outside(*rows, *columns);
    let mut up: Vec<_> = columns.iter().map(|(size, _)| g.source(outside, (0, *size))).collect();
    let mut bests = Vec::new();
    for (row, (height, letters)) in rows.iter().enumerate() {
        let pe = (row % g.pes() as usize) as u32;
        let mut left = g.source(outside, (*height, 0));
        for ((_, others), up) in columns.iter().zip(&mut up) {
            left = g.zip(
                |scoring, (a, b, left, up): (&Vec<u8>, &Vec<u8>, &Edges, &Edges)| {
                    tile(*scoring, (a, b), left, up)
                },
                *scoring,
                (*letters, *others, left, *up),
            );
            g.place(left, pe);
            *up = left;
            bests.push(g.map(|(), edges: &Edges| edges.best, (), left));
            g.place(bests[bests.len() - 1], pe);
        }
    }
    let max = |(): &(), all: &[&i32]| all.iter().copied().copied().max().unwrap_or(0);
    g.reduce(max, (), bests)
}

/// A tile: its row and its column.
type Tile = (Shared<Input>, usize, usize);

/// The same by divide and conquer: the parts of a tile are those that it needs, which others need,
/// too.
async fn with_memo(cx: &Context, input: Input, copies: usize) -> Result<i32> {
    let last = |sequence: &[u8]| (sequence.len() - 1) / input.3 as usize;
    let (row, column) = (last(&input.0), last(&input.1));
    let tiles = DivideAndConquer::new(
        |_: &Tile| false,
        |_| unreachable!("no tile is trivial"),
        |(input, row, column): &Tile| {
            let up = row.checked_sub(1).map(|row| (input.clone(), row, *column));
            let left = column.checked_sub(1).map(|column| (input.clone(), *row, column));
            up.into_iter().chain(left).collect::<Vec<Tile>>()
        },
        |(input, row, column), needed: Vec<Edges>| {
            let (a, b, scoring, size) = &*input;
            let letters = |of: &'_ [u8], at: usize| {
                of.chunks(*size as usize).nth(at).map(<[u8]>::to_vec).unwrap_or_default()
            };
            let (a, b, mut needed) = (letters(a, row), letters(b, column), needed.into_iter());
            let up = (row > 0).then(|| needed.next()).flatten();
            let left = (column > 0).then(|| needed.next()).flatten();
            let up = up.unwrap_or_else(|| Edges::outside(0, b.len()));
            let left = left.unwrap_or_else(|| Edges::outside(a.len(), 0));
            tile(*scoring, (&a, &b), &left, &up)
        },
    );
    let known = table::<(usize, usize), Edges>(cx, "tiles").copies(copies).open()?;
    let whole = (cx.share(input), row, column);
    let problem = divide_and_conquer(|_: &Tile| Distance::ONE, tiles, whole);
    Ok(problem.memo(&known, |(_, row, column)| Some((*row, *column))).run(cx).await?.best)
}

async fn wavefront(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { a, b, scoring, tile: tile_size, skeleton, copies, graph } = arguments;
    let mut graph = graph.begin(&name_of(&skeleton), None)?;
    let (a, b) = (read_fasta(&a)?, read_fasta(&b)?);
    let cells = a.len() as u64 * b.len() as u64;
    let start = Instant::now();
    let best = match skeleton {
        Skeleton::Dag => graph.run(&job, dag(build, (a, b, scoring, tile_size))).await?,
        Skeleton::Memo => with_memo(&job.cx, (a, b, scoring, tile_size), copies).await?,
        Skeleton::Sequential => {
            let (left, up) = (Edges::outside(a.len(), 0), Edges::outside(0, b.len()));
            tile(scoring, (&a, &b), &left, &up).best
        }
    };
    let report = job.report(name_of(&skeleton), start, best).await?;
    let cells_us = cells as f64 / 1e6 / report.elapsed().as_secs_f64();
    report.with("cells", cells).with("cells_us", cells_us).print()?;
    graph.finish()
}
