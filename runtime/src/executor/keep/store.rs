//! Values that the tasks on one PE share.

use crate::executor::task::caught::discard;
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine_topology::Pe;

/// Names a value that tasks share. A key can travel, and on each PE there is at most one value of
/// each type under it. See [`Context::new_key`](crate::executor::Context::new_key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The PE that made the key.
    pub home: Pe,
    pub(crate) number: u64,
}

type Stored = HashMap<(Key, TypeId), Arc<dyn Any + Send + Sync>>;

/// The shared values of one PE, and the number of its last key.
#[derive(Default)]
pub(crate) struct Store(Mutex<(u64, Stored)>);

impl Store {
    pub(crate) fn lock(&self) -> MutexGuard<'_, (u64, Stored)> {
        // No user code runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the value of one type under a key.
    pub(crate) fn forget_one<T: Any>(&self, key: Key) {
        let forgotten = self.lock().1.remove(&(key, TypeId::of::<T>()));
        // After the lock is released: dropping runs user code.
        discard(forgotten);
    }

    /// Forgets what is under these keys.
    pub(crate) fn forget(&self, which: impl Fn(&Key) -> bool) {
        let forgotten: Vec<_> = self.lock().1.extract_if(|name, _| which(&name.0)).collect();
        // After the lock is released: dropping runs user code.
        forgotten.into_iter().for_each(discard);
    }
}
