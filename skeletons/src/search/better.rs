//! Telling the caller of a search what is found meanwhile. It must never know how that is found.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

type OnBetter<N> = dyn FnMut(u64, &N) + Send;

/// What the program wants to have called for each better node. Programs need not name it.
pub struct Listener<N>(Box<OnBetter<N>>);

impl<N> fmt::Debug for Listener<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl<N> Listener<N> {
    pub(super) fn new(f: impl FnMut(u64, &N) + Send + 'static) -> Self {
        Listener(Box::new(f))
    }

    /// Tells the program of the better nodes that this yields, each when it is the best: never
    /// ends.
    pub(super) async fn hear(mut self, mut better: impl Better<N>) {
        loop {
            let (value, node) = poll_fn(|waker| better.poll(waker)).await;
            (self.0)(value, &node);
        }
    }
}

/// What yields better and better nodes.
pub(super) trait Better<N>: Send {
    /// The best node, once it is better than the last that was yielded.
    fn poll(&mut self, waker: &mut std::task::Context<'_>) -> Poll<(u64, N)>;
}

/// Awaits `work`, and has the program hear of better nodes meanwhile. `end` is called with the
/// result before it hears for the last time.
pub(super) async fn beside<R>(
    work: impl Future<Output = R>,
    hearing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    end: impl FnOnce(&R),
) -> R {
    let Some(mut hearing) = hearing else { return work.await };
    let mut work = pin!(work);
    let result = poll_fn(|waker| {
        let result = work.as_mut().poll(waker);
        let _ = hearing.as_mut().poll(waker);
        result
    });
    let result = result.await;
    end(&result);
    poll_fn(|waker| {
        let _ = hearing.as_mut().poll(waker);
        Poll::Ready(())
    })
    .await;
    result
}
