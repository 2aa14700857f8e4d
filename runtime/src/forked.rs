//! The child of a `fork` amid a job: a copy of this process with one thread, which must not go on
//! as a second copy of its PE.
//!
//! It has the PE's memory, and its sockets, which it shares with the PE. So it may do what it was
//! made for, such as to start another program; but where it comes back to the runtime, from the
//! task that has forked, it ends. (`pthread_atfork` tells it what it is. Asking for the number of
//! the process after each task would take as long as a small task.)

#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the child says at its end.
const SAID: &str = "ultramarine: a task has called `fork`, and the child has come back from the \
                    task: it ends here. Let it start another program (`exec`), or call `_exit`\n";

/// The code with which it ends.
const CODE: i32 = 1;

/// The number of PEs of this process that take part in a job.
static PES: AtomicUsize = AtomicUsize::new(0);

static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// A PE of this process takes part in a job from now on, until this is dropped.
pub(crate) struct TakesPart(());

impl TakesPart {
    pub(crate) fn begin() -> Self {
        extern "C" fn note() {
            IS_FORKED.fetch_or(PES.load(Ordering::Relaxed) > 0, Ordering::Relaxed);
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function stays where it is, and only sets a variable. Without room for
            // one more function the child is not told.
            unsafe { libc::pthread_atfork(None, None, Some(note)) };
        });
        PES.fetch_add(1, Ordering::Relaxed);
        TakesPart(())
    }
}

impl Drop for TakesPart {
    fn drop(&mut self) {
        PES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this process is the child of a `fork` amid a job.
#[inline]
pub fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Ends this process if it is the child of a `fork` amid a job. To be called where user code comes
/// back to the runtime, and before it does anything with the job.
#[inline]
pub(crate) fn end_if_forked() {
    if is_forked() {
        end();
    }
}

#[cold]
fn end() -> ! {
    // SAFETY: the text is valid for reading. Nothing else may be used: another thread of the parent
    // may have held any lock when it was forked.
    unsafe {
        libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
        libc::_exit(CODE)
    }
}
