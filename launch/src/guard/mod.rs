//! A small parent between the launcher and the program, so that the launcher does not end a job
//! that survives the death of a process.
//!
//! Launchers take a process that dies by a signal for the failure of the job and kill the rest of
//! it. So a process that a launcher has started splits before MPI starts: the first, whom the
//! launcher knows, becomes the *guard*; its child, the *ward*, goes on as the program.
//!
//! ```text
//!  launcher ─── guard (rank 0) ─── program        the guard waits, hands signals on, and
//!           ├── guard (rank 1) ─── program        exits as its ward does;
//!           └── guard (rank 2)     † SIGKILL      but here it takes leave and exits with 0
//! ```
//!
//! - Once the job is made up ([`Ward::joined`]), a ward other than the root that dies by a signal
//!   is mourned in one line, and the launcher is told that it has left in peace (see [`farewell`]).
//!   A signal that the guard got, too, was meant to end it, and is no accident.
//! - A ward that calls `exit` amid the job has died as well, whatever the code (see
//!   [`end_amid_job`]).
//! - Ctrl-C: a ward that ends by SIGINT is no failure. Its guard takes leave for it, and exits with
//!   130. (Were it to end by SIGINT itself, hydra would kill the others and or their ends together:
//!   2 and 9 make 11, a segmentation fault.) A ward that listens for interrupts is killed at the
//!   second.
//! - What ends otherwise ends the guard in the same way: with that code, or by that signal, which
//!   the guard names unless it was meant to end the job.
//! - The end of the guard ends the ward (see [`start`]), and the end of the launcher ends both (see
//!   [`lineage`]). Nobody is left over.
//! - A ward that is stopped for so long that the others have given it up is killed (see
//!   [`standstill`]).
//! - A ward that leaves without finalising MPI, since somebody has died, says so
//!   ([`Ward::leaves`]), and the guard takes leave for it.
//! - What the MPI library of such a ward, or of one that was killed, would leave in shared memory,
//!   the guard removes (see [`segments`], and [`sweep`] for a start that fails).
//!
//! A process with several threads cannot split. It starts itself anew, as the guard from the
//! outset, before its `main`; and that starts the program as its child. What `main` did before it
//! came here happens twice then.
//!
//! The ward talks to the guard through a socket (see [`told`]): what was said before a death is
//! always heard.

mod farewell;
mod lineage;
mod segments;
mod standstill;
mod start;
mod sweep;
mod sys;
mod told;
mod watch;

use self::farewell::Server;
use self::lineage::Lineage;
use self::segments::Segment;
use self::start::Start;
use self::sys::Fork;
use crate::options::Options;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use ultramarine_environment::launcher::{Launched, launched};
use ultramarine_environment::variables;

/// The variable that says what has been done, so that nobody is guarded twice.
const MARK: &str = variables::GUARDED.name;

/// Its value in a process that is to become a guard before `main`.
const BEGIN: &str = "begin";

/// How long a process that calls `exit` amid the job may take to write what C code has printed: a
/// thread that waits for input may keep it from that for ever.
const EXIT_SECONDS_MAX: u32 = 5;

/// The process whose job goes on; 0 if there is none.
static AMID_JOB: AtomicU32 = AtomicU32::new(0);

/// The way to this process's guard, for those who do not have its [`Ward`].
static WAY: OnceLock<UnixStream> = OnceLock::new();

/// What [`MARK`] says.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing: the launcher has just started this process.
    None,
    /// The guard was to be made before `main`, and was not.
    Failed(String),
    /// The guard has this number, and the ward tells it things through this socket.
    Guarded { guard: u32, way: RawFd },
}

impl Mark {
    fn read(text: Option<&str>) -> Self {
        let guarded = |text: &str| {
            let (guard, way) = text.split_once(':')?;
            Some(Mark::Guarded { guard: guard.parse().ok()?, way: way.parse().ok()? })
        };
        match text {
            None => Mark::None,
            Some(BEGIN) => Mark::Failed("nothing runs before main here".to_owned()),
            Some(text) => guarded(text).unwrap_or_else(|| Mark::Failed(text.to_owned())),
        }
    }

