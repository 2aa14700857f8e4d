//! What a machine handles.

use super::message::Letter;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What a run is about.
pub trait Kind {
    /// A rank's, between steps.
    type State;
    /// What ranks send to each other.
    type Content;
    /// What is kept of a rank, with its letters and results.
    type Saved: Clone;
    /// What a rank leaves when it ends.
    type Output: Clone;
    /// Of a collective operation.
    type Value: Clone;
    /// How such values are combined.
    type Operation: PartialEq;
    /// Why a run cannot go on.
    type Error: Clone + From<Trouble>;

    /// How many bytes a copy takes.
    fn bytes(saved: &Self::Saved) -> usize;
    /// How many bytes an output takes.
    fn output_bytes(_: &Self::Output) -> usize {
        0
    }
    /// Tells operations from each other, also on other PEs.
    fn digest(operation: &Self::Operation) -> u64;
    /// Whether each rank gets the values of those before it, and not of all.
    fn is_scan(operation: &Self::Operation) -> bool;
    /// Whether a rank that takes part has the result.
    fn has_result(_: &Self::Operation, _: u32) -> bool {
        true
    }
    /// A value of ranks, and one of ranks behind these.
    fn combine(operation: &Self::Operation, left: &Self::Value, right: &Self::Value)
    -> Self::Value;
}

/// What a rank does after a step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Next<S, O> {
    /// It takes another step.
    Awake(S),
    /// It does so when something was sent to it.
    Asleep(S),
    Ended(O),
}

/// What a step has done.
pub struct Step<K: Kind> {
    pub next: Next<K::State, K::Output>,
    pub letters: Vec<Letter<K::Content>>,
    /// The collective operations in which the rank takes part.
    pub offered: Vec<(K::Operation, K::Value)>,
    /// How long it has taken.
    pub took: Duration,
}

/// Why a run cannot go on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// All ranks sleep, were woken, and sleep again without a word.
    Stalled { superstep: u64 },
    /// A rank has sent something to one that had ended.
    ToEnded { from: u32, to: u32, superstep: u64 },
    /// Two ranks take part in different operations at once; it is not known which if they are of
    /// different PEs.
    Mixed { ranks: Option<[u32; 2]>, superstep: u64 },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Stalled { superstep } => write!(
                f,
                "in superstep {superstep} all ranks slept, and went to sleep again when they were \
                 woken: nothing would ever wake them"
            ),
            Trouble::ToEnded { from, to, superstep } => write!(
                f,
                "rank {from} has sent a message to rank {to}, which had ended by superstep \
                 {superstep}"
            ),
            Trouble::Mixed { ranks, superstep } => {
                let ranks = ranks.map_or_else(
                    || "ranks of different PEs".to_owned(),
                    |[one, other]| format!("ranks {one} and {other}"),
                );
                write!(
                    f,
                    "in superstep {superstep} {ranks} take part in different collective operations \
                     at once"
                )
            }
        }
    }
}

/// When checkpoints are taken, and where they are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Saving {
    pub when: When,
    /// Whether a PE and its partner have them in memory.
    pub in_memory: bool,
    /// Whether they are put into a directory.
    pub on_disk: bool,
}

impl Saving {
    /// In memory alone.
    pub const fn in_memory(when: When) -> Self {
        Saving { when, in_memory: true, on_disk: false }
    }
}

/// When a checkpoint is due. It is taken if the one before is settled by then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum When {
    Never,
    /// Once this number of supersteps has passed.
    Every(u64),
    /// When the first PE [is told](super::Machine::set_due) so.
    Told,
}
