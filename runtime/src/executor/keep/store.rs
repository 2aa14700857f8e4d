//! Values that the tasks on one PE share.

use crate::executor::task::caught::discard;
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
    pub(crate) number: u64,
}

type Stored = HashMap<(Key, TypeId), Arc<dyn Any + Send + Sync>>;

/// What is shared on one PE.
#[derive(Default)]
pub(crate) struct Store(Mutex<(u64, Stored)>);

impl Store {
    pub(crate) fn lock(&self) -> MutexGuard<'_, (u64, Stored)> {
        // No code of the user's runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the value of one type under a key.
    pub(crate) fn forget_one<T: Any>(&self, key: Key) {
        let forgotten = self.lock().1.remove(&(key, TypeId::of::<T>()));
        // After the lock: dropping runs code of the user's.
        discard(forgotten);
    }

    /// Forgets what is under these keys.
    pub(crate) fn forget(&self, which: impl Fn(&Key) -> bool) {
        let forgotten: Vec<_> = self.lock().1.extract_if(|name, _| which(&name.0)).collect();
        // After the lock: dropping runs code of the user's.
        forgotten.into_iter().for_each(discard);
    }
}
