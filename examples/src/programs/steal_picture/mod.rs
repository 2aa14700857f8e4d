//! A picture of a run: the hierarchy of the job, and how many tasks moved between which PEs.
//!
//! The work is the queens' problem by divide and conquer. Each part remembers the PE that made it,
//! and the PE that solves it counts the pair. [`drawing`] makes the picture of the counts.
//!
//! ```sh
//! cargo run --release -p ultramarine-examples --bin steal_picture docs/stolen.svg
//! ```

pub mod drawing;

use crate::print;
use crate::programs::queens::{Board, count};
use clap::Parser;
use drawing::draw;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use ultramarine::prelude::*;
use ultramarine::{LevelKind, Options, Place, Result};

/// Draw which tasks moved where while the job counted the ways to place N queens.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Where the picture goes, as SVG.
    picture: PathBuf,
    /// How many queens.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..=18))]
    board: u32,
    /// Draw the machine as it is, instead of two racks with two hosts of two PEs, which are threads
    /// of this process.
    #[arg(long)]
    as_it_is: bool,
    /// Start the main task anew on another PE if the root dies.
    #[arg(long)]
    restartable: bool,
    #[command(flatten)]
    options: Options,
}

/// Rows that are divided into a task for each placement.
const ROWS_DIVIDED: u32 = 5;

/// A board that this PE made from one with a queen less.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Part {
    board: Board,
    from: Pe,
}

/// What came out.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Found {
    ways: u64,
    /// How many tasks one PE made and another, or the same, ran.
    moved: BTreeMap<(Pe, Pe), u64>,
}

impl Found {
    fn of(part: Part, by: Pe, ways: u64) -> Found {
        Found { ways, moved: BTreeMap::from([((part.from, by), 1)]) }
    }

    fn add(mut self, other: Found) -> Found {
        self.ways += other.ways;
        for (pair, tasks) in other.moved {
            *self.moved.entry(pair).or_default() += tasks;
        }
        self
    }
}

/// Two racks with two hosts of two PEs.
fn two_racks() -> Vec<Place> {
    let place = |pe: usize| {
        let (rack, host) = (["rack 1", "rack 2"][pe / 4], ["r1n1", "r1n2", "r2n1", "r2n2"][pe / 2]);
        Place::from_pairs([(LevelKind::Switch, rack), (LevelKind::Host, host)])
    };
    (0..8).map(place).collect()
}

/// Solves the problem on the whole job, and draws it.
async fn solve(cx: Context, board: u32, picture: PathBuf) -> Result<()> {
    let queens = DivideAndConquer::with_context(
        |_, part: &Part| part.board.is_trivial(),
        |cx: &Context, part: Part| Found::of(part, cx.pe(), count(part.board)),
        |cx, Part { board, .. }| {
            board.placements().map(|board| Part { board, from: cx.pe() }).collect::<Vec<_>>()
        },
        |cx, part, found| found.into_iter().fold(Found::of(part, cx.pe(), 0), Found::add),
    );
    let whole = Part { board: Board::empty(board, ROWS_DIVIDED), from: cx.pe() };
    let found = par_divide_and_conquer(&cx, |_| Distance::ONE, queens, whole).await?;
    std::fs::write(&picture, draw(cx.topology(), &found.moved))?;
    print(format_args!("{board} queens: {} ways; see {}\n", found.ways, picture.display()))
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    let Arguments { picture, board, as_it_is, restartable, options } = Arguments::parse();
    let options = if as_it_is { options } else { options.threads(1).places(two_racks()) };
    let main = move |cx| solve(cx, board, picture.clone());
    if restartable { options.run_restartable(main) } else { options.run(main) }
}