    fn text(guard: u32, way: &UnixStream) -> String {
        format!("{guard}:{}", way.as_raw_fd())
    }
}

/// Puts a guard between the launcher and this process, if that is wanted and of use; comes back in
/// the process that goes on as the program. To be called before MPI starts. Where no guard can be
/// had, says why and goes on.
pub(crate) fn stand(options: Option<&Options>, launched: Launched) -> Ward {
    // Nobody survives the only process.
    if launched.processes < 2 || !options.is_none_or(Options::is_guarded) {
        return Ward::with(None);
    }
    split_or_start_anew(launched).unwrap_or_else(|reason| {
        tracing::warn!(
            "rank {} goes on without a guard ({reason}): if it is killed, the launcher may end the \
             whole job",
            launched.rank
        );
        Ward::with(None)
    })
}

fn split_or_start_anew(launched: Launched) -> io::Result<Ward> {
    match Mark::read(variables::text(MARK).as_deref()) {
        Mark::None if sys::is_alone() => split(launched),
        Mark::None => Err(run_again(BEGIN)),
        Mark::Failed(reason) => Err(io::Error::other(reason)),
        // The program of another ward has started this one.
        Mark::Guarded { guard, .. } if guard != parent_id() => Ok(Ward::with(None)),
        Mark::Guarded { guard, way } => {
            let way = sys::inherited(way)?;
            end_with(guard);
            Ok(Ward::with(Some(way.into())))
        }
    }
}

/// The process that the guard watches over.
#[derive(Debug)]
pub(crate) struct Ward {
    /// The way to the guard, if there is one.
    guard: Option<UnixStream>,
    /// Before MPI starts.
    began: SystemTime,
    /// Until it joins the job.
    start: Option<Start>,
}

impl Ward {
    fn with(guard: Option<UnixStream>) -> Self {
        let began = SystemTime::now();
        if let Some(way) = &guard {
            // A guard that is no more is killing this process.
            let _ = told::starts(way, began);
        }
        if let Some(way) = guard.as_ref().and_then(|way| way.try_clone().ok()) {
            let _ = WAY.set(way);
        }
        // Without a thread to spare it just ends with its guard.
        let start = guard.as_ref().and_then(|way| Start::begin(way, began).ok());
        Ward { guard, began, start }
    }

    /// Whether there is a guard.
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// From now on the job survives the death of this process by a signal, unless it is the root,
    /// and gives it up when it is stopped for longer than `stalled_after`. To be called after MPI
    /// has started.
    pub(crate) fn joined(&mut self, stalled_after: Duration) {
        if let Some(way) = &self.guard {
            let segments = Segment::own(self.began);
            let _ = told::joined(way, stalled_after, &Server::own(), &segments);
            AMID_JOB.store(std::process::id(), Ordering::SeqCst);
            sys::at_exit(end_amid_job);
        }
        if let Some(start) = self.start.take() {
            start.end();
        }
    }

    /// MPI was finalised, together with all other processes.
    pub(crate) fn finalised(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(way) = &self.guard {
            let _ = told::finalised(way);
            wake_guard();
        }
    }

    /// This process is about to end the whole job through MPI.
    pub(crate) fn aborts(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(way) = &self.guard {
            let _ = told::aborts(way);
        }
    }

    /// This process will end without finalising MPI. The guard takes leave of the launcher for it,
    /// and what libraries would do at its end is left out: they may wait for a process that is
    /// dead. The program's own code goes on to its end, and decides with which code.
    pub(crate) fn leaves(self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(way) = &self.guard {
            let _ = told::leaves(way);
            wake_guard();
        } else {
            // This much can be done without one.
            Segment::own(self.began).iter().for_each(Segment::remove);
            if std::env::var_os("PMI_FD").is_some() {
                let _ = farewell::say(Server::own());
            }
        }
        sys::end_without_ado();
    }
}

