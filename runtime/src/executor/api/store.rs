//! Values that the tasks on one PE share.

use super::context::Context;
use crate::error::TaskError;
use crate::executor::keep::slot::Slot;
use crate::executor::keep::store::Key;
use crate::executor::task::body::CatchPanic;
use crate::executor::task::caught::caught;
use async_task::Task;
use std::any::Any;
use std::sync::Arc;

impl Context {
    /// A new key: no other key of this job equals it.
    pub fn new_key(&self) -> Key {
        Key { home: self.pe(), number: self.pe.kept.store.next_number() }
    }

    /// The value of type `T` that the tasks on this PE share under a key. The first task that asks
    /// makes it; others that ask meanwhile wait, and block their threads. `make` must not ask for
    /// the same value, nor use rayon: a worker that waits there may go on with a task that asks for
    /// it, and wait for itself for ever.
    ///
    /// The value does not travel: on another PE the first task that asks makes another. It stays
    /// until it is [forgotten](Self::forget), or the PE that made the key dies, or the job ends.
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
        self.pe.kept.store.get_or_make(key, make)
    }

    /// The value of type `T` that this PE has for the whole job, the same for all tasks on it. The
    /// first that asks makes it. It needs no key, and outlives the root.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::Context;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// /// How many of these tasks this PE has run, whatever their key.
    /// #[derive(Default)]
    /// struct Count(AtomicU64);
    ///
    /// fn count(cx: &Context) -> u64 {
    ///     cx.pe_local::<Count>().0.fetch_add(1, Ordering::Relaxed) + 1
    /// }
    /// ```
    pub fn pe_local<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        // Other keys begin with number 1. This one's home lives for as long as the value.
        self.shared(Key { home: self.pe(), number: 0 }, T::default)
    }

    /// [`shared`](Self::shared) for a value whose making awaits something: no thread is blocked.
    /// `make` must not await the same value.
    ///
    /// # Errors
    ///
    /// `make` panicked (the next task that asks runs it again), or the job is ending.
    pub async fn shared_async<T, F>(
        &self,
        key: Key,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<T>, TaskError>
    where
        T: Any + Send + Sync,
        F: Future<Output = T> + Send + 'static,
    {
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        let slot = self.shared(key, Slot::<T>::default);
        if let Some(delivery) = slot.claim_delivery() {
            // It may have been made and stored since the first look.
            let known = self.known(key);
            let making = if known.is_some() {
                Ok(None)
            } else {
                caught(std::any::type_name::<F>(), make).map(Some)
            };
            let cx = self.clone();
            let task = self.pe.run_async(async move {
                let pe = cx.pe();
                let made = match making {
                    Ok(None) => known.ok_or(TaskError::ShuttingDown),
                    Ok(Some(making)) => {
                        CatchPanic::new(pe, making).await.map(|made| cx.shared(key, || made))
                    }
                    Err(message) => Err(TaskError::Panicked { pe, message }),
                };
                // The value stays stored; only the slot is dropped, and before its end is told:
                // a call after that end must not find a failed slot.
                cx.pe.kept.store.forget_one::<Slot<T>>(key);
                delivery.end_with(made);
            });
            task.into_iter().for_each(Task::detach);
        }
        slot.wait().await
    }

    /// The [shared](Self::shared) value, if a task on this PE has made it.
    pub fn known<T: Any + Send + Sync>(&self, key: Key) -> Option<Arc<T>> {
        self.pe.kept.store.get(key)
    }

    /// Forgets the values of all types that the tasks on this PE share under a key. Tasks that have
    /// a value keep it.
    pub fn forget(&self, key: Key) {
        self.pe.kept.store.forget(|known| *known == key);
    }

    /// The number of values that the tasks on this PE share, under all keys together: for tests
    /// that no value is left behind.
    #[doc(hidden)]
    pub fn shared_count(&self) -> usize {
        self.pe.kept.count()
    }
}
