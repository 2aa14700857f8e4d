//! The parts of a PE that are told when a PE dies.

use std::sync::{Mutex, PoisonError, Weak};
use ultramarine_topology::Pe;

/// Something that is told of deaths.
pub(crate) trait DeathListener: Send + Sync {
    fn on_death(&self, dead: Pe);
}

/// All that are told of deaths on one PE.
#[derive(Default)]
pub(crate) struct DeathListeners(Mutex<Vec<Weak<dyn DeathListener>>>);

impl DeathListeners {
    /// Tells this one of each death from now on, as long as it exists.
    pub(crate) fn add(&self, one: Weak<dyn DeathListener>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(one);
    }

    pub(crate) fn announce(&self, dead: Pe) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).for_each(|one| one.on_death(dead));
    }
}
