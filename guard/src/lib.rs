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
//! - What the child has started during the job ends with it (see `descendants`).
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

mod child;
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
mod testimony;
mod verdict;
mod watch;

use self::child::LibraryVersion;
use self::finalize::WITHOUT_BARRIER;
use self::lineage::Lineage;
use self::mark::{BEGIN, MARK, Mark};
use self::sys::Fork;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use ultramarine_environment::launcher::{Launched, UCX_EAGER};
use ultramarine_environment::variables;

pub use self::child::{GuardedChild, counts_interrupts, job_ended_elsewhere};
pub use self::testimony::{Testify, Testimony};

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
            sys::end_with(guard);
            Ok(Some(channel.into()))
        }
    }
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
            sys::end_with(guard);
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
        sys::end_with(guard);
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
    let without_memory = lacks_memory.then_some(shared_memory::WITHOUT);
    let all = [Some(WITHOUT_BARRIER), Some(UCX_EAGER), without_memory];
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

#[cfg(all(test, feature = "mpi"))]
mod tests;
