//! Handles ([`Shared`](crate::executor::Shared), [`Remote`](crate::executor::Remote)) that are
//! found in an argument while it is encoded or decoded. Serde has no place for such findings, so
//! they are left in thread-local variables.

use crate::error::TaskError;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;

/// A handle that was packed with a task, kept while that task is on another PE.
pub(crate) type PackedHandle = Arc<dyn Any + Send + Sync>;

/// Values that have not arrived yet.
pub(crate) struct PendingValues {
    /// Ends when all have arrived, or one cannot be fetched.
    pub(crate) arrival: Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send>>,
    /// Whether all of them are made, and only have to be fetched.
    pub(crate) is_made: bool,
}

/// A handle that was decoded here.
pub(crate) trait ArrivedHandle: Send + Sync {
    /// Attaches the handle to a PE, which is `site`. Returns its value's arrival unless the value
    /// is here.
    fn attach(self: Arc<Self>, site: &Arc<dyn Any + Send + Sync>) -> Option<PendingValues>;
}

/// A task that cannot start yet: what it waits for, and its argument, which owns the handles.
pub(crate) struct DelayedStart {
    pub(crate) pending: PendingValues,
    pub(crate) argument: Box<dyn Any + Send>,
}

thread_local! {
    /// The task that arrived last, if it cannot start yet; and whether there is such a task.
    static DELAYED: Cell<Option<DelayedStart>> = const { Cell::new(None) };
    static IS_DELAYED: Cell<bool> = const { Cell::new(false) };
    static IS_TRAVELLING: Cell<bool> = const { Cell::new(false) };
    /// Whether a handle was found.
    static HAS_FOUND: Cell<bool> = const { Cell::new(false) };
    static PACKED: RefCell<Vec<PackedHandle>> = const { RefCell::new(Vec::new()) };
    static ARRIVED: RefCell<Vec<Arc<dyn ArrivedHandle>>> = const { RefCell::new(Vec::new()) };
}

/// Runs code that encodes or decodes an argument or a result.
pub(crate) fn travelling<R>(code: impl FnOnce() -> R) -> R {
    let was_travelling = IS_TRAVELLING.replace(true);
    let result = code();
    IS_TRAVELLING.set(was_travelling);
    result
}

/// Runs another task while a value is encoded or decoded, with whose handles it has nothing to do.
/// `act` must not panic.
pub(crate) fn not_travelling(act: impl FnOnce()) {
    let (was_travelling, had_found) = (IS_TRAVELLING.take(), HAS_FOUND.take());
    let (packed, arrived) = (PACKED.take(), ARRIVED.take());
    let (was_delayed, delayed) = (IS_DELAYED.take(), DELAYED.take());
    act();
    IS_TRAVELLING.set(was_travelling);
    HAS_FOUND.set(had_found);
    PACKED.set(packed);
    ARRIVED.set(arrived);
    IS_DELAYED.set(was_delayed);
    DELAYED.set(delayed);
}

/// Notes that a handle is encoded. Returns whether it is encoded to travel.
pub(crate) fn note_packed(handle: PackedHandle) -> bool {
    let is_travelling = IS_TRAVELLING.get();
    if is_travelling {
        HAS_FOUND.set(true);
        PACKED.with_borrow_mut(|packed| packed.push(handle));
    }
    is_travelling
}

/// Notes that a handle was decoded. Returns whether it has travelled.
pub(crate) fn note_arrived(handle: Arc<dyn ArrivedHandle>) -> bool {
    let is_travelling = IS_TRAVELLING.get();
    if is_travelling {
        HAS_FOUND.set(true);
        ARRIVED.with_borrow_mut(|arrived| arrived.push(handle));
    }
    is_travelling
}

/// Whether the value that was encoded or decoded last has handles.
#[inline]
pub(crate) fn has_handles() -> bool {
    HAS_FOUND.get()
}

/// Takes the handles in the value that was encoded last.
#[inline]
pub(crate) fn take_packed_handles() -> Vec<PackedHandle> {
    if HAS_FOUND.replace(false) { PACKED.take() } else { Vec::new() }
}

/// Notes that the task that has just arrived cannot start yet.
pub(crate) fn delay_start(delayed: DelayedStart) {
    IS_DELAYED.set(true);
    DELAYED.set(Some(delayed));
}

/// Takes the task that has just arrived if it cannot start yet.
#[inline]
pub(crate) fn take_delayed() -> Option<DelayedStart> {
    if IS_DELAYED.replace(false) { DELAYED.take() } else { None }
}

/// Attaches the handles in the value that was decoded last. Returns the arrival of their values
/// unless all are here.
#[inline]
pub(crate) fn attach_handles<S: Send + Sync + 'static>(site: &Arc<S>) -> Option<PendingValues> {
    if HAS_FOUND.replace(false) { attach_all(&(site.clone() as _)) } else { None }
}

#[cold]
fn attach_all(site: &Arc<dyn Any + Send + Sync>) -> Option<PendingValues> {
    let arrived = ARRIVED.take();
    let coming: Vec<_> = arrived.into_iter().filter_map(|handle| handle.attach(site)).collect();
    if coming.is_empty() {
        return None;
    }
    let is_made = coming.iter().all(|value| value.is_made);
    let arrival = Box::pin(async move {
        // All of them are being fetched already.
        for value in coming {
            value.arrival.await?;
        }
        Ok(())
    });
    Some(PendingValues { arrival, is_made })
}
