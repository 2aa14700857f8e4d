//! Values that the tasks on one PE share.

use super::context::Context;
use crate::error::TaskError;
use crate::executor::keep::slot::{DeliveryGuard, Slot};
use crate::executor::keep::store::Key;
use crate::executor::task::body::CatchPanic;
use crate::executor::task::caught::caught;
use async_task::Task;
use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

impl Context {
    /// A key that nobody has had before in this job.
    pub fn new_key(&self) -> Key {
        let mut store = self.pe.store.lock();
        store.0 += 1;
        Key { home: self.pe(), number: store.0 }
    }

    /// What the tasks on this PE share under a key; the first that asks makes it, and others that
    /// ask meanwhile wait until it is made. `make` must not ask for the same, nor use rayon: a
    /// worker that waits for another there may go on with a task that asks, and wait for itself for
    /// ever.
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
        let place = || Arc::<OnceLock<Arc<T>>>::default();
        let place = self.pe.store.lock().1.entry(name).or_insert_with(|| place()).clone();
        let place: Arc<OnceLock<Arc<T>>> =
            place.downcast().unwrap_or_else(|_| unreachable!("the type is part of the name"));
        place.get_or_init(|| Arc::new(make())).clone()
    }

    /// The same for a value that takes some waiting to make: no thread waits. What `make` awaits
    /// must not ask for the same.
    ///
    /// # Errors
    ///
    /// `make` panicked (who asks after that has it made anew), or the job is ending.
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
        if slot.claim_delivery() {
            // It may have been made and stored since the first look.
            let known = self.known(key);
            let making = if known.is_some() { Ok(None) } else { caught(make).map(Some) };
            let (cx, delivery) = (self.clone(), DeliveryGuard(slot.clone()));
            let task = self.pe.run_async(async move {
                let pe = cx.pe();
                let made = match making {
                    Ok(None) => known.ok_or(TaskError::ShuttingDown),
                    Ok(Some(making)) => {
                        CatchPanic::new(pe, making).await.map(|made| cx.shared(key, || made))
                    }
                    Err(message) => Err(TaskError::Panicked { pe, message }),
                };
                delivery.0.settle(made);
                // The value stays; the next who asks finds it, or makes it.
                cx.pe.store.forget_one::<Slot<T>>(key);
            });
            task.into_iter().for_each(Task::detach);
        }
        slot.wait().await
    }

    /// The same, if some task on this PE has asked for it before.
    pub fn known<T: Any + Send + Sync>(&self, key: Key) -> Option<Arc<T>> {
        let place = self.pe.store.lock().1.get(&(key, TypeId::of::<T>())).cloned()?;
        place.downcast::<OnceLock<Arc<T>>>().ok()?.get().cloned()
    }

    /// Forgets what the tasks on this PE share under a key. Who has it keeps it.
    pub fn forget(&self, key: Key) {
        self.pe.store.forget(|known| *known == key);
    }

    /// How many values the tasks on this PE share, under all keys together: for tests that nothing
    /// is left behind.
    #[doc(hidden)]
    pub fn shared_count(&self) -> usize {
        self.pe.store.lock().1.len() + self.pe.values.count()
    }
}
