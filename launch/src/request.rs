//! The request to end, from outside: `SIGTERM`, as Slurm sends it before it takes the nodes away,
//! or `SIGINT`, as Ctrl-C sends it.
//!
//! | signal | the root, while it listens | the root, else | other processes |
//! |---|---|---|---|
//! | `SIGTERM` | is told | ends | pass over it |
//! | first `SIGINT` | is told | ends | pass over it |
//! | second `SIGINT` | ends | | pass over it |
//!
//! A process that ends so first puts its journals on the disk.
//!
//! A process may get both the signal that a launcher sends to all processes and the copy that its
//! guard hands on. So where there is a guard, it is the guard that counts (see
//! `ultramarine-guard`).

use signal_hook::consts::{SIGINT, SIGTERM};
#[cfg(feature = "mpi")]
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::c_int;
use std::future::poll_fn;
use std::io;
#[cfg(feature = "mpi")]
use std::sync::LazyLock;
#[cfg(feature = "mpi")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// What has asked a job to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndRequest {
    /// `SIGTERM`: the time is up, or a user has called `kill` or `scancel`.
    Terminate,
    /// `SIGINT`: a user has pressed Ctrl-C, and may do so again if the end takes too long.
    Interrupt,
}

/// The request that has come, and the tasks that wait for one.
#[derive(Default)]
struct Pending {
    /// The first that came.
    came: Option<EndRequest>,
    waiting: Vec<Waker>,
}

static REQUEST: OnceLock<Arc<Mutex<Pending>>> = OnceLock::new();

/// Waits until this process is asked to end, by `SIGTERM` or by Ctrl-C (`SIGINT`), and says which
/// it was; waits for ever if it is not. To be awaited in the main task, beside the work, so that
/// the program can end in order with what it has found so far.
///
/// From the first poll on `SIGTERM` and the first `SIGINT` do not end this process any more. A
/// second `SIGINT` ends the job at once. The other processes of a job ignore both: a user who ends
/// a job signals all its processes, and the root decides what becomes of that. A program that does
/// not call this ends at the first signal.
///
/// How much time is left then depends on the launcher:
///
/// - Slurm kills all processes some time after `SIGTERM` (`KillWait`, usually 30 s;
///   `--signal=TERM@120` lets it ask two minutes early).
/// - `srun --disable-status` hands Ctrl-C on, as `ultramarine run` starts it. Without that option
///   srun answers the first Ctrl-C itself, and at a second one within a second kills all processes.
/// - MPICH's `mpiexec` hands both signals on. At a second Ctrl-C it kills all processes.
/// - Open MPI's `mpiexec` makes a `SIGTERM` of Ctrl-C, and kills all processes a second later.
///
/// ```
/// use futures_util::future::{Either, select};
/// use futures_util::StreamExt;
/// use std::pin::pin;
/// use ultramarine::prelude::*;
///
/// /// As many squares as there is time for.
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     let mut asked = pin!(ultramarine::shutdown_requested());
///     let mut squares = pin!(par_map_stream(cx, 100, |n: u64| n * n, 0..1_000_000));
///     let mut found = Vec::new();
///     loop {
///         match select(&mut asked, squares.next()).await {
///             Either::Right((Some(square), _)) => found.push(square?.1),
///             Either::Right((None, _)) => return Ok(found),
///             Either::Left((request, _)) => {
///                 eprintln!("asked to end ({request:?}), after {} squares", found.len());
///                 return Ok(found);
///             }
///         }
///     }
/// }
/// ```
pub async fn shutdown_requested() -> EndRequest {
    let request = REQUEST.get_or_init(listen);
    poll_fn(|cx| {
        let mut request = lock(request);
        if let Some(came) = request.came {
            return Poll::Ready(came);
        }
        if !request.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            request.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    })
    .await
}

/// How long a signal that ends this process waits for its journals. Slurm kills what is there after
/// `KillWait`, usually 30 s.
const JOURNALS_WITHIN: Duration = Duration::from_secs(20);

