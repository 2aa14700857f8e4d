//! A small parent between the launcher and each process of a job, so that the launcher does not end
//! a job that survives the death of a process.
//!
//! Launchers take the death of a process by a signal for the failure of the job, and kill the rest
//! of it. So a process that a launcher has started splits before MPI starts ([`install`]). The
//! first half, which the launcher knows, becomes the *guard*. Its *child* goes on as the program.
//!
//! ```text
//!  launcher ─── guard (rank 0) ─── program        the guard waits, hands signals on, and
//!           ├── guard (rank 1) ─── program        exits as its child does;
//!           └── guard (rank 2)     † SIGKILL      but here it takes leave and exits with 0
//! ```
//!
//! The program tells its guard how far it is, through the [`GuardedChild`] that it got:
//!
//! ```no_run
//! # fn run_the_job() {}
//! # use std::time::Duration;
//! use ultramarine_environment::{launcher::launched, variables};
//!
//! fn library_version() -> String {
//!     "MPICH 4.0.2".to_owned() // as MPI_Get_library_version has it
//! }
//! let launched = launched(variables::text).expect("a launcher has started this process");
//! let deadline = Duration::from_mins(1);
//! let testify: ultramarine_guard::Testify = |_, _| {};
//! let mut child = ultramarine_guard::install(launched, true, deadline, library_version, testify);
//! // MPI starts here, and the processes become a job.
//! child.joined(Duration::from_secs(30), &[], None);
//! run_the_job();
//! // Either MPI is finalised together with all others, and then `child.finalised()`; or:
//! child.leaves();
//! ```
//!
//! - Once the job is made up ([`GuardedChild::joined`]), the guard of a child other than the root
//!   that dies by a signal says so in one line, and tells the launcher that it has left in peace
//!   (see `finalize`). A signal that the guard got, too, was meant to end it, and is no accident.
//! - In a job that outlives its root, the death of any child is survived, as long as any other
//!   process is there: the guard asks them (see `survivors`). The last one's end is the job's.
//! - A child that calls `exit` amid the job has died as well, whatever the code.
//! - The guard of a child that has died tells those that call the child ([`Testify`]): between
//!   hosts no process can see that another is gone.
//! - Ctrl-C: a child that ends by SIGINT is no failure. Its guard takes leave for it, and exits
//!   with 130. (Were it to end by SIGINT itself, hydra would kill the others and report the
//!   bitwise or of all ends: 2 and 9 make 11, a segmentation fault.) A child that listens for
//!   interrupts is killed at the second.
//! - Any other end of the child is the guard's end, too: with that code, or by that signal, which
//!   the guard names unless it was meant to end the job.
//! - The end of the guard ends the child (see `startup`), and the end of the launcher ends both
//!   (see `lineage`). No process is left over.
//! - A child that is stopped until the others have given it up is killed (see `standstill`), and so
//!   is one that has become another program (see `image`).
//! - What the child has started ends with it (see `descendants`).
//! - A child that leaves without finalising MPI, since another process has died, says so
//!   ([`GuardedChild::leaves`]), and the guard takes leave for it.
//! - The guard removes what the MPI library of such a child, or of one that was killed, would leave
//!   in shared memory (see `segments`, and `sweep` for a start that fails).
//!
//! A process with several threads cannot split. It starts itself anew, as the guard from the
//! outset, before its `main` ([`before_main!`], [`begin`]); and that starts the program as its
//! child. What `main` did before it came here happens twice then.
//!
//! The child talks to the guard through a socket (see `status_channel`): the guard always hears
//! what was said before a death.
//!
//! This crate knows the launchers' protocols and no MPI library: the caller says which one it is.
//! It knows nothing of PEs and tasks. All its `unsafe` is in `sys`.
#![deny(unsafe_code)]

mod descendants;
mod finalize;
mod image;
mod lineage;
mod mark;
mod segments;
mod shared_memory;
mod standstill;
mod startup;
mod status_channel;
mod survivors;
mod sweep;
mod sys;
mod verdict;
mod watch;

