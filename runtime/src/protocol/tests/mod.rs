//! Several nodes played by hand: the test delivers each message itself.

mod board_fish;
mod board_memory;
mod board_runs;
mod boards;
mod cancelling;
mod ending;
mod fishing;
mod laws;
mod losses;
mod sharing;
mod supervision;
mod telling;
mod waiting;
pub(super) mod world;
