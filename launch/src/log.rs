//! What the runtime has to say, on standard error.
//!
//! Standard error may fail or block: the disk is full, the launcher is dead or stopped, no process
//! reads the pipe. No part of a job may fail or block with it. So a line goes into a bounded queue,
//! and a thread that does nothing else writes it. A line that cannot be written is dropped. A line
//! that finds the queue full is dropped and counted.
//!
//! The same holds for panics: Rust's default hook writes their messages on the thread that panics.
//!
//! (The crate `tracing-appender` has such a thread, but says on standard error that it did not get
//! on with standard error.)

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::panic::PanicHookInfo;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::executor::{caught_code, panic_message};
use ultramarine_runtime::forked::is_forked;

/// The most bytes that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How long the process waits before its end for what it has said to be written. (A reader that is
/// slower than this loses the rest.)
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// Where standard error goes from this process.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        // Not `Stderr`, which is locked while it is written to: all others would wait, too.
        match io::stderr().as_fd().try_clone_to_owned() {
            Ok(stderr) => Log::to(File::from(stderr)),
            Err(_) => Log::to(io::sink()),
        }
    })
}

/// Writes a line to standard error, some time soon: never waits, and drops what cannot be written.
///
/// `eprintln!` blocks the task if standard error is a full pipe, and panics if the disk is full.
pub fn log_line(line: impl Display) {
    log_text(format_args!("{line}\n"));
}

/// The same for a text that need not be a line.
pub(crate) fn log_text(text: impl Display) {
    log().write(text.to_string().into_bytes());
}

/// Writes a line in the name of the runtime.
#[cfg(feature = "mpi")]
pub(crate) fn log_runtime_line(line: impl Display) {
    log_line(format_args!("ultramarine: {line}"));
}

/// What `tracing` writes lines to.
pub(crate) fn writer() -> impl Write {
    Lines(log())
}

/// Waits until what was said is written, or for `FLUSH_WITHIN`. To be called where the process may
/// end.
pub(crate) fn flush() {
    log().flush(FLUSH_WITHIN);
}

/// The job has ended: what was said is written, or given up. If standard error blocks, `/dev/null`
/// takes its place, or the program would block when its `main` returns an error.
pub(crate) fn end() {
    let deadline = Instant::now() + FLUSH_WITHIN;
    if !(log().flush(FLUSH_WITHIN) && is_writable(deadline)) {
        let nowhere = File::options().write(true).open("/dev/null");
        let _ = nowhere.map(rustix::stdio::dup2_stderr);
    }
}

/// Waits until standard error can be written to without blocking, until the deadline at most.
/// Returns whether it can.
fn is_writable(deadline: Instant) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stderr = io::stderr();
    let patience = deadline.saturating_duration_since(Instant::now());
    let patience = Timespec::try_from(patience).unwrap_or_default();
    let asked = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&patience));
    // There is no waiting for a file that cannot be polled.
    !matches!(asked, Ok(0))
}

/// Has panics reported here, unless the program has set a panic hook.
pub(crate) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let found = std::panic::take_hook();
        // What is there when there is none.
        let default = std::panic::take_hook();
        #[allow(ambiguous_wide_pointer_comparisons, reason = "if in doubt the hook stays")]
        let is_default = std::ptr::eq(&raw const *found, &raw const *default);
        std::panic::set_hook(if is_default { Box::new(report) } else { found });
    });
}

/// Says what Rust's own hook says. Waits until that is written, if the writer gets on: the panic
/// may end the process.
///
/// A panic of a task, a node or the like becomes an error. So it is one line, unless a full
/// backtrace is asked for: there may be as many of them as there are tasks.
fn report(panic: &PanicHookInfo<'_>) {
    let is_full = std::env::var_os("RUST_BACKTRACE").is_some_and(|how| how == "full");
    if let Some(code) = caught_code().filter(|_| !is_full) {
        let place = panic.location().map_or_else(|| "?".to_owned(), ToString::to_string);
        let message = panic_message(panic.payload());
        log().write(format!("ultramarine: {code} panicked at {place}: {message}\n").into_bytes());
        return flush();
    }
    let thread = thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let backtrace = Backtrace::capture();
    let more = match backtrace.status() {
        BacktraceStatus::Captured => format!("stack backtrace:\n{backtrace}"),
        _ => "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace".into(),
    };
    log().write(format!("\nthread '{name}' {panic}\n{}\n", more.trim_end()).into_bytes());
    flush();
}

