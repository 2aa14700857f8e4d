//! The agreement of the other PEs that the job ends here.

use super::processor::Processor;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Whether the others have agreed, and who waits for that.
#[derive(Default)]
pub(crate) struct Agreement(Mutex<AgreementState>);

#[derive(Default)]
struct AgreementState {
    is_reached: bool,
    waiting: Vec<Waker>,
}

impl Agreement {
    /// They have agreed.
    pub(crate) fn reach(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_reached = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether they have. If not, this one is woken once they have.
    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_reached {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|other| other.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Processor {
    /// Waits until enough of the others have agreed that the job ends here. Only the root of a job
    /// that could go on without it has to ask.
    pub(crate) async fn agree_to_end(&self) {
        let is_root = self.me() == self.liveness.root();
        if self.main.is_some() && is_root && self.liveness.ask_end() {
            poll_fn(|task| self.agreement.poll(task.waker())).await;
        }
    }
}
