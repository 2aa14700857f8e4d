//! The end of a PE: whether it has begun, why, and whether the main task has brought it about.

use crate::executor::engine::failure::JobError;
use crate::forked::TakesPart;
use crate::lock::Lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// Starts the main task on a PE. Runs no code of the user's, and waits for none.
type StartMain<P> = dyn Fn(&Arc<P>) + Send + Sync;

/// A main task that another PE can start again when the root has died. `P` is the PE.
pub(crate) struct RestartableMain<P> {
    pub(crate) start: Box<StartMain<P>>,
    /// Whether the job may go on with this PE as its root.
    pub(crate) may_go_on: Box<dyn Fn(Pe) -> bool + Send + Sync>,
    /// Hears that the main task has ended on another PE, before that one hears that this one knows.
    pub(crate) ended_elsewhere: Box<dyn Fn() + Send + Sync>,
}

/// How far a PE is on its way out of the job. `P` is the PE.
pub(crate) struct Ending<P> {
    /// Set once: no more tasks are started.
    has_begun: AtomicBool,
    /// Set once: nothing is queued any more.
    is_closed: AtomicBool,
    /// The main task has ended here.
    main_ended: AtomicBool,
    failure: Lock<Option<JobError>>,
    /// The main task, if the job outlives its root.
    pub(super) main: Option<RestartableMain<P>>,
    /// Whether the others agree that the job ends here.
    pub(super) agreement: Agreement,
    /// `None` once the PE has left.
    takes_part: Lock<Option<TakesPart>>,
}

impl<P> Ending<P> {
    /// That of a PE that starts, with the main task if that can be started again.
    pub(super) fn new(main: Option<RestartableMain<P>>) -> Self {
        Ending {
            has_begun: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            main_ended: AtomicBool::new(false),
            failure: Lock::default(),
            main,
            agreement: Agreement::default(),
            takes_part: Lock::new(Some(TakesPart::begin())),
        }
    }

    /// From now on no task is started.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// The main task has ended here.
    pub(super) fn end_main(&self) {
        self.main_ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_main_ended(&self) -> bool {
        self.main_ended.load(Ordering::SeqCst)
    }

    /// Why the PE cannot go on, if that is so.
    pub(super) fn failure(&self) -> MutexGuard<'_, Option<JobError>> {
        self.failure.lock()
    }

    /// From now on nothing is queued.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// The PE has left.
    pub(super) fn take_no_part(&self) {
        drop(self.takes_part.lock().take());
    }
}

/// Whether the others have agreed, and who waits for that.
#[derive(Default)]
pub(crate) struct Agreement(Lock<AgreementState>);

#[derive(Default)]
struct AgreementState {
    is_reached: bool,
    waiting: Vec<Waker>,
}

impl Agreement {
    /// They have agreed.
    pub(crate) fn reach(&self) {
        let mut state = self.0.lock();
        state.is_reached = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether they have. If not, this one is woken once they have.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock();
        if state.is_reached {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|other| other.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        Poll::Pending
    }
}
