//! The values of handles on one PE, and how long they are kept. This file must never know what a
//! value is, nor how it arrives.

use super::slot::{AnySlot, Slot};
use super::store::Key;
use crate::executor::task::caught::discard;
use crate::lock::Lock;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use ultramarine_topology::Pe;

/// At most this number of slots stays after their values are gone, plus as many as are in use.
const GONE_MAX: usize = 64;

/// The values on one PE.
#[derive(Default)]
pub(crate) struct Values(Lock<State>);

#[derive(Default)]
struct State {
    slots: HashMap<Key, Arc<dyn AnySlot>>,
    /// The number of slots at which gone ones are looked for.
    full_at: usize,
    /// The values whose handles were made here.
    homes: HashMap<Key, Home>,
}

#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) keeper: Weak<dyn Any + Send + Sync>,
    /// The PE where a [`Remote`](crate::executor::Remote) was made, once it is; `None` for a
    /// [`Shared`](crate::executor::Shared).
    pub(crate) made: Option<Arc<Slot<Pe>>>,
}

impl Values {
    /// The slot of a value, if there is one.
    pub(crate) fn known<T: Send + Sync + 'static>(&self, key: Key) -> Option<Arc<Slot<T>>> {
        let slot = self.0.lock().slots.get(&key).cloned()?;
        slot.as_any().downcast().ok()
    }

    /// The slot of a value, made if there is none.
    pub(crate) fn slot<T: Send + Sync + 'static>(&self, key: Key) -> Arc<Slot<T>> {
        let mut state = self.0.lock();
        let State { slots, full_at, .. } = &mut *state;
        if slots.len() >= *full_at {
            // These are slots of values that tasks still had when the slot became weak.
            slots.retain(|_, slot| !slot.is_gone());
            *full_at = 2 * slots.len() + GONE_MAX;
        }
        let slot = slots.entry(key).or_insert_with(|| Arc::new(Slot::<T>::default())).clone();
        drop(state);
        slot.as_any().downcast().unwrap_or_else(|_| unreachable!("a key is of one value"))
    }

    /// This PE is the home of a value from now on.
    pub(crate) fn add_home(&self, key: Key, home: Home) {
        self.0.lock().homes.insert(key, home);
    }

    /// It has no handle of the value any more.
    pub(crate) fn remove_home(&self, key: Key) -> Option<Home> {
        self.0.lock().homes.remove(&key)
    }

    pub(crate) fn keeper(&self, key: Key) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.lock().homes.get(&key).and_then(|home| home.keeper.upgrade())
    }

    /// What this PE knows of a value whose home it is, as long as it has a handle.
    pub(crate) fn home(&self, key: Key) -> Option<Home> {
        self.0.lock().homes.get(&key).cloned()
    }

    /// Removes the slot of a value that could not be fetched: the next task that needs it tries
    /// again.
    pub(crate) fn remove(&self, key: Key) {
        let slot = self.0.lock().slots.remove(&key);
        discard(slot);
    }

    /// Keeps a value no longer than tasks do. Returns the PEs that got it from this one.
    pub(crate) fn weaken_one(&self, key: Key) -> Vec<Pe> {
        let slot = self.0.lock().slots.remove(&key);
        let Some(slot) = slot else { return Vec::new() };
        let given = slot.weaken();
        if !slot.is_gone() {
            self.0.lock().slots.insert(key, slot);
        }
        given
    }

    /// Makes the slots of these keys weak: only tasks keep their values.
    pub(crate) fn weaken(&self, which: impl Fn(&Key) -> bool) {
        let mut state = self.0.lock();
        let keys: Vec<Key> = state.slots.keys().filter(|key| which(key)).copied().collect();
        let slots: Vec<_> = keys.iter().filter_map(|key| state.slots.get(key).cloned()).collect();
        state.slots.retain(|_, slot| !slot.is_gone());
        drop(state);
        slots.iter().for_each(|slot| drop(slot.weaken()));
    }

    /// The number of slots.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().slots.len()
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        let State { slots, homes, .. } = std::mem::take(&mut *self.0.lock());
        slots.into_values().for_each(discard);
        drop(homes);
    }
}
