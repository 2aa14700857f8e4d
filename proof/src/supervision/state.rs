//! A state of the search. (It is not the testkit's world, in which a PE that is held for dead is
//! dead: here it may live on for a while, and each PE hears of it at any moment.)

use super::host::{PeState, PooledTask};
use crate::frame::has;
use std::collections::VecDeque;
use std::sync::Arc;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Message, Outcome};

/// The whole job at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By PE; `None`: the PE is gone.
    pub(super) actors: Vec<Option<Arc<PeState>>>,
    /// Messages on their way, by sender and receiver, in the order of sending.
    pub(super) wires: Vec<VecDeque<Message>>,
    /// The set of PEs that have died, or are taken for dead and will leave.
    pub(super) doomed: u32,
    /// By PE: the set of PEs of whose deaths it has heard.
    pub(super) heard: Vec<u32>,
    /// The set of dead PEs whose last FISH has been answered.
    pub(super) spent: u32,
    pub(super) hops: u32,
    /// How each task has ended.
    pub(super) ends: Vec<Option<Outcome>>,
}

impl State {
    /// Whether all futures have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }

    /// The tasks in a PE's pool.
    pub(super) fn pool(&self, pe: u32) -> impl Iterator<Item = &PooledTask> {
        let actor = self.actors.get(pe as usize).into_iter().flatten();
        actor.flat_map(|actor| &actor.shelves).flatten()
    }

    /// Whether this PE has heard of the deaths of all of these.
    pub(super) fn has_heard_of(&self, mut dead: impl Iterator<Item = u32>, pe: u32) -> bool {
        dead.all(|dead| has(self.heard[pe as usize], dead))
    }
}

/// The result of every task.
pub(super) fn value() -> Bytes {
    Bytes::from(vec![42])
}
