//! Running another program for its output, with an end to the waiting.
//!
//! The command `ultramarine`, the benchmarks, the chores and the tests all start programs that may
//! hang. No program of a user is linked with this.
//!
//! ```
//! use std::process::Command;
//! use std::time::Duration;
//! use ultramarine_subprocess::run;
//!
//! let ended = run(Command::new("echo").arg("hello"), Duration::from_secs(10))?;
//! assert!(ended.succeeded());
//! assert_eq!(ended.out, "hello\n");
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest until another reason to end a program is seen.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a program that was asked to end may take before it is killed with all that it started.
const GRACE: Duration = Duration::from_secs(5);

/// How long the rest of a program's output is waited for after its end: a process that it has left
/// running may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a program said, and how it ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// `None` if it took too long and was ended.
    pub status: Option<ExitStatus>,
    /// The time from its start to its end.
    pub took: Duration,
    /// What it wrote to its standard output.
    pub out: String,
    /// What it wrote to its standard error, unless that is shown.
    pub err: String,
}

impl Ended {
    /// Whether it has ended by itself, and reported success.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last line of its complaints, or of its output if it has none.
    pub fn last_line(&self) -> &str {
        let last = |text| str::lines(text).map(str::trim).rfind(|line| !line.is_empty());
        last(&self.err).or_else(|| last(&self.out)).unwrap_or("it says nothing")
    }
}

/// Runs the command, which has nothing to read, to its end. A program that takes longer than
/// `limit` is asked to end (SIGTERM), and killed 5 s later: with its process group, if it has one
/// of its own.
///
/// # Errors
///
/// The program cannot be started, or not be waited for.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    run_unless(command, limit, || false)
}

/// [`run`], but what the program writes to its standard error goes where this process's own goes.
///
/// # Errors
///
/// As of [`run`].
pub fn run_with_errors_shown(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    watch(command.stderr(Stdio::inherit()), limit, || false)
}

/// [`run`], but the program is also ended, within some 20 ms, once it `is_given_up`.
///
/// # Errors
///
/// As of [`run`].
pub fn run_unless(
    command: &mut Command,
    limit: Duration,
    is_given_up: impl Fn() -> bool,
) -> io::Result<Ended> {
    watch(command.stderr(Stdio::piped()), limit, is_given_up)
}

fn watch(
    command: &mut Command,
    limit: Duration,
    is_given_up: impl Fn() -> bool,
) -> io::Result<Ended> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let out = Listener::to(child.stdout.take());
    let err = Listener::to(child.stderr.take());
    let status = wait(&mut child, limit, is_given_up)?;
    if status.is_none() {
        end(&mut child)?;
    }
    let (took, deadline) = (start.elapsed(), Instant::now() + LAST_WORDS);
    Ok(Ended { status, took, out: out.heard(deadline), err: err.heard(deadline) })
}

/// How the child ended, if it does in time and is not given up before.
fn wait(
    child: &mut Child,
    limit: Duration,
    is_given_up: impl Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    // Older systems have no such thing: there it is looked at now and then.
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
    loop {
        let ended = child.try_wait()?;
        let left = limit.saturating_sub(start.elapsed());
        if ended.is_some() || left.is_zero() || is_given_up() {
            return Ok(ended);
        }
        let Some(process) = &process else {
            thread::sleep(left.min(LOOK_EVERY / 10));
            continue;
        };
        let time = Timespec::try_from(left.min(LOOK_EVERY)).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks the child to end, as launchers pass on, and kills it if it does not.
fn end(child: &mut Child) -> io::Result<()> {
    // It is not reaped yet, so the number is its own.
    let pid = Pid::from_child(child);
    let _ = kill_process(pid, Signal::TERM);
    if wait(child, GRACE, || false)?.is_none() {
        // There is such a group if the command has asked for one.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = child.kill();
        child.wait()?;
    }
    Ok(())
}

/// Reads a pipe, so that it never fills up and holds its writer.
struct Listener {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Listener {
    fn to(pipe: Option<impl Read + Send + 'static>) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let thread = pipe.map(|mut pipe| {
            let text = text.clone();
            thread::spawn(move || {
                let mut part = [0; 4096];
                while let Ok(length @ 1..) = pipe.read(&mut part) {
                    let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                    text.extend_from_slice(&part[..length]);
                }
            })
        });
        Listener { text, thread }
    }

    /// What has come by the end of the pipe, or by the deadline.
    fn heard(self, deadline: Instant) -> String {
        let is_reading = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while is_reading() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        run(Command::new("sh").args(["-c", script]), limit).expect("a shell")
    }

    #[test]
    fn output_and_code_are_heard() {
        let ended = shell("echo one; echo two >&2; exit 3", Duration::from_secs(30));
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
        assert_eq!((ended.out.as_str(), ended.last_line()), ("one\n", "two"));
        assert!(!ended.succeeded());
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let ended = shell("echo begun; exec sleep 1000", Duration::from_millis(200));
        assert!(ended.status.is_none());
        assert_eq!(ended.out, "begun\n");
    }

    #[test]
    fn what_is_given_up_is_ended() {
        let start = Instant::now();
        let mut sleep = Command::new("sleep");
        let ended = run_unless(sleep.arg("1000"), Duration::from_mins(1), || true);
        assert!(ended.expect("it is everywhere").status.is_none());
        assert!(start.elapsed() < GRACE);
    }

    #[test]
    fn what_is_left_running_is_not_waited_for() {
        let ended = shell("(sleep 20; echo late) & echo gone", Duration::from_mins(1));
        assert!(ended.succeeded());
        assert_eq!(ended.out, "gone\n");
    }
}
