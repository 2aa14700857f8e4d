//! Searches all states of the 8-puzzle: tiles 1 to 8 and a gap in a square of three by three. From
//! the state in which all is in order half of the 9! states can be reached, 181,440, with 31 moves
//! at most (Reinefeld, Complete solution of the eight-puzzle, 1993).

use crate::{Job, StateFlags, run_program};
use ultramarine::Result;

/// Search all states of the 8-puzzle.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    search: StateFlags,
}

/// A state: the tile at each place, four bits for each, and 0 for the gap.
type State = u64;

/// The state in which all is in order: the gap comes first.
pub const ORDERED: State = 0x8_7654_3210;

/// Adds the states that are a move away.
pub fn moves((): &(), state: &State, next: &mut Vec<State>) {
    let tile = |place: u32| (state >> (4 * place)) & 15;
    let gap = (0..9).find(|place| tile(*place) == 0).unwrap_or(0);
    let (row, column) = (gap / 3, gap % 3);
    let beside = [
        (row > 0).then(|| gap - 3),
        (row < 2).then(|| gap + 3),
        (column > 0).then(|| gap - 1),
        (column < 2).then(|| gap + 1),
    ];
    let swapped = |place: u32| state ^ (tile(place) << (4 * place)) ^ (tile(place) << (4 * gap));
    next.extend(beside.into_iter().flatten().map(swapped));
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("puzzle", async |job: Job, Arguments { search }: Arguments| {
        search.run(&job, moves, (), ORDERED).await
    })
}