use self::finalize::{Server, WITHOUT_BARRIER};
use self::lineage::Lineage;
use self::mark::{BEGIN, MARK, Mark};
use self::segments::Segment;
use self::startup::Startup;
use self::sys::Fork;
use std::fmt;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use ultramarine_environment::launcher::{Launched, PMI_FD};
use ultramarine_environment::variables;

/// How long a process that calls `exit` amid the job may take to write what C code has printed: a
/// thread that waits for input may keep it from that for ever.
const EXIT_SECONDS_MAX: u32 = 5;

/// The process whose job goes on; 0 if there is none.
static AMID_JOB: AtomicU32 = AtomicU32::new(0);

/// The channel to this process's guard, for code that does not have its [`GuardedChild`].
static CHANNEL: OnceLock<UnixStream> = OnceLock::new();

/// What the MPI library says of itself, as `MPI_Get_library_version` has it.
type LibraryVersion = fn() -> String;

/// Tells those that call a child on this listener that the child is gone; ends by itself, soon. It
/// runs in the guard, with the child's [`Testimony::words`].
pub type Testify = fn(&TcpListener, &str);

/// What the guard needs to say that its child is gone.
pub struct Testimony {
    /// A second descriptor of the socket on which the child is called. The guard keeps it open when
    /// the child ends amid the job.
    pub listener: TcpListener,
    /// What [`Testify`] gets, in one line. It is secret.
    pub words: String,
}

impl fmt::Debug for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testimony").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Puts a guard between the launcher and this process, if one `is_wanted` and of use; comes back in
/// the process that goes on as the program. To be called before MPI starts. Where there can be no
/// guard, says why and goes on. The others wait `start_deadline` long for this process: if it is
/// stopped for longer while it starts, its guard kills it.
pub fn install(
    launched: Launched,
    is_wanted: bool,
    start_deadline: Duration,
    library_version: LibraryVersion,
    testify: Testify,
) -> GuardedChild {
    // The only process has no survivors.
    let channel = if launched.processes < 2 || !is_wanted {
        None
    } else {
        split_or_start_anew(launched, testify).unwrap_or_else(|reason| {
            tracing::warn!(
                "rank {} goes on without a guard ({reason}): if it is killed, the launcher may end \
                 the whole job",
                launched.rank
            );
            None
        })
    };
    GuardedChild::with(channel, start_deadline, library_version)
}

fn split_or_start_anew(launched: Launched, testify: Testify) -> io::Result<Option<UnixStream>> {
    match Mark::read(variables::GUARDED.value().as_deref()) {
        Mark::None if sys::is_alone() => split(launched, testify),
        Mark::None => Err(run_again(BEGIN, None)),
        Mark::Failed(reason) => Err(io::Error::other(reason)),
        // The program of another child has started this one.
        Mark::Guarded { guard, .. } if guard != parent_id() => Ok(None),
        Mark::Guarded { guard, channel } => {
            let channel = sys::inherited(channel)?;
            end_with(guard);
            Ok(Some(channel.into()))
        }
    }
}

/// This process, as its guard knows it.
#[derive(Debug)]
pub struct GuardedChild {
    /// The channel to the guard, if there is one.
    guard: Option<UnixStream>,
    library_version: LibraryVersion,
    /// Before MPI starts.
    began: SystemTime,
    /// Until it joins the job.
    start: Option<Startup>,
}

impl GuardedChild {
    fn with(
        guard: Option<UnixStream>,
        start_deadline: Duration,
        library_version: LibraryVersion,
    ) -> Self {
        let began = SystemTime::now();
        if let Some(channel) = &guard {
            // Before MPI ends all processes with pages of its own words, and the guards with them.
            if !shared_memory::finds_out_itself() {
                shared_memory::shortage().iter().for_each(|shortage| watch::log(shortage));
            }
            // A guard that is no more is killing this process.
            let _ = status_channel::starts(channel, began, start_deadline);
        }
        if let Some(channel) = guard.as_ref().and_then(|channel| channel.try_clone().ok()) {
            let _ = CHANNEL.set(channel);
        }
        // Without a thread to spare it just ends with its guard.
        let start = guard.as_ref().and_then(|channel| Startup::begin(channel, began).ok());
        GuardedChild { guard, library_version, began, start }
    }

