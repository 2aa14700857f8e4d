//! Complete [programs], and what they share: [the frame](run_program), flags, choices of a skeleton
//! and a splitting, random numbers, and the report at the end.
//!
//! All of this is compiled once. The binary of a program only calls its `main`.
#![forbid(unsafe_code)]

mod arena;
mod assignment;
mod divide_skeleton;
#[cfg(feature = "all")]
mod expanded;
mod graph;
mod input;
mod job;
mod journal;
mod map_skeleton;
pub mod programs;
mod random;
mod recording;
mod report;
mod search;
mod splitting;
mod states;
mod supersteps;
mod whole_file;

pub use arena::{nearest_first, require_one_host};
pub use assignment::AssignmentChoice;
pub use divide_skeleton::{DivideFlags, Solvers};
pub use graph::{GraphFlags, GraphRun};
pub use input::read_text;
pub use job::{Job, run_program};
pub use journal::JournalFlags;
pub use map_skeleton::MapSkeleton;
pub use random::random;
pub use recording::MapFlags;
pub use report::{Report, print};
pub use search::SearchFlags;
pub use splitting::splitting;
pub use states::StateFlags;
pub use supersteps::SuperstepFlags;
pub use ultramarine::skeletons::bsp::own_range;

use clap::builder::RangedI64ValueParser;
use std::error::Error;
use std::ops::RangeInclusive;

/// The largest number of tasks that a program accepts: all of them are in the root's memory at
/// once.
pub const TASKS_MAX: i64 = 10_000_000;

/// The name of a value on the command line.
pub fn name_of(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reads whole numbers of this range.
pub fn ranged<T>(range: RangeInclusive<i64>) -> RangedI64ValueParser<T>
where
    T: TryFrom<i64, Error: Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    RangedI64ValueParser::new().range(range)
}
