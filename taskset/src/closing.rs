//! How a set ends although tasks may be added at any instant, also by workers that do not run it.
//!
//! A worker that tries to end the set first marks its end as *closing*, in an attempt with a number
//! of its own. Then it looks at all tasks, and finishes the attempt if each is FINISHED. A worker
//! that adds a task puts it into the table and then looks at the end: if that is closing, it opens
//! it again, and the attempt fails. Either the first sees the task or the second sees the attempt,
//! since all four steps are sequentially consistent.
//!
//! A worker that dies within an attempt leaves the end closing. The next one begins another
//! attempt.

use crate::state::{State, Status};
use crate::sync::AtomicU64;

/// The bit of a set's end that says that it is about to finish; those above it number the attempts.
const CLOSING: u64 = 1;

/// The next attempt's number, open.
fn after(attempt: u64) -> u64 {
    (attempt & !CLOSING) + 2
}

/// An attempt to end a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    closing: State,
    attempt: u64,
}

impl Attempt {
    /// Begins one; `None` if the set has ended, or another worker begins one.
    pub(crate) fn begin(end: &AtomicU64) -> Option<Self> {
        let old = State::load(end);
        let Status::Waiting(attempt) = old.status else { return None };
        let attempt = after(attempt);
        let status = Status::Waiting(attempt | CLOSING);
        old.become_in(end, status).then_some(Self { closing: State { status, ..old }, attempt })
    }

    /// Some task has not finished.
    pub(crate) fn give_up(self, end: &AtomicU64) {
        self.closing.become_in(end, Status::Waiting(self.attempt));
    }

    /// All tasks have finished; `false` if one was added meanwhile.
    pub(crate) fn finish(self, end: &AtomicU64) -> bool {
        self.closing.become_in(end, Status::Finished(0))
    }
}

/// Keeps a set open for a task that is in its table now; `false` if it has ended without it.
pub(crate) fn keep_open(end: &AtomicU64) -> bool {
    loop {
        let state = State::load(end);
        match state.status {
            Status::Waiting(attempt) if attempt & CLOSING == 0 => return true,
            Status::Waiting(attempt) => {
                if state.become_in(end, Status::Waiting(after(attempt))) {
                    return true;
                }
            }
            _ => return false,
        }
    }
}
