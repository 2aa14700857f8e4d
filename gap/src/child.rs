//! The process of a GAP: how it is started, watched and ended, and the bytes to and from it.
//!
//! Requests and replies go through pipes of their own, so that nothing that GAP prints gets among
//! them. What it prints goes to the log.

use crate::error::Death;
use crate::settings::Settings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open,
    waitid,
};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Moves requests and replies from standard input and output to the descriptors 3 and 4, has the
/// system kill GAP if the thread dies that started it, and becomes GAP. Not every `setpriv` can
/// have that done; without it, an idle GAP ends as its requests do.
const BECOME_GAP: &str = r#"
exec 3<&0 4>&1 0</dev/null 1>&2
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@"
"#;

/// What GAP runs. It is an argument, so that no file has to be there on any host.
const PACKAGE: &str = concat!(
    include_str!("../pkg/ultramarine/lib/values.g"),
    include_str!("../pkg/ultramarine/lib/worker.g"),
    "UltramarineServe(\"/dev/fd/3\", \"/dev/fd/4\");\n",
);

/// The longest until a caller's wish to give up, or a death where the system has no other way to
/// tell, is seen.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long an idle GAP may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// How long the last lines of a dead GAP are waited for: a process that it started may still hold
/// the pipe.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// This many of the last printed lines are kept, of this many bytes.
const LINES_KEPT: usize = 20;
const LINE_BYTES_MAX: u64 = 1000;

/// When a wait ends without what was waited for.
pub(crate) struct Patience<'a> {
    /// From `since` on.
    pub(crate) limit: Option<Duration>,
    pub(crate) since: Instant,
    pub(crate) is_given_up: Option<&'a dyn Fn() -> bool>,
}

/// Why a request or a reply did not get there.
#[derive(Debug)]
pub(crate) enum Broken {
    Died(Death),
    GivenUp,
}

impl<T: Into<Death>> From<T> for Broken {
    fn from(death: T) -> Self {
        Broken::Died(death.into())
    }
}

pub(crate) struct GapChild {
    child: Child,
    /// It is reaped last, so that its number stays its own until then, and its group's.
    is_reaped: bool,
    /// `None` once it was told to end.
    requests: Option<ChildStdin>,
    replies: ChildStdout,
    /// Readable once the process has ended; older systems have none.
    end: Option<OwnedFd>,
    printed: Arc<Mutex<Printed>>,
    /// The thread that started GAP must live as long as this.
    _keeper: mpsc::Sender<()>,
}

/// What GAP prints.
#[derive(Default)]
struct Printed {
    lines: VecDeque<String>,
    has_ended: bool,
}

impl GapChild {
    /// Starts GAP, which then sends a reply by itself.
    pub(crate) fn start(settings: &Settings) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", BECOME_GAP, "gap"]).arg(&settings.program).args(["-q", "-T"]);
        if !settings.loads_packages {
            command.arg("-A");
        }
        if let Some(bytes) = settings.memory {
            // At the first limit there is an error, at the second GAP ends.
            let kibibytes = (bytes / 1024).max(1);
            command.args(["-o", &format!("{kibibytes}k")]);
            command.args(["-K", &format!("{}k", kibibytes + kibibytes / 4)]);
        }
        command.args(["-c", PACKAGE]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());

        let printed = Arc::new(Mutex::new(Printed::default()));
        let (started, is_started) = mpsc::channel();
        let (keeper, is_needed) = mpsc::channel::<()>();
        let listener = printed.clone();
        thread::Builder::new().name("gap".to_owned()).spawn(move || {
            let mut child = command.spawn();
            let errors = child.as_mut().ok().and_then(|child| child.stderr.take());
            let _ = started.send(child);
            if let Some(errors) = errors {
                listen(errors, &listener);
            }
            let _ = is_needed.recv();
        })?;
        let ended = || io::Error::other("the thread that starts GAP has ended");
        let mut child = is_started.recv().map_err(|_| ended())??;
        let (requests, replies) = child.stdin.take().zip(child.stdout.take()).ok_or_else(ended)?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let gap = GapChild {
            child,
            is_reaped: false,
            end,
            replies,
            printed,
            requests: Some(requests),
            _keeper: keeper,
        };
        for pipe in [gap.replies.as_fd(), gap.requests.as_ref().ok_or_else(ended)?.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(gap)
    }

