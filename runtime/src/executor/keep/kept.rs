//! All that a PE keeps for the tasks that run on it.

use super::deaths::DeathListeners;
use super::inbox::Inbox;
use super::store::Store;
use super::values::Values;
use crate::executor::schedule::timers::Timers;
use crate::lock::Lock;
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use ultramarine_topology::Pe;

/// What a PE keeps for its tasks. Each part keeps its own state to itself; what concerns several of
/// them is done here.
pub(crate) struct Kept {
    /// Values that tasks share by key.
    pub(crate) store: Store,
    /// The values of handles.
    pub(crate) values: Values,
    /// Messages and deaths that the program has not heard yet.
    pub(crate) inbox: Inbox,
    /// What is told of deaths.
    pub(crate) death_listeners: DeathListeners,
    /// Tasks that sleep.
    pub(crate) timers: Timers,
    /// For random choices of tasks.
    random: Lock<Xoshiro256PlusPlus>,
}

impl Kept {
    /// Nothing is kept yet.
    pub(crate) fn new(random: Xoshiro256PlusPlus) -> Self {
        Kept {
            store: Store::default(),
            values: Values::default(),
            inbox: Inbox::default(),
            death_listeners: DeathListeners::default(),
            timers: Timers::default(),
            random: Lock::new(random),
        }
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        self.random.lock().next_u64()
    }

    /// Forgets the values of a PE that has died, or keeps them only as long as tasks have them.
    pub(crate) fn forget_those_of(&self, dead: Pe) {
        self.store.forget(|key| key.home == dead);
        self.values.weaken(|key| key.home == dead);
    }

    /// The number of values, under all keys together.
    pub(crate) fn count(&self) -> usize {
        self.store.count() + self.values.count()
    }

    /// Forgets everything: the PE has left.
    pub(crate) fn clear(&self) {
        self.timers.clear();
        self.inbox.clear();
        self.store.forget(|_| true);
        self.values.clear();
    }
}
