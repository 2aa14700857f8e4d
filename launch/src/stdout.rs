//! What a program has printed, at the end of its job.

use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a task or a thread that goes on after the job may hold standard output.
const FREE_WITHIN: Duration = Duration::from_secs(2);

/// Writes what is still to be written. Waits for the reader, and not for a thread that keeps the
/// lock of standard output for ever: Rust does not wait for that at the end of a program, either.
/// (It can try the lock. Others cannot, so a thread does the waiting.)
///
/// # Errors
///
/// Output that is written in part is as wrong as any other wrong result.
pub(crate) fn flush() -> Result<()> {
    let (told, hears) = mpsc::channel();
    let flush = move || {
        let mut stdout = io::stdout().lock();
        let _ = told.send(Ok(()));
        let _ = told.send(stdout.flush());
    };
    let Ok(thread) = thread::Builder::new().name("stdout".to_owned()).spawn(flush) else {
        return io::stdout().flush().map_err(Error::Output);
    };
    // While its reader is slow, a thread may only be waiting for it.
    while hears.recv_timeout(FREE_WITHIN).is_err() {
        if !is_writable() {
            continue;
        }
        tracing::warn!(
            "a task or a thread that goes on after the job holds standard output: a line that it \
             has begun may be lost"
        );
        return Ok(());
    }
    let written = hears.recv().unwrap_or(Ok(()));
    let _ = thread.join();
    written.map_err(Error::Output)
}

/// Whether standard output takes something now.
fn is_writable() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut is_ready = [PollFd::new(&stdout, PollFlags::OUT)];
    poll(&mut is_ready, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
