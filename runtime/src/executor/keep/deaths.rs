//! The parts of a PE that are told when a PE dies.

use crate::lock::Lock;
use std::sync::Weak;
use ultramarine_topology::Pe;

/// Something that is told of deaths.
pub(crate) trait DeathListener: Send + Sync {
    fn on_death(&self, dead: Pe);
}

/// All that are told of deaths on one PE.
#[derive(Default)]
pub(crate) struct DeathListeners(Lock<List>);

#[derive(Default)]
struct List {
    all: Vec<Weak<dyn DeathListener>>,
    /// How many there are when those that are gone are looked for the next time: twice as many as
    /// were left the last time, so that each costs a constant time on average.
    sweep_at: usize,
}

/// So few are not worth a look.
const FEW: usize = 16;

impl DeathListeners {
    /// Tells this one of each death from now on, as long as it exists.
    pub(crate) fn add(&self, one: Weak<dyn DeathListener>) {
        let mut list = self.0.lock();
        if list.all.len() >= list.sweep_at {
            list.all.retain(|one| one.strong_count() > 0);
            list.sweep_at = 2 * list.all.len().max(FEW);
        }
        list.all.push(one);
    }

    pub(crate) fn announce(&self, dead: Pe) {
        let all = self.0.lock().all.clone();
        all.iter().filter_map(Weak::upgrade).for_each(|one| one.on_death(dead));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[derive(Default)]
    struct Heard(AtomicU32);

    impl DeathListener for Heard {
        fn on_death(&self, _: Pe) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn those_that_live_are_seldom_looked_at_and_those_that_are_gone_take_no_room() {
        let listeners = DeathListeners::default();
        let mut sweeps = Vec::new();
        let mut add = |listener: Arc<dyn DeathListener>| {
            listeners.add(Arc::downgrade(&listener));
            sweeps.push(listeners.0.lock().sweep_at);
            sweeps.dedup();
        };
        let living: Vec<_> = (0..1000).map(|_| Arc::<Heard>::default()).collect();
        living.iter().for_each(|heard| add(heard.clone()));
        (0..100_000).for_each(|_| add(Arc::<Heard>::default()));
        assert_eq!(sweeps, [32, 64, 128, 256, 512, 1024, 2000]);
        let list = listeners.0.lock().all.len();
        assert!(list <= 2000, "{list}");
        listeners.announce(Pe::new(1));
        assert!(living.iter().all(|heard| heard.0.load(Relaxed) == 1));
    }
}
