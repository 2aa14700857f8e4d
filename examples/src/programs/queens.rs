//! Counts the ways to place N queens on an N × N board so that none attacks another. A divide and
//! conquer over the rows (HdpH-RS §6.5.3): a board with queens in its first rows is divided into
//! the boards that also have a queen in the next row.
//!
//! The parts differ much in size, and their number is unknown in advance. A board is a problem as
//! long as fewer rows than the threshold have queens. On a board of 14 with a threshold of 5 there
//! are 65,235 problems: the whole and the 65,234 tasks of the paper. 54,068 of them are not divided
//! further and take a few microseconds each. The first part of a problem is solved together with
//! it, so the report counts about 54,060 tasks.

use crate::arena::{ArenaFlags, Units, numbers_in, run_in_arena, unit_of};
use crate::{DivideFlags, Job, Solvers, ranged, run_program};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use ultramarine::Result;
use ultramarine::prelude::*;

/// Count the ways to place N queens so that none attacks another.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The number of queens, and of rows and columns of the board. Above 17 it takes long.
    #[arg(long, value_name = "N", default_value_t = 13, value_parser = ranged::<u32>(1..=20))]
    board: u32,
    /// Divide the boards of the first T rows into a task for each placement. 0 makes one task in
    /// all.
    #[arg(long, value_name = "T", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..))]
    threshold: u32,
    #[command(flatten)]
    divide: DivideFlags,
    #[command(flatten)]
    arena: ArenaFlags,
}

/// Boards with at most this number of queens are placed on any PE: 170 boards of size 14. Boards
/// with one more queen are placed near their parent, and all others stay on its PE. So a PE that
/// dies loses few boards, and those placed by them.
const ROWS_PLACED: u32 = 2;

/// Boards with at least this number of rows left are worth a message to any PE: counting takes
/// about a tenth of a millisecond.
const ROWS_FAR: u32 = 11;

/// A board whose first rows have queens. A column is a bit.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Board {
    size: u32,
    /// The number of rows that are divided into problems, at most the size.
    threshold: u32,
    /// The number of rows that have queens.
    row: u32,
    /// The squares of the next row that are attacked along columns and both diagonals.
    columns: u32,
    falling: u32,
    rising: u32,
}

impl Board {
    /// A board without queens.
    pub fn empty(size: u32, threshold: u32) -> Board {
        let threshold = threshold.min(size);
        Board { size, threshold, row: 0, columns: 0, falling: 0, rising: 0 }
    }

    /// Whether it is not divided.
    pub fn is_trivial(&self) -> bool {
        self.row >= self.threshold
    }

    /// The boards with one more queen, beginning at the right.
    pub fn placements(self) -> impl ExactSizeIterator<Item = Board> {
        let mut free = !(self.columns | self.falling | self.rising) & ((1 << self.size) - 1);
        (0..free.count_ones() as usize).map(move |_| {
            let queen = free & free.wrapping_neg();
            free ^= queen;
            Board {
                row: self.row + 1,
                columns: self.columns | queen,
                falling: (self.falling | queen) << 1,
                rising: (self.rising | queen) >> 1,
                ..self
            }
        })
    }

    fn stolen_within(&self) -> Distance {
        if self.size - self.row >= ROWS_FAR { Distance::ONE } else { Distance::ONE.half() }
    }

    fn placed_within(&self) -> Distance {
        match self.row {
            0..=ROWS_PLACED => Distance::ONE,
            row if row == ROWS_PLACED + 1 => Distance::ONE.half(),
            _ => Distance::ZERO,
        }
    }
}

/// The boards below this one as units: all that have no more queens than the threshold says.
impl Units for Board {
    type Found = u64;

    fn whole(&self) -> Vec<u8> {
        unit_of([self.row, self.columns, self.falling, self.rising].map(u64::from))
    }

    fn run(&self, unit: &[u8], left: &mut Vec<Vec<u8>>) -> Option<u64> {
        let [row, columns, falling, rising] = numbers_in(unit)?.map(|number| number as u32);
        let board = Board { row, columns, falling, rising, ..*self };
        if board.is_trivial() {
            return Some(count(board));
        }
        left.extend(board.placements().map(|board| board.whole()));
        Some(0)
    }

    fn add(ways: &mut u64, more: u64) {
        *ways += more;
    }
}

/// Counts the ways to place queens in the remaining rows.
pub(crate) fn count(board: Board) -> u64 {
    if board.row == board.size { 1 } else { board.placements().map(count).sum() }
}

/// The number of ways to place all queens, by rayon.
pub fn with_rayon(board: Board) -> u64 {
    if board.is_trivial() {
        return count(board);
    }
    board.placements().collect::<Vec<_>>().into_par_iter().map(with_rayon).sum()
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("queens", queens)
}

async fn queens(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { board, threshold, divide, arena } = arguments;
    if let Some(file) = arena.file {
        let run = run_in_arena(&job, &file, &Board::empty(board, threshold)).await?;
        return run.report(&job, run.found).await?.print();
    }
    let solvers = Solvers {
        algorithm: DivideAndConquer::new(
            Board::is_trivial,
            count,
            |board: &Board| board.placements().collect::<Vec<_>>(),
            |_, counts| counts.into_iter().sum(),
        ),
        stolen_within: Board::stolen_within,
        placed_within: Board::placed_within,
        rayon: with_rayon,
        sequential: count,
    };
    let (_, report) = divide.solve(&job, solvers, Board::empty(board, threshold)).await?;
    report.print()
}
