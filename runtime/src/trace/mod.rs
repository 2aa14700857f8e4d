//! The recorder: what the threads of this process do, written down as they do it.
//!
//! | file | what |
//! |---|---|
//! | `track` | what one thread records |
//! | `item` | what goes from it to the file |
//! | `stretch` | runs that are counted together |
//! | `clock` | what time it is |
//! | `encoder` | how it becomes packets |
//! | `part` | the file, and the thread that writes it |
//!
//! Each thread that runs tasks has a *track* of its own. A *run* is what it does of a task without
//! a break: until the task waits, or ends. It is noted when it is over. The thread that writes the
//! file takes from each track what is there, ten times a second. A PE has a track as well, with
//! what happens to it and what it counts. While nothing is recorded, an event costs one load and
//! one branch, and reads no clock.
//!
//! A track may write 1 MiB at once, and 16 KiB more each second. While it stays within that, each
//! run is a slice of the picture. Else runs are counted, by function, until there is room for the
//! slice that stands for all of them. So no run is missing in the sums, and a trace of an hour has
//! at most 60 MB a thread.

mod clock;
mod encoder;
mod item;
mod part;
mod stretch;
mod track;

pub use clock::Skew;
pub use part::{Recording, record};
pub use ultramarine_trace::is_part;

use crate::code::Name;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use ultramarine_topology::Pe;
use ultramarine_trace::{RAYON, SEARCH};

/// The number of the recording that goes on; 0 if none does.
static CURRENT: AtomicU64 = AtomicU64::new(0);

/// Whether this process records.
#[inline]
pub fn is_on() -> bool {
    CURRENT.load(Ordering::Relaxed) != 0
}

/// When a run begins, if that is recorded. It is to be noted, or called off.
#[inline]
pub(crate) fn begin_run() -> Option<Instant> {
    is_on().then(begin_run_here)
}

#[cold]
#[inline(never)]
fn begin_run_here() -> Instant {
    track::begin_run();
    Instant::now()
}

/// A run of this function is over.
#[cold]
#[inline(never)]
pub(crate) fn note_run(name: Option<Name>, begun: Instant) {
    note(name.map_or("a task", |name| name()), begun);
}

/// What has begun then was no task, but a search for one.
pub(crate) fn note_search(begun: Option<Instant>) {
    begun.into_iter().for_each(|begun| note(SEARCH, begun));
}

/// What has begun then was nothing.
pub(crate) fn call_off(begun: Option<Instant>) {
    if begun.is_some() {
        track::call_off();
    }
}

/// Runs `yield_now`, which says whether it has run a job of rayon. There mostly is none: so the
/// clock is read afterwards only. A job began then, or when the last run ended.
pub(crate) fn note_rayon(begun: Option<Instant>, yield_now: impl FnOnce() -> bool) {
    if !is_on() {
        yield_now();
        return;
    }
    track::begin_run();
    if yield_now() {
        track::note_run(RAYON, begun, Instant::now());
    } else {
        track::call_off();
    }
}

fn note(name: &'static str, begun: Instant) {
    track::note_run(name, Some(begun), Instant::now());
}

/// Something has happened to a PE, or it has heard of it.
pub(crate) fn note_event(pe: Pe, text: impl FnOnce() -> String) {
    if is_on() {
        part::with_pe(pe, |track| track.note_event(text(), Instant::now()));
    }
}

/// What the clock of another PE said when this process's said something else, in nanoseconds since
/// 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) pe: Pe,
    pub(crate) theirs: u64,
    pub(crate) ours: u64,
    /// How wrong that may be.
    pub(crate) error: u64,
}

/// What time it is in this process's trace, in nanoseconds since 1970, if it has one.
pub(crate) fn now() -> Option<u64> {
    is_on().then(part::now).flatten()
}

/// A PE has compared its clock with another one's.
pub(crate) fn note_clock(pe: Pe, compared: Compared) {
    part::with_pe(pe, |track| track.note_clock(compared, Instant::now()));
}

/// What a PE has counted by now.
pub(crate) fn note_counters(pe: Pe, counters: Vec<(String, u64)>, is_last: bool) {
    part::with_pe(pe, |track| track.note_counters(counters, Instant::now(), is_last));
}

/// The thread has been in something of this name since then, within a task.
pub fn note_span(name: &'static str, begun: Instant) {
    if is_on() {
        track::note_span(name, begun, Instant::now());
    }
}

/// Gives the calling thread a track, if this process records.
pub(crate) fn join(pe: Pe, thread: &str) {
    if is_on() {
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
        TraceSpan { name, begun: is_on().then(Instant::now), stays_here: PhantomData }
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
