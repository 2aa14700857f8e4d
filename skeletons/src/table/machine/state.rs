//! Machines as states of a model checker: copied, compared and hashed. (What is derived would ask
//! nothing of `K::Batch` and others that a machine has within.)

use super::{Kind, Machine};
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};

/// All of a machine that changes, but for what is to be done and dropped: that is taken at once.
macro_rules! parts {
    ($machine:expr) => {{
        let Machine {
            me: _,
            topology: _,
            copies: _,
            dead_before: _,
            dead,
            asked,
            shares,
            early,
            own: _,
            effects: _,
            waste: _,
        } = $machine;
        (dead, asked, shares, early)
    }};
}

impl<K: Kind> Clone for Machine<K> {
    fn clone(&self) -> Self {
        let is_done = self.own.is_empty() && self.effects.is_empty();
        debug_assert!(is_done, "what is to be done is taken at once");
        Machine {
            topology: self.topology.clone(),
            dead_before: self.dead_before.clone(),
            dead: self.dead.clone(),
            asked: self.asked.clone(),
            shares: self.shares.clone(),
            early: self.early.clone(),
            own: VecDeque::new(),
            effects: Vec::new(),
            waste: Vec::new(),
            ..*self
        }
    }
}

impl<K: Kind<Batch: PartialEq, Answer: PartialEq>> PartialEq for Machine<K> {
    fn eq(&self, other: &Self) -> bool {
        parts!(self) == parts!(other)
    }
}

impl<K: Kind<Batch: Hash, Answer: Hash>> Hash for Machine<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        parts!(self).hash(state);
    }
}

impl<K: Kind<Answer: Debug>> Debug for Machine<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { me, dead, shares, .. } = self;
        write!(f, "the machine of {me}, which knows {dead:?} to be dead: {shares:?}")
    }
}
