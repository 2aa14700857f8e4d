//! The request to end, from outside: `SIGTERM`, as Slurm sends it before it takes the nodes away.

use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::future::poll_fn;
#[cfg(feature = "mpi")]
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

/// What is known of a request, and who waits for one.
#[derive(Default)]
struct Request {
    is_there: bool,
    waiting: Vec<Waker>,
}

static REQUEST: OnceLock<Arc<Mutex<Request>>> = OnceLock::new();

/// Waits until this process is asked to end, by `SIGTERM`; for ever if it is not. To be awaited in the
/// main task, beside the work, so that the program can end in order with what it has found so far.
///
/// From the first poll on the signal does not end this process any more. The other processes of a job
/// pass over it in any case: whoever ends a whole job sends it to all of them, and it is for the root to
/// say what becomes of that. A batch system that has sent it kills all processes a little
/// later (Slurm after `KillWait`, usually 30 s; `--signal=TERM@120` lets it ask two minutes early).
///
/// ```
/// use futures_util::future::{Either, select};
/// use futures_util::StreamExt;
/// use std::pin::pin;
/// use ultramarine::prelude::*;
///
/// /// As many squares as there is time for.
/// async fn squares(cx: &Context) -> Result<Vec<u64>, TaskError> {
///     let mut asked = pin!(ultramarine::asked_to_end());
///     let mut squares = pin!(par_map_stream(cx, 100, |n: u64| n * n, 0..1_000_000));
///     let mut found = Vec::new();
///     while let Either::Right((Some(square), _)) = select(&mut asked, squares.next()).await {
///         found.push(square?.1);
///     }
///     Ok(found)
/// }
/// ```
pub async fn asked_to_end() {
    let request = REQUEST.get_or_init(listen);
    poll_fn(|cx| {
        let mut request = lock(request);
        if request.is_there {
            return Poll::Ready(());
        }
        if !request.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            request.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// Has the signal noted from now on.
fn listen() -> Arc<Mutex<Request>> {
    let request = Arc::<Mutex<Request>>::default();
    let heard = request.clone();
    let started = Signals::new([SIGTERM]).and_then(|mut signals| {
        let hear = move || {
            if signals.forever().next().is_some() {
                let mut request = lock(&heard);
                request.is_there = true;
                request.waiting.drain(..).for_each(Waker::wake);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(hear)
    });
    if let Err(error) = started {
        // The signal ends the process then, as it does any other.
        tracing::warn!("a request to end will not be heard: {error}");
    }
    request
}

fn lock(request: &Mutex<Request>) -> MutexGuard<'_, Request> {
    request.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the signal pass by this process, which is not the root's.
#[cfg(feature = "mpi")]
pub(crate) fn leave_to_the_root() {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(SIGTERM, nobody_looks) {
        tracing::warn!("a request to end will end this process: {error}");
    }
}
