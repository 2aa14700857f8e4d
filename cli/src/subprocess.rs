//! Running another program for its output, with an end to the waiting.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register_conditional_default, register_usize};
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long a program that was asked to end may take before it is killed with all that it started.
const GRACE: Duration = Duration::from_secs(5);

/// How long the rest of a program's output is waited for after its end: a process that it has left
/// running may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whether no program is run, so that a signal may end this process as usual.
static IDLE: AtomicBool = AtomicBool::new(true);

/// The signal that has asked this process to end while a program was run; 0 if none has.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// From now on a signal that ends this process first ends the program that it runs: programs are in
/// separate process groups, which Ctrl-C does not reach.
///
/// What this process becomes by `exec` has its signals as they were: the system sees to that, but
/// for those that were ignored (as in the background of a script). These are left so.
///
/// # Errors
///
/// The system does not let this process catch signals.
pub(crate) fn end_on_signals() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for signal in [SIGINT, SIGTERM].into_iter().filter(|signal| !ignores(&status, *signal)) {
        register_conditional_default(signal, &IDLE)?;
        register_usize(signal, &ASKED, signal as usize)?;
    }
    Ok(())
}

/// Whether a process with this status ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends this process if a signal has asked for that.
fn heed_signals() -> io::Result<()> {
    match ASKED.load(Ordering::SeqCst) {
        0 => Ok(()),
        signal => emulate_default_handler(signal as i32),
    }
}

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

/// Runs the command. A program that takes longer than `limit` is ended, with all processes of its
/// group.
///
/// # Errors
///
/// The program cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    busy(|| run_busy(command, limit))?
}

/// Runs these commands all at once, each as [`run`] does.
pub(crate) fn run_all(commands: Vec<Command>, limit: Duration) -> Vec<io::Result<Ended>> {
    let all = || {
        let start = |mut command: Command| thread::spawn(move || run_busy(&mut command, limit));
        let running: Vec<_> = commands.into_iter().map(start).collect();
        let panicked = |_| io::Error::other("its thread has panicked");
        running.into_iter().map(|thread| thread.join().map_err(panicked).flatten()).collect()
    };
    busy(all).unwrap_or_else(|error| vec![Err(error)])
}

/// Works while signals only ask this process to end, and ends it then if one has.
fn busy<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    IDLE.store(false, Ordering::SeqCst);
    let done = work();
    IDLE.store(true, Ordering::SeqCst);
    heed_signals().map(|()| done)
}

fn run_busy(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let out = Listener::to(child.stdout.take());
    let err = Listener::to(child.stderr.take());
    let is_asked = || ASKED.load(Ordering::SeqCst) != 0;
    let status = wait(&mut child, limit, is_asked)?;
    let status = if status.is_none() { end(&mut child).and(Ok(None))? } else { status };
    let deadline = Instant::now() + LAST_WORDS;
    Ok(Ended { status, out: out.heard(deadline), err: err.heard(deadline) })
}

/// How the child ended, if it does in time and before there is another reason to go on.
fn wait(
    child: &mut Child,
    limit: Duration,
    gives_up: impl Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        match child.try_wait()? {
            None if start.elapsed() < limit && !gives_up() => thread::sleep(LOOK_EVERY),
            ended => return Ok(ended),
        }
    }
}

/// Asks the child to end, as launchers pass on, and kills its group if it does not.
fn end(child: &mut Child) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return Ok(()) };
    // It is not reaped yet, so the number is its own.
    let _ = kill_process(pid, Signal::TERM);
    if wait(child, GRACE, || false)?.is_none() {
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
    fn several_run_at_once() {
        // Each waits for the other.
        let folder = tempfile::tempdir().expect("a folder");
        let script = |own: &str, other: &str| {
            let mut command = Command::new("sh");
            let text = format!(": > {own}; until [ -e {other} ]; do sleep 0.01; done; echo {own}");
            command.args(["-c", &text]).current_dir(folder.path());
            command
        };
        let ended = run_all(vec![script("a", "b"), script("b", "a")], Duration::from_secs(30));
        let said: Vec<_> = ended.into_iter().map(|ended| ended.expect("a shell").out).collect();
        assert_eq!(said, ["a\n", "b\n"]);
    }

    #[test]
    fn ignored_signals_are_known() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n";
        assert!(ignores(status, SIGINT) && !ignores(status, SIGTERM));
        assert!(!ignores("", SIGINT));
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
