//! Searches all states of the cube of two by two by two. One corner stays where it is, so that a
//! state is how the other seven lie: 7! · 3⁶ = 3,674,160 states. All can be reached in 14 quarter
//! turns, or in 11 turns if a half turn counts as one.

use crate::{Job, StateFlags, ranged, run_program};
use ultramarine::Result;

/// Search all states of the 2 × 2 × 2 cube.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// Count half turns as one turn.
    #[arg(long)]
    half_turns: bool,
    /// Turn only this number of faces: two of them make 29,160 states.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = ranged::<usize>(1..=3))]
    faces: usize,
    #[command(flatten)]
    search: StateFlags,
}

/// A state: for each place five bits, the corner that is there and how it is twisted.
type State = u64;

/// The places whose corners a quarter turn of a face moves on, each to the next, and how they are
/// twisted then. The corner that stays lies on none of these faces.
const TURNS: [([u32; 4], [u64; 4]); 3] =
    [([0, 1, 2, 3], [0, 0, 0, 0]), ([0, 3, 4, 5], [1, 2, 1, 2]), ([0, 5, 6, 1], [2, 1, 2, 1])];

/// The state in which all is in order.
pub const SOLVED: State = solved();

const fn solved() -> State {
    let (mut state, mut place) = (0, 0);
    while place < 7 {
        state |= place << (5 * place);
        place += 1;
    }
    state
}

/// The state after a quarter turn.
fn turn(state: State, (places, twists): &([u32; 4], [u64; 4])) -> State {
    let mut turned = state;
    for n in 0..4 {
        let (from, to) = (places[n], places[(n + 1) % 4]);
        let corner = (state >> (5 * from)) & 31;
        // Three bits say which corner it is, and two how it is twisted.
        let twisted = (corner & 7) | ((((corner >> 3) + twists[n]) % 3) << 3);
        turned = turned & !(31 << (5 * to)) | twisted << (5 * to);
    }
    turned
}

/// Adds the states that are a turn of one of the first faces away.
pub fn turns((half_turns, faces): &(bool, usize), state: &State, next: &mut Vec<State>) {
    for face in TURNS.iter().take(*faces) {
        let quarter = turn(*state, face);
        let half = turn(quarter, face);
        next.extend([quarter, turn(half, face)]);
        if *half_turns {
            next.push(half);
        }
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("cube", async |job: Job, arguments: Arguments| {
        let Arguments { half_turns, faces, search } = arguments;
        search.run(&job, turns, (half_turns, faces), SOLVED).await
    })
}
