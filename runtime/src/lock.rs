//! A lock that outlives a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`Mutex`] that is not poisoned. No user code runs under the locks of the runtime, so a panic
/// under one is a defect of ours, and the job ends by other means.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    /// What is inside, once no other thread has it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless another thread has it now, or has panicked with it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
