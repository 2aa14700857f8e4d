//! Whether a worker's call comes from rayon's main loop, or from inside a wait.
//!
//! A thread that waits in rayon's `join` runs any job it finds, also one of ours. It must not start
//! a task there: the `join` would return only after the task. But rayon does not say whether it
//! runs a job from its main loop or inside a wait. Nor does it say whether the job below on the
//! stack was a user's, stolen while the worker slept.
//!
//! The stack tells. A call from rayon's main loop always comes through the same few frames, so on
//! any worker it is as deep in the stack as the very first call was. That one cannot have been
//! nested: user code runs only in tasks, and tasks are started by such calls. Inside a wait there
//! are at least the frames of the user's job and of the wait in addition.

use std::cell::Cell;
use std::sync::OnceLock;

/// Calls from rayon's main loop differ by less than this, in bytes, and a wait adds more. Measured
/// at the tests' level of optimisation: 96 for a call to all workers, and 544 for a wait.
const SAME_DEPTH_BYTES: usize = 256;

thread_local! {
    /// Where the stack was when the thread became a worker.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// The depth, from there, of the very first call.
static FIRST_DEPTH: OnceLock<usize> = OnceLock::new();

#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

/// Marks the stack of the calling thread, which becomes a worker.
pub(crate) fn mark_base() {
    BASE.set(stack_address());
}

/// Whether rayon runs the caller inside a wait. A job must ask this first of all.
#[inline(never)]
pub(crate) fn is_nested() -> bool {
    // If the stack has been moved to the heap, the distance is arbitrary, and large.
    let depth = BASE.get().wrapping_sub(stack_address());
    let first = *FIRST_DEPTH.get_or_init(|| depth);
    depth.wrapping_sub(first).cast_signed().unsigned_abs() > SAME_DEPTH_BYTES
}
