//! Handles that are found in an argument while it is encoded or decoded. Serde has no place for
//! what it finds on the way, so it is laid down beside, on the thread.

use crate::error::TaskError;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;

/// Keeps a handle while a task is away that took it along.
pub(crate) type Hold = Arc<dyn Any + Send + Sync>;

/// Values that are not there yet.
pub(crate) struct Coming {
    /// Ends when they are there, or cannot be had.
    pub(crate) end: Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send>>,
    /// Whether all of them are made, and have only to be brought.
    pub(crate) is_made: bool,
}

/// A handle that has been decoded.
pub(crate) trait Arrived: Send + Sync {
    /// Takes its seat on a PE, which `site` is. Unless the value is there: when it is.
    fn arrive(self: Arc<Self>, site: &Arc<dyn Any + Send + Sync>) -> Option<Coming>;
}

/// What a task waits for that cannot begin yet, and its argument, which has the handles.
pub(crate) struct Late {
    pub(crate) coming: Coming,
    pub(crate) argument: Box<dyn Any + Send>,
}

thread_local! {
    /// Why the task that arrived last has not begun, and whether it has not.
    static LATE: Cell<Option<Late>> = const { Cell::new(None) };
    static IS_LATE: Cell<bool> = const { Cell::new(false) };
    static IS_TRAVELLING: Cell<bool> = const { Cell::new(false) };
    /// Whether anything was found.
    static HAS_FOUND: Cell<bool> = const { Cell::new(false) };
    static PACKED: RefCell<Vec<Hold>> = const { RefCell::new(Vec::new()) };
    static ARRIVED: RefCell<Vec<Arc<dyn Arrived>>> = const { RefCell::new(Vec::new()) };
}

/// Runs code that encodes or decodes an argument or a result.
pub(crate) fn travelling<R>(code: impl FnOnce() -> R) -> R {
    let was_travelling = IS_TRAVELLING.replace(true);
    let result = code();
    IS_TRAVELLING.set(was_travelling);
    result
}

/// A handle is encoded. Whether that is for another PE.
pub(crate) fn pack(handle: Hold) -> bool {
    let is_travelling = IS_TRAVELLING.get();
    if is_travelling {
        HAS_FOUND.set(true);
        PACKED.with_borrow_mut(|packed| packed.push(handle));
    }
    is_travelling
}

/// A handle has been decoded. Whether it is from another PE.
pub(crate) fn note_arrived(handle: Arc<dyn Arrived>) -> bool {
    let is_travelling = IS_TRAVELLING.get();
    if is_travelling {
        HAS_FOUND.set(true);
        ARRIVED.with_borrow_mut(|arrived| arrived.push(handle));
    }
    is_travelling
}

/// Whether what was encoded or decoded last has handles.
#[inline]
pub(crate) fn is_carrying() -> bool {
    HAS_FOUND.get()
}

/// The handles in what was encoded last.
#[inline]
pub(crate) fn packed() -> Vec<Hold> {
    if HAS_FOUND.replace(false) { PACKED.take() } else { Vec::new() }
}

/// The task that has just arrived cannot begin.
pub(crate) fn is_late(late: Late) {
    IS_LATE.set(true);
    LATE.set(Some(late));
}

/// Why the task that has just arrived has not begun, unless it has.
#[inline]
pub(crate) fn why_late() -> Option<Late> {
    if IS_LATE.replace(false) { LATE.take() } else { None }
}

/// Seats the handles in what was decoded last. Unless all values are there: when they are.
#[inline]
pub(crate) fn arrive<S: Send + Sync + 'static>(site: &Arc<S>) -> Option<Coming> {
    if HAS_FOUND.replace(false) { arrive_all(site.clone()) } else { None }
}

#[cold]
fn arrive_all(site: Arc<dyn Any + Send + Sync>) -> Option<Coming> {
    let arrived = ARRIVED.take();
    let coming: Vec<_> = arrived.into_iter().filter_map(|handle| handle.arrive(&site)).collect();
    if coming.is_empty() {
        return None;
    }
    let is_made = coming.iter().all(|value| value.is_made);
    let end = Box::pin(async move {
        // All of them are on their way already.
        for value in coming {
            value.end.await?;
        }
        Ok(())
    });
    Some(Coming { end, is_made })
}