/// Lines for [`Log`].
struct Lines(&'static Log);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A queue of lines, and the thread that writes them, once there is one to write.
struct Log(Arc<Queue>);

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// What the thread writes to.
    out: Mutex<Box<dyn Write + Send>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// How many lines found no room since the last one that was written.
    dropped: u64,
    has_thread: bool,
    /// Since when the thread has been writing one line.
    writing_since: Option<Instant>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what comes, for ever.
    fn write(&self) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        loop {
            let Some(line) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.waiting_bytes -= line.len();
            state.writing_since = Some(Instant::now());
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            if dropped > 0 {
                let _ = writeln!(out, "ultramarine: {dropped} lines were dropped here");
            }
            let _ = out.write_all(&line);
            state = self.state();
            state.writing_since = None;
            self.changed.notify_all();
        }
    }
}

impl Log {
    fn to(out: impl Write + Send + 'static) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Log(Arc::new(Queue { state, changed, out: Mutex::new(Box::new(out)) }))
    }

    /// Queues a line, if there is room for it. Never waits.
    fn write(&self, line: Vec<u8>) {
        if is_forked() {
            // Its parent alone has the thread, which may have held the lock.
            let _ = rustix::io::write(rustix::stdio::stderr(), &line);
            return;
        }
        let mut state = self.0.state();
        if state.waiting_bytes + line.len() > WAITING_BYTES_MAX {
            state.dropped += 1;
            return;
        }
        state.waiting_bytes += line.len();
        state.waiting.push_back(line);
        let has_thread = std::mem::replace(&mut state.has_thread, true);
        drop(state);
        self.0.changed.notify_all();
        if !has_thread {
            let queue = self.0.clone();
            let thread = thread::Builder::new().name("log".to_owned());
            // The next line tries again.
            let started = thread.spawn(move || queue.write());
            self.0.state().has_thread = started.is_ok();
        }
    }

    /// Waits until all is written, for at most `within`; not at all if the writing thread has been
    /// stuck for that long. Returns whether all is written.
    fn flush(&self, within: Duration) -> bool {
        if is_forked() {
            return true;
        }
        let is_stuck = |since: Instant| since.elapsed() >= within;
        if self.0.state().writing_since.is_some_and(is_stuck) {
            return false;
        }
        let is_busy = |state: &mut State| {
            state.has_thread && (state.writing_since.is_some() || !state.waiting.is_empty())
        };
        let waited = self.0.changed.wait_timeout_while(self.0.state(), within, is_busy);
        let (_state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Writes nothing before it is allowed to.
    struct Gate(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Open for good once the test has let go of it.
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Log, Sender<()>, Receiver<Vec<u8>>) {
        let ((key, gate), (out, written)) = (channel(), channel());
        (Log::to(Gate(gate, out)), key, written)
    }

    #[test]
    fn lines_are_written_in_order() {
        let (log, gate, written) = gated();
        drop(gate);
        let lines: Vec<_> = (0..1000).map(|n| format!("{n}\n").into_bytes()).collect();
        lines.iter().for_each(|line| log.write(line.clone()));
        assert!(log.flush(Duration::from_mins(1)));
        assert_eq!(written.try_iter().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn who_writes_does_not_wait_and_hears_later_what_was_dropped() {
        let (log, gate, written) = gated();
        let line = vec![b'.'; WAITING_BYTES_MAX / 8];
        (0..20).for_each(|_| log.write(line.clone()));
        assert!(!log.flush(Duration::from_millis(1)), "nothing is written");
        drop(gate);
        assert!(log.flush(Duration::from_mins(1)));
        let lines: Vec<_> = written.try_iter().collect();
        let count = lines.iter().filter(|written| **written == line).count();
        assert!((8..=9).contains(&count), "{count}");
        // Two notes, if the writing thread took up its first line while others were dropped.
        let text = String::from_utf8(lines.concat()).unwrap();
        let numbers = text.lines().filter_map(|note| note.split_whitespace().nth(1));
        let dropped: usize = numbers.map(|number| number.parse::<usize>().unwrap()).sum();
        assert_eq!(count + dropped, 20);
    }

    #[test]
    fn what_cannot_be_written_is_given_up() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::to(Full);
        (0..3).for_each(|_| log.write(b"lost\n".to_vec()));
        assert!(log.flush(Duration::from_mins(1)));
    }
}
