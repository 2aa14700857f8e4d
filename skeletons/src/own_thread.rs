//! Waits for a disk without holding up a worker.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::Builder;

/// What a function that runs on its own thread has returned, or the task that waits for it.
enum Answer<R> {
    Running(Option<Waker>),
    Ended(std::thread::Result<R>),
}

/// Runs a function that blocks on a thread of its own, and awaits its result. If the caller is
/// dropped meanwhile, the function still runs to its end, and its result is dropped.
///
/// # Errors
///
/// There can be no further thread.
///
/// # Panics
///
/// If the function panics, with its message.
pub(crate) async fn on_own_thread<R: Send + 'static>(
    function: impl FnOnce() -> R + Send + 'static,
) -> io::Result<R> {
    let answer = Arc::new(Mutex::new(Answer::Running(None)));
    let slot = answer.clone();
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(function));
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *slot, Answer::Ended(result));
        drop(slot);
        if let Answer::Running(Some(waker)) = before {
            waker.wake();
        }
    };
    Builder::new().name("disk".to_owned()).spawn(run)?;
    let ended = poll_fn(|cx| {
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *answer, Answer::Running(Some(cx.waker().clone()))) {
            Answer::Running(_) => Poll::Pending,
            Answer::Ended(result) => Poll::Ready(result),
        }
    });
    Ok(ended.await.unwrap_or_else(|panic| resume_unwind(panic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc::channel;
    use std::task::Context;
    use ultramarine_testkit::{Woken, eventually};

    #[test]
    fn the_caller_goes_on_and_is_woken_at_the_end() {
        let (sender, receiver) = channel();
        let woken = Arc::<Woken>::default();
        let waker = woken.waker();
        let cx = &mut Context::from_waker(&waker);
        let mut ended = pin!(on_own_thread(move || receiver.recv()));
        assert!(ended.as_mut().poll(cx).is_pending());
        assert!(ended.as_mut().poll(cx).is_pending());
        assert_eq!(woken.count(), 0);
        sender.send(7).expect("the function waits for it");
        eventually("the caller is woken", || woken.count() == 1);
        assert!(matches!(ended.as_mut().poll(cx), Poll::Ready(Ok(Ok(7)))));
    }

    #[test]
    #[should_panic(expected = "the disk is on fire")]
    fn a_panic_is_passed_on() {
        let mut ended = pin!(on_own_thread(|| panic!("the disk is on fire")));
        let cx = &mut Context::from_waker(Waker::noop());
        eventually("it ends", || ended.as_mut().poll(cx).is_ready());
    }
}
