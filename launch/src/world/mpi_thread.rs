//! The thread that starts MPI and, at the end, finalises it.
//!
//! MPI has to be finalised by the thread that initialised it, and that may take for ever if another
//! process dies meanwhile. So neither is done by the program's main thread, which has to go on.

use crate::error::StartError;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Some MPI libraries use much of the stack while they start; as much as a main thread usually has.
const STACK_BYTES: usize = 8 << 20;

/// How often to look whether finalising still makes sense.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long aborting the job may take before this process ends by itself.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

/// How long a job that has not even begun may take to finalise: there is nothing to lose.
pub(super) const FAILED_WITHIN: Duration = Duration::from_secs(1);

enum Command {
    Finalise,
    Abort,
    Abandon,
}

/// The thread, waiting for the end.
pub(super) struct MpiThread {
    commands: Sender<Command>,
    is_done: Receiver<()>,
    thread: JoinHandle<()>,
}

impl MpiThread {
    /// Starts MPI, and has `join` make something of its world.
    pub(super) fn start<T: Send + 'static>(
        join: impl FnOnce(&SimpleCommunicator) -> T + Send + 'static,
    ) -> Result<(Self, T), StartError> {
        let (commands, to_do) = mpsc::channel();
        let (started, has_started) = mpsc::channel();
        let (done, is_done) = mpsc::channel();
        let live = move || {
            let universe = match initialise() {
                Ok(universe) => universe,
                Err(error) => return drop(started.send(Err(error))),
            };
            let world = universe.world();
            // The thread that waits for this waits for everything else as well.
            let _ = started.send(Ok(join(&world)));
            match to_do.recv() {
                Ok(Command::Finalise) => drop(universe),
                Ok(Command::Abort) => world.abort(1),
                Ok(Command::Abandon) | Err(_) => std::mem::forget(universe),
            }
            let _ = done.send(());
        };
        let builder = thread::Builder::new().name("mpi".to_owned()).stack_size(STACK_BYTES);
        let thread = builder.spawn(live).map_err(|source| {
            let doing = "starting the thread that starts MPI".to_owned();
            StartError::Io { doing, source }
        })?;
        let joined = has_started.recv().unwrap_or_else(|_| {
            let source = io::Error::other("the thread that starts it has panicked");
            Err(StartError::Io { doing: "starting MPI".to_owned(), source })
        })?;
        Ok((MpiThread { commands, is_done, thread }, joined))
    }

    /// Finalises MPI together with all other processes, within this time and for as long as they
    /// can be expected to take part. Whether it is done; if not, MPI must not be called any more.
    pub(super) fn finalise(&self, limit: Duration, is_expected: impl Fn() -> bool) -> bool {
        if !is_expected() || self.commands.send(Command::Finalise).is_err() {
            return false;
        }
        let deadline = Instant::now() + limit;
        loop {
            match self.is_done.recv_timeout(LOOK_EVERY) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) if is_expected() && Instant::now() < deadline => {}
                Err(_) => return false,
            }
        }
    }

    /// Has MPI and the launcher end all processes, this one included.
    pub(super) fn abort(&self) {
        let _ = self.commands.send(Command::Abort);
        let _ = self.is_done.recv_timeout(ABORT_WITHIN);
    }

    /// Leaves MPI as it is, for good. The thread may be inside it.
    pub(super) fn abandon(self) {
        let _ = self.commands.send(Command::Abandon);
        drop(self.thread);
    }
}

/// Refuses an MPI that the program has started itself.
pub(super) fn is_not_started() -> Result<(), StartError> {
    let said = "it was started before `run`, which starts it with what it needs: the program \
                itself must not call `MPI_Init`";
    if mpi::is_initialized() { Err(StartError::Mpi(said.into())) } else { Ok(()) }
}

/// Starts MPI.
fn initialise() -> Result<Universe, StartError> {
    is_not_started()?;
    let Some((universe, granted)) = mpi::initialize_with_threading(Threading::Serialized) else {
        return Err(StartError::Mpi("another thread starts it".into()));
    };
    if granted < Threading::Serialized {
        return Err(StartError::Mpi(format!(
            "this library grants {granted:?} threads, and a PE needs at least MPI_THREAD_SERIALIZED"
        )));
    }
    Ok(universe)
}

/// What the MPI library says of itself.
pub(super) fn library_version() -> String {
    mpi::environment::library_version().unwrap_or_default()
}
