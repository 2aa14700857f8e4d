//! What one PE keeps of values, and when it lets go of it: it must never know what a value is, nor
//! how it comes.

use super::super::caught::discard;
use super::super::context::Context;
use super::super::processor::Processor;
use super::super::store::Key;
use super::slot::{AnySlot, Slot};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use ultramarine_topology::Pe;

/// Keeps a value everywhere as long as home has a handle.
pub(super) struct Keeper {
    pe: Arc<Processor>,
    key: Key,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.pe.release(self.key);
    }
}

/// How many slots may be left of values that are gone, beside as many as are in use.
const GONE_MAX: usize = 64;

/// What is kept on one PE.
#[derive(Default)]
pub(in super::super) struct Values(Mutex<State>);

#[derive(Default)]
struct State {
    slots: HashMap<Key, Arc<dyn AnySlot>>,
    /// How many there are when it is time to look for those that are gone.
    full_at: usize,
    /// Of those whose handles were made here.
    homes: HashMap<Key, Home>,
}

#[derive(Clone)]
pub(super) struct Home {
    keeper: Weak<Keeper>,
    /// Where a [`Remote`] was made, when it is; `None` for a [`Shared`].
    pub(super) made: Option<Arc<Slot<Pe>>>,
}

impl Values {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a value that may be there or come.
    pub(super) fn known<T: Send + Sync + 'static>(&self, key: Key) -> Option<Arc<Slot<T>>> {
        let slot = self.state().slots.get(&key).cloned()?;
        slot.as_any().downcast().ok()
    }

    /// The same, made if there is none.
    pub(super) fn slot<T: Send + Sync + 'static>(&self, key: Key) -> Arc<Slot<T>> {
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

    pub(super) fn keeper(&self, key: Key) -> Option<Arc<Keeper>> {
        self.state().homes.get(&key).and_then(|home| home.keeper.upgrade())
    }

    /// What this PE knows of a value whose home it is, as long as it has a handle.
    pub(super) fn home(&self, key: Key) -> Option<Home> {
        self.state().homes.get(&key).cloned()
    }

    /// Lets go of the slot of a value that could not be had: the next who needs it tries again.
    pub(super) fn give_up(&self, key: Key) {
        let slot = self.state().slots.remove(&key);
        discard(slot);
    }

    /// Keeps these values no longer than tasks here do.
    pub(in super::super) fn fade(&self, which: impl Fn(&Key) -> bool) {
        let mut state = self.state();
        let keys: Vec<Key> = state.slots.keys().filter(|key| which(key)).copied().collect();
        let faded: Vec<_> = keys.iter().filter_map(|key| state.slots.get(key).cloned()).collect();
        state.slots.retain(|_, slot| !slot.is_gone());
        drop(state);
        faded.iter().for_each(|slot| drop(slot.fade()));
    }

    /// How many have a slot here.
    pub(in super::super) fn count(&self) -> usize {
        self.state().slots.len()
    }

    /// Lets go of everything.
    pub(in super::super) fn clear(&self) {
        let State { slots, homes, .. } = std::mem::take(&mut *self.state());
        slots.into_values().for_each(discard);
        drop(homes);
    }
}

impl Processor {
    /// Keeps a value whose home is this PE, until that is dropped.
    pub(super) fn keep(self: &Arc<Self>, key: Key, made: Option<Arc<Slot<Pe>>>) -> Arc<Keeper> {
        let keeper = Arc::new(Keeper { pe: self.clone(), key });
        let home = Home { keeper: Arc::downgrade(&keeper), made };
        self.values.state().homes.insert(key, home);
        keeper
    }

    /// The last handle of home's is gone.
    fn release(self: &Arc<Self>, key: Key) {
        let home = self.values.state().homes.remove(&key);
        let made = home.and_then(|home| home.made).and_then(|made| made.now());
        if self.liveness.has_failures() {
            // One of those that were to tell others may be dead.
            let _ = self.tell(0..self.topology.pes(), fade, key);
            return;
        }
        if let Some(Ok(maker)) = made {
            self.tell_fade(*maker, key);
        }
        self.fade_below(key);
    }

    pub(super) fn tell_fade(self: &Arc<Self>, pe: Pe, key: Key) {
        if pe == self.me() {
            self.fade_below(key);
        } else {
            // A job that is ending forgets all.
            let _ = self.tell(pe.number()..pe.number() + 1, fade, key);
        }
    }

    /// Keeps a value no longer than tasks do, here and where this PE has given it.
    fn fade_below(self: &Arc<Self>, key: Key) {
        let slot = self.values.state().slots.remove(&key);
        let Some(slot) = slot else { return };
        let given = slot.fade();
        if !slot.is_gone() {
            self.values.state().slots.insert(key, slot);
        }
        given.into_iter().for_each(|pe| self.tell_fade(pe, key));
    }
}

async fn fade(cx: Context, key: Key) {
    cx.pe.fade_below(key);
}
