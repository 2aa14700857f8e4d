//! What of the losses that deaths cost a PE is still to be worked off.

use std::collections::VecDeque;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What of a PE's losses is still to be worked off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Losses {
    /// The dead of whose tasks some may still be to be lost, in the order of their deaths.
    pub(super) dead: VecDeque<Pe>,
    /// How many tasks may still be lost in this turn.
    pub(super) left: usize,
    /// Since when a task that was lost twice has waited, or since one was placed.
    pub(super) suspects_since: Option<Duration>,
}

impl Losses {
    pub(super) fn new(per_turn: usize) -> Self {
        Losses { dead: VecDeque::new(), left: per_turn, suspects_since: None }
    }
}
