//! The recorder: what the threads of this process do, written down as they do it.
//!
//! | file | what |
//! |---|---|
//! | `lane` | what one thread records |
//! | `stretch` | short runs of tasks that are counted together |
//! | `part` | the file, and the thread that writes it |
//!
//! Each thread that runs tasks has a *lane* of its own. It notes a run of a task when that is over,
//! and shares with the thread that writes the file no more than a buffer, into which it puts whole
//! packets. While nothing is recorded, an event costs one load and one branch, and reads no clock.
//!
//! A lane may write 1 MiB at once, and 16 KiB more each second. While it stays within that, each
//! run is a slice of the picture. Runs beyond it that are short are counted, by function, in one
//! slice for all that came one after the other. So a trace of an hour has less than 100 MB a
//! worker, and each run is in it.

mod lane;
mod part;
mod stretch;

pub use part::{Recording, record};
pub use ultramarine_trace::PART;

use crate::code::Name;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use ultramarine_topology::Pe;
use ultramarine_trace::SEARCH;

/// Whether this process records.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// When something begins that may be recorded.
#[inline]
pub(crate) fn begin() -> Option<Instant> {
    IS_ON.load(Ordering::Relaxed).then(Instant::now)
}

/// When a run of a task begins, if that is recorded.
#[inline]
pub(crate) fn begin_run() -> Option<Instant> {
    IS_ON.load(Ordering::Relaxed).then(begin_run_here)
}

#[cold]
#[inline(never)]
fn begin_run_here() -> Instant {
    lane::with_own(|lane| lane.begin_run());
    Instant::now()
}

/// A part of a task has run on this thread since then, or all of it.
#[cold]
#[inline(never)]
pub(crate) fn note_run(name: Option<Name>, begun: Instant) {
    let end = Instant::now();
    lane::with_own(|lane| lane.note_run(name.map_or("a task", |name| name()), begun, end));
}

/// The thread has been in something of this name since then, within a task.
pub fn note_span(name: &'static str, begun: Instant) {
    if IS_ON.load(Ordering::Relaxed) {
        lane::with_own(|lane| lane.note_span(name, begun, Instant::now()));
    }
}

/// The thread has looked for work since then.
pub(crate) fn note_search(begun: Option<Instant>) {
    let Some(begun) = begun else { return };
    lane::with_own(|lane| lane.note_run(SEARCH, begun, Instant::now()));
}

/// The thread is about to sleep: what it has counted so far is written.
pub(crate) fn pause() {
    if IS_ON.load(Ordering::Relaxed) {
        lane::with_own(lane::Lane::flush);
    }
}

/// Gives the calling thread a lane, if this process records.
pub(crate) fn join(pe: Pe, thread: &str) {
    if IS_ON.load(Ordering::Relaxed) {
        part::join(pe, thread);
    }
}

/// Something that a program does within a task and wants to see in the [trace](crate::trace), from
/// its making until it is dropped.
///
/// It stays on its thread: a task that awaits has one before the `.await` and another after it.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct TraceSpan {
    name: &'static str,
    begun: Option<Instant>,
    stays_here: PhantomData<*const ()>,
}

impl TraceSpan {
    /// Begins. While nothing is recorded this does nothing.
    #[inline]
    pub fn begin(name: &'static str) -> Self {
        TraceSpan { name, begun: begin(), stays_here: PhantomData }
    }
}

impl Drop for TraceSpan {
    #[inline]
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            note_span(self.name, begun);
        }
    }
}
