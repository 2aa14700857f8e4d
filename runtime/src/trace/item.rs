//! What goes from the thread that notes to the one that writes.

use super::Compared;
use super::stretch::{Counts, Stretch};

/// The most that a slice takes in the file, without its name and counts.
const SLICE_BYTES: u64 = 80;

/// The most that a count takes there, without its name.
const COUNT_BYTES: u64 = 70;

/// What is written for a thread.
#[derive(Debug)]
pub(super) enum Item {
    /// One or more runs.
    Runs(Box<Stretch>),
    /// A span by itself.
    Span { name: &'static str, times: (u64, u64) },
    /// This many runs, spans and events found no room.
    Lost { runs: u64, at: u64 },
    /// Something that happened to a PE.
    Event { text: String, at: u64 },
    /// How another clock differs.
    Clock { compared: Compared, at: u64 },
    /// What a PE has counted.
    Counters { counters: Vec<(String, u64)>, at: u64 },
}

impl Item {
    /// The most that it takes in the file, but for names that are new there.
    pub(super) fn bytes(&self) -> u64 {
        let of_counts = |counts: &Counts| -> u64 {
            counts.iter().map(|count| COUNT_BYTES + count.name.len() as u64).sum()
        };
        // A run by itself is counted by its slice.
        let of_functions = |counts: &Counts| if counts.runs() == 1 { 0 } else { of_counts(counts) };
        SLICE_BYTES
            + match self {
                Item::Runs(stretch) => of_functions(&stretch.functions) + of_counts(&stretch.spans),
                Item::Span { .. } | Item::Lost { .. } => 0,
                Item::Clock { .. } => 4 * COUNT_BYTES,
                Item::Event { text, .. } => text.len() as u64,
                Item::Counters { counters, .. } => SLICE_BYTES * counters.len() as u64,
            }
    }
}
