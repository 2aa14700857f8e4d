//! Machines as states of a model checker: copied, compared and hashed. (What is derived would ask
//! nothing of `K::State` and others that a machine has within.)

use super::message::Waste;
use super::{Kind, Machine, Reports};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};

/// All of a machine that changes, but for what is to be done and dropped: that is taken at once.
macro_rules! parts {
    ($machine:expr) => {{
        let Machine {
            me: _,
            ranks: _,
            topology: _,
            saving: _,
            home,
            dead,
            view,
            ahead,
            phase,
            superstep,
            ticket,
            seats,
            doing,
            arrived,
            early,
            early_offers,
            early_loads,
            early_copies,
            is_quiet,
            checkpoints,
            saving_now,
            reports: Reports { is_too_long, .. },
            cost_of_all: _,
            moving,
            stores_since: _,
            generation,
            progress,
            outputs,
            effects: _,
            waste: _,
        } = $machine;
        (
            (home, dead, view.id, ahead, phase, superstep, ticket),
            (seats, doing, arrived, early, early_offers, early_loads, early_copies, is_quiet),
            (checkpoints, saving_now, is_too_long, moving, generation, progress, outputs),
        )
    }};
}

impl<K> Clone for Machine<K>
where
    K: Kind + Clone,
    K::State: Clone,
    K::Content: Clone,
    K::Operation: Clone,
{
    fn clone(&self) -> Self {
        debug_assert!(self.effects.is_empty(), "what is to be done is taken at once");
        Machine {
            topology: self.topology.clone(),
            dead: self.dead.clone(),
            view: self.view.clone(),
            ahead: self.ahead.clone(),
            phase: self.phase.clone(),
            seats: self.seats.clone(),
            doing: self.doing.clone(),
            arrived: self.arrived.clone(),
            early: self.early.clone(),
            early_offers: self.early_offers.clone(),
            early_loads: self.early_loads.clone(),
            moving: self.moving.clone(),
            early_copies: self.early_copies.clone(),
            checkpoints: self.checkpoints.clone(),
            outputs: self.outputs.clone(),
            effects: Vec::new(),
            waste: Waste::default(),
            ..*self
        }
    }
}

impl<K> PartialEq for Machine<K>
where
    K: Kind + PartialEq,
    K::State: PartialEq,
    K::Content: PartialEq,
    K::Saved: PartialEq,
    K::Output: PartialEq,
    K::Value: PartialEq,
    K::Error: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        parts!(self) == parts!(other)
    }
}

impl<K> Hash for Machine<K>
where
    K: Kind + Hash,
    K::State: Hash,
    K::Content: Hash,
    K::Saved: Hash,
    K::Output: Hash,
    K::Value: Hash,
    K::Operation: Hash,
    K::Error: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        parts!(self).hash(state);
    }
}

impl<K: Kind> Debug for Machine<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { me, superstep, progress, .. } = self;
        write!(f, "the machine of {me}, in superstep {superstep}: {progress:?}")
    }
}