    /// Whether there is a guard.
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// From now on the job survives the death of this process by a signal, unless it is the root,
    /// and gives it up when it is stopped for longer than `stalled_after`. If there are `others`,
    /// the job survives its root, too, as long as one of them still listens at its address. The
    /// guard gives the `testimony` when this process has died. To be called after MPI has started.
    pub fn joined(
        &mut self,
        stalled_after: Duration,
        others: &[SocketAddr],
        testimony: Option<Testimony>,
    ) {
        if let Some(channel) = &self.guard {
            let segments = Segment::own(self.began);
            let _ = status_channel::joined(
                channel,
                stalled_after,
                &Server::own(self.library_version),
                &segments,
                others,
            );
            if let Some(testimony) = testimony {
                let _ = status_channel::hands_over(channel, &testimony);
            }
            AMID_JOB.store(std::process::id(), Ordering::SeqCst);
            sys::at_exit(end_amid_job);
        }
        if let Some(start) = self.start.take() {
            start.end();
        }
    }

    /// The job is over. In one that outlives its root the death of this process counts from now on
    /// only if it `is_vital`: if it alone can say that the job has failed.
    pub fn job_is_over(&self, is_vital: bool) {
        if let Some(channel) = &self.guard {
            let _ = status_channel::job_is_over(channel, is_vital);
        }
    }

    /// MPI was finalised, together with all other processes.
    pub fn finalised(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::finalised(channel);
            wake_guard();
        }
    }

    /// Why MPI does without shared memory in this process, if it was told to, in words.
    pub fn lacks_shared_memory(&self, launched: Launched) -> Option<String> {
        let reason = shared_memory::lacks(launched);
        reason.filter(|_| self.is_guarded() && shared_memory::is_left_out())
    }

    /// Whether MPI does without shared memory, also if the user has chosen that.
    pub fn goes_without_shared_memory(&self) -> bool {
        shared_memory::is_left_out()
    }

    /// This process is about to end the whole job through MPI.
    pub fn aborts(&self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::aborts(channel);
        }
    }

    /// This process leaves a job that goes on without it: what it has started is not wanted,
    /// either.
    ///
    /// If it cannot reach the others any more, it `is_as_dead` to them, and the guard says so.
    pub fn gives_up(&self, is_as_dead: bool) {
        if let Some(channel) = &self.guard {
            let _ = status_channel::gives_up(channel, is_as_dead);
        }
    }

    /// This process will end without finalising MPI. The guard takes leave of the launcher for it.
    /// Libraries do nothing at the end of the process: they might wait for one that is dead. The
    /// program's own code goes on to its end, and decides with which code.
    pub fn leaves(self) {
        AMID_JOB.store(0, Ordering::SeqCst);
        if let Some(channel) = &self.guard {
            let _ = status_channel::leaves(channel);
            wake_guard();
        } else {
            // This much can be done without one.
            Segment::own(self.began).iter().for_each(Segment::remove);
            if std::env::var_os(PMI_FD).is_some() {
                let _ = finalize::on_behalf_of(Server::own(self.library_version));
            }
        }
        sys::end_without_ado();
    }
}

/// Ends a process that calls `exit` amid the job, in a task say. It ends at once, as by `abort`:
/// what the MPI library does at an exit may wait for others, and its threads still run.
extern "C" fn end_amid_job(code: i32, _: *mut std::ffi::c_void) {
    match AMID_JOB.load(Ordering::SeqCst) {
        0 => {}
        own if own == std::process::id() => {
            sys::end_within(EXIT_SECONDS_MAX);
            sys::flush_and_exit(code)
        }
        // What this process has started without a new program: the libraries' threads are not
        // there, and what they would end is not its own.
        _ => sys::flush_and_exit(code),
    }
}

