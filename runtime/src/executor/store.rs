//! Values that the tasks on one PE share.

use super::caught::discard;
use super::context::Context;
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine_topology::Pe;

/// Names what tasks share, and travels with them: on each PE there is one value of each type under
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The PE that made the key.
    pub home: Pe,
    number: u64,
}

type Values = HashMap<(Key, TypeId), Arc<dyn Any + Send + Sync>>;

/// What is shared on one PE.
#[derive(Default)]
pub(super) struct Store(Mutex<(u64, Values)>);

impl Store {
    fn lock(&self) -> MutexGuard<'_, (u64, Values)> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is under these keys.
    pub(super) fn forget(&self, which: impl Fn(&Key) -> bool) {
        let forgotten: Vec<_> = self.lock().1.extract_if(|name, _| which(&name.0)).collect();
        // After the lock: dropping runs code of the user's.
        forgotten.into_iter().for_each(discard);
    }
}

impl Context {
    /// A key that nobody has had before in this job.
    pub fn new_key(&self) -> Key {
        let mut store = self.pe.store.lock();
        store.0 += 1;
        Key { home: self.pe(), number: store.0 }
    }

    /// What the tasks on this PE share under a key; the first that asks makes it.
    ///
    /// Nothing of it travels to other PEs: there the first that asks makes another. It stays until
    /// it is [forgotten](Self::forget), or the key's home dies, or the job ends.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::{Context, Key};
    /// # use ultramarine_topology::Distance;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// /// How many of these tasks this PE has run.
    /// fn count(cx: &Context, key: Key) -> u64 {
    ///     cx.shared(key, AtomicU64::default).fetch_add(1, Ordering::Relaxed) + 1
    /// }
    /// ```
    pub fn shared<T: Any + Send + Sync>(&self, key: Key, make: impl FnOnce() -> T) -> Arc<T> {
        let name = (key, TypeId::of::<T>());
        let known = self.pe.store.lock().1.get(&name).cloned();
        let value = known.unwrap_or_else(|| {
            let made = Arc::new(make());
            self.pe.store.lock().1.entry(name).or_insert(made).clone()
        });
        value.downcast().unwrap_or_else(|_| unreachable!("the type is part of the name"))
    }

    /// The same, if some task on this PE has asked for it before.
    pub fn known<T: Any + Send + Sync>(&self, key: Key) -> Option<Arc<T>> {
        let value = self.pe.store.lock().1.get(&(key, TypeId::of::<T>())).cloned();
        value.and_then(|value| value.downcast().ok())
    }

    /// Forgets what the tasks on this PE share under a key. Who has it keeps it.
    pub fn forget(&self, key: Key) {
        self.pe.store.forget(|known| *known == key);
    }

    /// How many values the tasks on this PE share, under all keys together: for tests that nothing
    /// is left behind.
    #[doc(hidden)]
    pub fn shared_count(&self) -> usize {
        self.pe.store.lock().1.len()
    }
}
