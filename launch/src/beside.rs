//! Doing something beside a task.

use std::future::poll_fn;
use std::pin::pin;

/// Awaits `work`, and polls `other` whenever it waits. `other` ends with it at the latest.
pub(crate) async fn beside<T>(work: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    let (mut work, mut other) = (pin!(work), pin!(other));
    let mut goes_on = true;
    poll_fn(|waker| {
        let polled = work.as_mut().poll(waker);
        if polled.is_pending() && goes_on {
            goes_on = other.as_mut().poll(waker).is_pending();
        }
        polled
    })
    .await
}
