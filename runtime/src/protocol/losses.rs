//! Losses that are still to be handled after deaths.

use std::collections::VecDeque;
use std::time::Duration;
use ultramarine_topology::Pe;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Losses {
    /// The dead PEs with which tasks may still be to be lost, in the order of their deaths.
    pub(super) dead: VecDeque<Pe>,
    /// The number of tasks that may still be lost in this turn.
    pub(super) left: usize,
    /// Since when a task that was lost twice has waited, or since the last such task was placed.
    pub(super) suspects_since: Option<Duration>,
}

impl Losses {
    pub(super) fn new(per_turn: usize) -> Self {
        Losses { dead: VecDeque::new(), left: per_turn, suspects_since: None }
    }
}