/// A journal has been opened: a signal that would end this process at once has it put on the disk
/// first. Nothing changes if the program has the signals handled itself, or if they pass by this
/// process.
pub(crate) fn let_journals_be_written() {
    static IS_DONE: Mutex<bool> = Mutex::new(false);
    let mut is_done = IS_DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_done || REQUEST.get().is_some() || !is_ended_by_signals() {
        return;
    }
    let started = hear(|signal| {
        // The program may have begun to listen.
        if REQUEST.get().is_none() {
            ultramarine_journal::close_all(JOURNALS_WITHIN);
            // It comes back only with an error, which these are none for.
            let _ = emulate_default_handler(signal);
        }
    });
    *is_done = started.is_ok();
}

/// Whether `SIGTERM` ends this process: it has no handler but that of the runtime.
fn is_ended_by_signals() -> bool {
    #[cfg(feature = "mpi")]
    if ENDS_BY_SIGNAL.load(Ordering::SeqCst) {
        return true;
    }
    // The signals that the process handles or ignores, as bits from the right.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let masks = status.lines().filter_map(|line| {
        let mask = line.strip_prefix("SigCgt:").or(line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    masks.fold(0, |all, mask| all | mask) >> (SIGTERM - 1) & 1 == 0
}

/// Has the signals noted from now on.
fn listen() -> Arc<Mutex<Pending>> {
    let request = Arc::<Mutex<Pending>>::default();
    let heard = request.clone();
    let is_counted_elsewhere = interrupts_are_counted_by_the_guard();
    let mut was_interrupted = false;
    let started = hear(move |signal| {
        let is_interrupt = signal == SIGINT;
        if is_interrupt && was_interrupted && !is_counted_elsewhere {
            // It comes back only with an error, which SIGINT is not one for.
            let _ = emulate_default_handler(SIGINT);
        }
        was_interrupted |= is_interrupt;
        let came = if is_interrupt { EndRequest::Interrupt } else { EndRequest::Terminate };
        let mut request = lock(&heard);
        request.came.get_or_insert(came);
        let waiting = std::mem::take(&mut request.waiting);
        // After the lock: a waker may ask again.
        drop(request);
        waiting.into_iter().for_each(Waker::wake);
    });
    if let Err(error) = started {
        // The signals end the process then, as they do any other.
        tracing::warn!("a request to end will not be heard: {error}");
    }
    request
}

/// Has a thread act on each signal from now on, instead of ending this process.
fn hear(act: impl FnMut(c_int) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let act_on_all = move || signals.forever().for_each(act);
    std::thread::Builder::new().name("signals".to_owned()).spawn(act_on_all)?;
    #[cfg(feature = "mpi")]
    ENDS_BY_SIGNAL.store(false, Ordering::SeqCst);
    Ok(())
}

fn lock(request: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    request.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process has a guard that ends it at the second interrupt.
fn interrupts_are_counted_by_the_guard() -> bool {
    #[cfg(feature = "mpi")]
    let is_so = ultramarine_guard::counts_interrupts();
    #[cfg(not(feature = "mpi"))]
    let is_so = false;
    is_so
}

/// A request to end that has passed by this process, which was not the root's.
#[cfg(feature = "mpi")]
#[derive(Clone)]
pub(crate) struct ShutdownRequest(Arc<AtomicBool>);

#[cfg(feature = "mpi")]
impl ShutdownRequest {
    /// Whether there is one.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// From now on this process is the root's: a request ends it, unless it listens. Whether that
    /// was in time: before a request.
    pub(crate) fn is_ours_now(&self) -> bool {
        ENDS_BY_SIGNAL.store(true, Ordering::SeqCst);
        !self.has_come()
    }
}

/// Whether a signal ends this process, which was not the root's at first.
#[cfg(feature = "mpi")]
static ENDS_BY_SIGNAL: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Lets the signals pass by this process, which is not the root's.
#[cfg(feature = "mpi")]
pub(crate) fn leave_to_the_root() -> ShutdownRequest {
    let has_come = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        let registered = flag::register_conditional_default(signal, ENDS_BY_SIGNAL.clone())
            .and_then(|_| flag::register(signal, has_come.clone()));
        if let Err(error) = registered {
            tracing::warn!("a request to end will end this process: {error}");
        }
    }
    ShutdownRequest(has_come)
}