    /// Whether it has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_reaped || !matches!(self.status(), Ok(None))
    }

    /// How it has ended, unless it runs.
    fn status(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options)
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, request: &[u8], patience: &Patience<'_>) -> Result<(), Broken> {
        let mut left = request;
        while !left.is_empty() {
            let Some(requests) = &mut self.requests else { return Err(self.death().into()) };
            match requests.write(left) {
                Ok(length) => left = &left[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let requests = self.requests.as_ref().map(AsFd::as_fd);
                    if !self.wait(requests, PollFlags::OUT, patience)? {
                        return Err(self.death().into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.death().into()),
            }
        }
        Ok(())
    }

    /// Adds to the buffer what comes next, a part of a reply.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        patience: &Patience<'_>,
    ) -> Result<(), Broken> {
        let mut part = [0; 1 << 14];
        loop {
            match self.replies.read(&mut part) {
                Ok(0) => return Err(self.death().into()),
                Ok(length) => {
                    buffer.extend_from_slice(&part[..length]);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // What it sent before it died is there by then.
                    let replies = Some(self.replies.as_fd());
                    if !self.wait(replies, PollFlags::IN, patience)? {
                        return Err(self.death().into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the pipe is ready, or GAP has ended: then it returns `false`.
    fn wait(
        &self,
        pipe: Option<BorrowedFd<'_>>,
        ready: PollFlags,
        patience: &Patience<'_>,
    ) -> Result<bool, Broken> {
        let mut waited_for: Vec<_> = pipe.iter().map(|pipe| PollFd::new(pipe, ready)).collect();
        waited_for.extend(self.end.iter().map(|end| PollFd::new(end, PollFlags::IN)));
        loop {
            let left = match patience.limit {
                Some(limit) => limit.saturating_sub(patience.since.elapsed()),
                None => Duration::MAX,
            };
            if let Some(limit) = patience.limit.filter(|_| left.is_zero()) {
                return Err(Death::TooSlow { limit }.into());
            }
            if patience.is_given_up.is_some_and(|is_given_up| is_given_up()) {
                return Err(Broken::GivenUp);
            }
            let looks = patience.is_given_up.is_some() || self.end.is_none();
            let left = if looks { left.min(LOOK_EVERY) } else { left };
            let time = Timespec::try_from(left).ok();
            match poll(&mut waited_for, time.as_ref()) {
                Ok(0) if self.end.is_none() && self.is_dead() => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(pipe.is_some() && !waited_for[0].revents().is_empty()),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// How it ended, which it has done or is about to.
    fn death(&self) -> Death {
        let deadline = Instant::now() + GRACE;
        while !self.is_dead() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        match self.status() {
            Err(error) => io::Error::from(error).into(),
            Ok(None) => Death::BadReply { reason: "it has closed its pipe".to_owned() },
            Ok(Some(_)) if is_about_memory(&self.last_words()) => Death::OutOfMemory,
            Ok(Some(status)) => match status.terminating_signal() {
                Some(signal) => Death::Killed { signal },
                None => Death::Exited { code: status.exit_status().unwrap_or_default() },
            },
        }
    }

    /// The last lines that it printed. If it is dead, they are the last of all.
    pub(crate) fn last_words(&self) -> String {
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
            if printed.has_ended || Instant::now() > deadline {
                return printed.lines.iter().fold(String::new(), |mut text, line| {
                    // Writing to a string never fails.
                    let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { "\n" });
                    text
                });
            }
            drop(printed);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Tells it to end once it is idle.
    pub(crate) fn ask_to_end(&mut self) {
        self.requests = None;
    }

    /// Kills it now, with all that it has started.
    pub(crate) fn kill(&mut self) {
        if !self.is_reaped {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.is_reaped = true;
        }
    }
}

impl Drop for GapChild {
    fn drop(&mut self) {
        self.ask_to_end();
        let patience = Patience { limit: Some(GRACE), since: Instant::now(), is_given_up: None };
        while !self.is_dead() && self.wait(None, PollFlags::IN, &patience).is_ok() {}
        self.kill();
    }
}

/// Whether what GAP says is that it may have no more memory.
pub(crate) fn is_about_memory(text: &str) -> bool {
    text.contains("cannot extend the workspace") || text.contains("the pre-set memory limit")
}

/// Logs what GAP prints, line by line, and keeps the last ones.
fn listen(errors: ChildStderr, printed: &Mutex<Printed>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(1..) = errors.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        tracing::info!("GAP prints: {text}");
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.lines.push_back(text);
        if printed.lines.len() > LINES_KEPT {
            printed.lines.pop_front();
        }
    }
    printed.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
}
