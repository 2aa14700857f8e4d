//! Whether a worker has something to come back to.
//!
//! A thread that waits in rayon's `join` runs whatever job it finds, and a job of ours may be among
//! them. It must not start a task there: the `join` would return only after that. But rayon does
//! not say whether it runs a job from its main loop or inside a wait, nor whether the job below it
//! on the stack was one of the user's, which it had stolen while the worker slept.
//!
//! The stack says it. A call from rayon's main loop always comes from the same few frames, so it is
//! as deep in the stack as the first of all calls was, on any worker. That one cannot have been
//! nested: user's code runs in tasks only, and these are started by such calls. In a wait there are
//! at least the frames of the user's job and of the wait in addition.

use std::cell::Cell;
use std::sync::OnceLock;

/// Calls from rayon's main loop differ by less than this, in bytes, and a wait adds more. Measured
/// at the tests' level of optimisation: 96 for a call to all workers, and 544 for a wait.
const SAME_DEPTH_BYTES: usize = 256;

thread_local! {
    /// Where the stack was when the thread became a worker.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// How far from there the first call of all was.
static FIRST_DEPTH: OnceLock<usize> = OnceLock::new();

#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

/// The calling thread becomes a worker.
pub(crate) fn mark_base() {
    BASE.set(stack_address());
}

/// Whether rayon runs the caller inside a wait. To be asked by a job as the first thing.
#[inline(never)]
pub(crate) fn is_nested() -> bool {
    // In the memory of a stack that has been moved to the heap the distance is arbitrary, and
    // large.
    let depth = BASE.get().wrapping_sub(stack_address());
    let first = *FIRST_DEPTH.get_or_init(|| depth);
    depth.wrapping_sub(first).cast_signed().unsigned_abs() > SAME_DEPTH_BYTES
}
