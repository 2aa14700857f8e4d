//! Values that the tasks on one PE share.

use crate::executor::task::caught::discard;
use crate::lock::Lock;
use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use ultramarine_topology::Pe;

/// Names a value that tasks share. A key can travel, and on each PE there is at most one value of
/// each type under it. See [`Context::new_key`](crate::executor::Context::new_key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The PE that made the key.
    pub home: Pe,
    pub(crate) number: u64,
}

/// Where a value of type `T` is, once it is made.
type StoredAt<T> = OnceLock<Arc<T>>;

/// The shared values of one PE.
#[derive(Default)]
pub(crate) struct Store(Lock<State>);

#[derive(Default)]
struct State {
    last_key: u64,
    /// Each is a [`StoredAt`] of the type in its name.
    /// (With the hash of `std` each message to a group took 260 instructions more.)
    stored: HashMap<(Key, TypeId), Arc<dyn Any + Send + Sync>, FixedState>,
}

impl Store {
    /// The number of a new key, from 1 on.
    pub(crate) fn next_number(&self) -> u64 {
        let mut state = self.0.lock();
        state.last_key += 1;
        state.last_key
    }

    /// The value of one type under a key. The first that asks makes it; others wait meanwhile.
    pub(crate) fn get_or_make<T>(&self, key: Key, make: impl FnOnce() -> T) -> Arc<T>
    where
        T: Any + Send + Sync,
    {
        let new = || Arc::<StoredAt<T>>::default() as _;
        let place: Arc<dyn Any + Send + Sync> =
            self.0.lock().stored.entry((key, TypeId::of::<T>())).or_insert_with(new).clone();
        let place: Arc<StoredAt<T>> =
            place.downcast().unwrap_or_else(|_| unreachable!("the type is part of the name"));
        place.get_or_init(|| Arc::new(make())).clone()
    }

    /// The same, if it is made.
    pub(crate) fn get<T: Any + Send + Sync>(&self, key: Key) -> Option<Arc<T>> {
        let place = self.0.lock().stored.get(&(key, TypeId::of::<T>())).cloned()?;
        place.downcast::<StoredAt<T>>().ok()?.get().cloned()
    }

    /// The number of values.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().stored.len()
    }

    /// Forgets the value of one type under a key.
    pub(crate) fn forget_one<T: Any>(&self, key: Key) {
        let forgotten = self.0.lock().stored.remove(&(key, TypeId::of::<T>()));
        // After the lock is released: dropping runs user code.
        discard(forgotten);
    }

    /// Forgets what is under these keys.
    pub(crate) fn forget(&self, which: impl Fn(&Key) -> bool) {
        let forgotten: Vec<_> = self.0.lock().stored.extract_if(|name, _| which(&name.0)).collect();
        // After the lock is released: dropping runs user code.
        forgotten.into_iter().for_each(discard);
    }
}