/// Ends a process that calls `exit` amid the job, in a task say. It ends at once, as by `abort`:
/// what the MPI library does at an exit may wait for others, and its threads still run.
extern "C" fn end_amid_job(code: i32, _: *mut std::ffi::c_void) {
    // What this process has started without a new program ends here, too.
    if AMID_JOB.load(Ordering::SeqCst) == std::process::id() {
        sys::end_within(EXIT_SECONDS_MAX);
        sys::flush_and_exit(code)
    }
}

/// Has the guard end this process at the second interrupt. Whether there is a guard.
pub(crate) fn counts_interrupts() -> bool {
    WAY.get().is_some_and(|way| told::listens(way).is_ok())
}

/// Has a guard that somebody has stopped go on: the launcher waits for it.
fn wake_guard() {
    sys::send(parent_id() as i32, libc::SIGCONT);
}

/// Splits this process, which has one thread, in guard and ward.
fn split(launched: Launched) -> io::Result<Ward> {
    let (of_guard, of_ward) = UnixStream::pair()?;
    let guard = std::process::id();
    let held = sys::hold_signals();
    match sys::fork() {
        Ok(Fork::Parent { child }) => watch::over(child, launched, &of_guard),
        Ok(Fork::Child) => {
            sys::restore_signals(&held);
            end_with(guard);
            sys::set_variable(MARK, &Mark::text(guard, &of_ward))?;
            Ok(Ward::with(Some(of_ward)))
        }
        Err(error) => {
            sys::restore_signals(&held);
            Err(error)
        }
    }
}

/// Becomes a guard, if this process was started anew to be one, and starts the program. Called
/// before `main`.
fn before_main() {
    if variables::text(MARK).as_deref() == Some(BEGIN)
        && let Err(error) = guard_from_the_outset()
    {
        let _ = sys::set_variable(MARK, &error.to_string());
    }
    if let Some(launched) = launched(variables::text) {
        let is_new = variables::text(MARK).is_none() && Lineage::own(launched.variable).is_direct();
        if is_new && launched.processes > 1 {
            crate::world::early_end::expect_run();
        }
    }
    // Only here a test has a process with one thread.
    #[cfg(test)]
    tests::programs::before_main();
}

fn guard_from_the_outset() -> io::Result<()> {
    let launched = launched(variables::text).ok_or_else(|| io::Error::other("no launcher"))?;
    let (of_guard, of_ward) = UnixStream::pair()?;
    let held = sys::hold_signals();
    let guard = std::process::id();
    let mark = Mark::text(guard, &of_ward);
    let program = || {
        sys::restore_signals(&held);
        sys::hand_down(&of_ward);
        // Holds beyond the start of the program.
        end_with(guard);
        let error = run_again(&mark);
        let _ = writeln!(io::stderr(), "ultramarine: the program cannot be started: {error}");
    };
    match sys::fork_and(program) {
        Ok(child) => watch::over(child, launched, &of_guard),
        Err(error) => {
            sys::restore_signals(&held);
            Err(error)
        }
    }
}

/// Runs this program in place of this process, with the same arguments, and with this mark. Comes
/// back only with an error.
fn run_again(mark: &str) -> io::Error {
    let mut arguments = std::env::args_os();
    let mut command = Command::new(own_file());
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(MARK, mark).exec()
}

/// This program's file; by its own name, which tools show, if it still has that.
fn own_file() -> PathBuf {
    let own = PathBuf::from("/proc/self/exe");
    let identity =
        |path: &PathBuf| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let named = std::env::current_exe().ok();
    named
        .filter(|named| identity(named).is_some_and(|id| identity(&own) == Some(id)))
        .unwrap_or(own)
}

/// Has `act` called with the code with which this process ends by itself.
pub(crate) fn at_exit(act: extern "C" fn(i32, *mut std::ffi::c_void)) {
    sys::at_exit(act);
}

/// Ends this process at once.
pub(crate) fn exit(code: i32) -> ! {
    sys::exit(code)
}

/// Makes this process end with its guard, also if that has ended already.
fn end_with(guard: u32) {
    sys::end_with_parent();
    if parent_id() != guard {
        sys::exit(1);
    }
}

#[cfg(test)]
mod tests;