/// Has the guard end this process at the second interrupt. Whether there is a guard.
pub fn counts_interrupts() -> bool {
    CHANNEL.get().is_some_and(|channel| status_channel::listens(channel).is_ok())
}

/// Lets a stopped guard go on: the launcher waits for it.
fn wake_guard() {
    sys::send(parent_id() as i32, libc::SIGCONT);
}

/// Splits this process, which has one thread, in guard and child.
fn split(launched: Launched, testify: Testify) -> io::Result<Option<UnixStream>> {
    let (of_guard, of_child) = UnixStream::pair()?;
    let guard = std::process::id();
    let held = sys::hold_signals();
    match sys::fork() {
        Ok(Fork::Parent { child }) => watch::over(child, launched, &of_guard, testify),
        Ok(Fork::Child) => {
            sys::restore_signals(&held);
            end_with(guard);
            sys::set_variable(MARK, &Mark::text(guard, &of_child))?;
            for (name, value) in settings(launched) {
                sys::set_variable(name, value)?;
            }
            Ok(Some(of_child))
        }
        Err(error) => {
            sys::restore_signals(&held);
            Err(error)
        }
    }
}

/// Becomes a guard, if this process was started anew to be one, and starts the program. To be
/// called before `main` (see [`before_main!`]), with the launcher that has started this process, if
/// one has. Whether it has just done so, for a job of several processes.
pub fn begin(launched: Option<Launched>, testify: Testify) -> bool {
    if variables::GUARDED.value().as_deref() == Some(BEGIN)
        && let Err(error) = guard_from_the_outset(launched, testify)
    {
        let _ = sys::set_variable(MARK, &error.to_string());
    }
    launched.is_some_and(|launched| {
        let is_new = variables::GUARDED.value().is_none();
        launched.processes > 1 && is_new && Lineage::own(launched.variable).is_direct()
    })
}

fn guard_from_the_outset(launched: Option<Launched>, testify: Testify) -> io::Result<()> {
    let launched = launched.ok_or_else(|| io::Error::other("no launcher"))?;
    let (of_guard, of_child) = UnixStream::pair()?;
    let held = sys::hold_signals();
    let guard = std::process::id();
    let mark = Mark::text(guard, &of_child);
    let program = || {
        sys::restore_signals(&held);
        sys::hand_down(&of_child);
        // Holds beyond the start of the program.
        end_with(guard);
        let error = run_again(&mark, Some(launched));
        let _ = writeln!(io::stderr(), "ultramarine: the program cannot be started: {error}");
    };
    match sys::fork_and(program) {
        Ok(child) => watch::over(child, launched, &of_guard, testify),
        Err(error) => {
            sys::restore_signals(&held);
            Err(error)
        }
    }
}

/// Runs this program in place of this process, with the same arguments, and with this mark; as what
/// a launcher has started, with the settings for that. Comes back only with an error.
fn run_again(mark: &str, launched: Option<Launched>) -> io::Error {
    let mut arguments = std::env::args_os();
    let mut command = Command::new(own_file());
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(MARK, mark).envs(launched.into_iter().flat_map(settings)).exec()
}

/// The settings for MPI that a guarded process has, unless the user has chosen others.
fn settings(launched: Launched) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lacks_memory = shared_memory::lacks(launched).is_some();
    let all = [Some(WITHOUT_BARRIER), lacks_memory.then_some(shared_memory::WITHOUT)];
    all.into_iter().flatten().filter(|(name, _)| std::env::var_os(name).is_none())
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
pub fn at_exit(act: extern "C" fn(i32, *mut std::ffi::c_void)) {
    sys::at_exit(act);
}

/// Ends this process at once.
pub fn exit(code: i32) -> ! {
    sys::exit(code)
}

/// Makes this process end with its guard, also if that has ended already.
fn end_with(guard: u32) {
    sys::end_with_parent();
    if parent_id() != guard {
        sys::exit(1);
    }
}

#[cfg(all(test, feature = "mpi"))]
mod tests;
