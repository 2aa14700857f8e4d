//! Running another program for its output, with an end to the waiting.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long a program that was asked to end may take before it is killed with all that it started.
const GRACE: Duration = Duration::from_secs(5);

/// After a program has ended, the rest of its output is waited for so long: what it has left
/// running may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if it took too long and was ended.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last line of its complaints, or of its output if it has none.
    pub(crate) fn last_line(&self) -> &str {
        let last = |text| str::lines(text).map(str::trim).rfind(|line| !line.is_empty());
        last(&self.err).or_else(|| last(&self.out)).unwrap_or("it says nothing")
    }
}

/// Runs the command, for at most so long. A program that takes longer is ended, with all processes
/// of its group.
///
/// # Errors
///
/// The program cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let out = Listener::to(child.stdout.take());
    let err = Listener::to(child.stderr.take());
    let status = wait(&mut child, limit)?;
    let status = if status.is_none() { end(&mut child).and(Ok(None))? } else { status };
    let deadline = Instant::now() + LAST_WORDS;
    Ok(Ended { status, out: out.heard(deadline), err: err.heard(deadline) })
}

/// How the child ended, if it does in time.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        match child.try_wait()? {
            None if start.elapsed() < limit => thread::sleep(LOOK_EVERY),
            ended => return Ok(ended),
        }
    }
}

/// Asks the child to end, as launchers pass on, and kills its group if it does not.
fn end(child: &mut Child) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return Ok(()) };
    // It is not reaped yet, so the number is its own.
    let _ = kill_process(pid, Signal::TERM);
    if wait(child, GRACE)?.is_none() {
        let _ = kill_process_group(pid, Signal::KILL);
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
            thread::sleep(LOOK_EVERY);
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
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let ended = shell("echo begun; exec sleep 1000", Duration::from_millis(200));
        assert!(ended.status.is_none());
        assert_eq!(ended.out, "begun\n");
    }

    #[test]
    fn what_is_left_running_is_not_waited_for() {
        let ended = shell("(sleep 20; echo late) & echo gone", Duration::from_mins(1));
        assert!(ended.succeeded());
        assert_eq!(ended.out, "gone\n");
    }
}
