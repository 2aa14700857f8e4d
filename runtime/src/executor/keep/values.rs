//! What one PE keeps of values, and when it lets go of it: it must never know what a value is, nor
//! how it comes.

use super::slot::{AnySlot, Slot};
use super::store::Key;
use crate::executor::task::caught::discard;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use ultramarine_topology::Pe;

/// How many slots may be left of values that are gone, beside as many as are in use.
const GONE_MAX: usize = 64;

/// What is kept on one PE.
#[derive(Default)]
pub(crate) struct Values(Mutex<State>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) slots: HashMap<Key, Arc<dyn AnySlot>>,
    /// How many there are when it is time to look for those that are gone.
    full_at: usize,
    /// Of those whose handles were made here.
    pub(crate) homes: HashMap<Key, Home>,
}

#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) keeper: Weak<dyn Any + Send + Sync>,
    /// Where a [`Remote`](crate::executor::Remote) was made, when it is; `None` for a
    /// [`Shared`](crate::executor::Shared).
    pub(crate) made: Option<Arc<Slot<Pe>>>,
}

impl Values {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a value that may be there or come.
    pub(crate) fn known<T: Send + Sync + 'static>(&self, key: Key) -> Option<Arc<Slot<T>>> {
        let slot = self.state().slots.get(&key).cloned()?;
        slot.as_any().downcast().ok()
    }

    /// The same, made if there is none.
    pub(crate) fn slot<T: Send + Sync + 'static>(&self, key: Key) -> Arc<Slot<T>> {
        let mut state = self.state();
        let State { slots, full_at, .. } = &mut *state;
        if slots.len() >= *full_at {
            // Of values that tasks still had when they were let go of.
            slots.retain(|_, slot| !slot.is_gone());
            *full_at = 2 * slots.len() + GONE_MAX;
        }
        let slot = slots.entry(key).or_insert_with(|| Arc::new(Slot::<T>::default())).clone();
        drop(state);
        slot.as_any().downcast().unwrap_or_else(|_| unreachable!("a key is of one value"))
    }

    pub(crate) fn keeper(&self, key: Key) -> Option<Arc<dyn Any + Send + Sync>> {
        self.state().homes.get(&key).and_then(|home| home.keeper.upgrade())
    }

    /// What this PE knows of a value whose home it is, as long as it has a handle.
    pub(crate) fn home(&self, key: Key) -> Option<Home> {
        self.state().homes.get(&key).cloned()
    }

    /// Lets go of the slot of a value that could not be had: the next who needs it tries again.
    pub(crate) fn give_up(&self, key: Key) {
        let slot = self.state().slots.remove(&key);
        discard(slot);
    }

    /// Keeps these values no longer than tasks here do.
    pub(crate) fn fade(&self, which: impl Fn(&Key) -> bool) {
        let mut state = self.state();
        let keys: Vec<Key> = state.slots.keys().filter(|key| which(key)).copied().collect();
        let faded: Vec<_> = keys.iter().filter_map(|key| state.slots.get(key).cloned()).collect();
        state.slots.retain(|_, slot| !slot.is_gone());
        drop(state);
        faded.iter().for_each(|slot| drop(slot.fade()));
    }

    /// How many have a slot here.
    pub(crate) fn count(&self) -> usize {
        self.state().slots.len()
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        let State { slots, homes, .. } = std::mem::take(&mut *self.state());
        slots.into_values().for_each(discard);
        drop(homes);
    }
}
