//! An end to waiting for processes that never start.
//!
//! Until all processes have joined, MPI waits without end for one that ended before it did, or was
//! never started: not every launcher notices.

use crate::log;
use crate::options::Options;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use ultramarine_environment::launcher::Launched;
use ultramarine_runtime::settings::Settings;

/// How long a process that gives up may take to end in order.
const GRACE: Duration = Duration::from_secs(5);

/// Ends the process, with words, unless it is dropped in time. Leaves nothing behind when it is.
pub(super) struct StartDeadline(Option<(Sender<()>, JoinHandle<()>)>);

impl StartDeadline {
    /// Ends this process unless the start takes less than `limit`.
    pub(super) fn set(limit: Duration, launched: Launched) -> Self {
        Self::call_after(limit, move || {
            let Launched { rank, processes, variable } = launched;
            // What MPI does at the exit may wait.
            thread::spawn(|| {
                thread::sleep(GRACE);
                std::process::abort()
            });
            log::log_runtime_line(format_args!(
                "rank {rank} has waited {limit:?} for the other processes to start \
                 ({variable} says that there are {processes}). One of them has probably ended \
                 before it joined: look for what it says, and try it alone. If they are just slow, \
                 set ULTRAMARINE_START_DEADLINE to more, as in 5min"
            ));
            log::flush();
            std::process::exit(1)
        })
    }

    /// Calls `give_up` after `limit`, unless dropped before.
    pub(super) fn call_after(limit: Duration, give_up: impl FnOnce() + Send + 'static) -> Self {
        let (in_time, is_over) = mpsc::channel::<()>();
        let watch = move || {
            if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                give_up();
            }
        };
        // Without a thread to spare the job starts all the same.
        let thread = thread::Builder::new().name("start-deadline".to_owned()).spawn(watch);
        StartDeadline(thread.ok().map(|thread| (in_time, thread)))
    }
}

impl Drop for StartDeadline {
    fn drop(&mut self) {
        if let Some((in_time, thread)) = self.0.take() {
            drop(in_time);
            let _ = thread.join();
        }
    }
}

/// How long the other processes may take to start: what the variables say if this one cannot start.
pub(super) fn start_deadline(options: Option<&Options>) -> Duration {
    let by_variables = Options::default();
    let options = options.unwrap_or(&by_variables);
    let given = options.settings(options.thread_count().unwrap_or(1));
    given.unwrap_or_else(|_| Settings::for_threads(1)).start_deadline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_in_time_ends_the_watch() {
        let (called, is_called) = mpsc::channel::<()>();
        let hour = Duration::from_hours(1);
        drop(StartDeadline::call_after(hour, move || {
            called.send(()).expect("the receiver is there");
        }));
        // The thread has gone, and its end of the channel with it.
        assert_eq!(is_called.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn a_start_that_takes_too_long_is_given_up() {
        let (called, is_called) = mpsc::channel::<()>();
        let limit = Duration::from_millis(1);
        let _deadline = StartDeadline::call_after(limit, move || {
            called.send(()).expect("the receiver is there");
        });
        is_called.recv_timeout(Duration::from_secs(30)).expect("it is called");
    }
}
