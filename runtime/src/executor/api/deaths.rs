//! Deaths of PEs, for the program to hear.

use super::context::Context;
use crate::executor::keep::deaths::DeathListener;
use crate::executor::task::caught::discard_with;
use crate::lock::Lock;
use futures_util::stream::Stream;
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// The deaths that a stream has heard of.
#[derive(Default)]
struct Queue(Lock<Heard>);

#[derive(Default)]
struct Heard {
    all: BTreeSet<Pe>,
    to_yield: VecDeque<Pe>,
    waker: Option<Waker>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock()
    }
}

impl DeathListener for Queue {
    fn on_death(&self, dead: Pe) {
        let mut queue = self.lock();
        if queue.all.insert(dead) {
            queue.to_yield.push_back(dead);
        }
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(|waker| discard_with(|| waker.wake()));
    }
}

/// A stream of the PEs that have died, as this PE hears of it; see [`Context::deaths`].
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct DeathStream(Arc<Queue>);

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.lock().to_yield).finish()
    }
}

impl Stream for DeathStream {
    type Item = Pe;

    fn poll_next(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<Pe>> {
        let mut queue = self.0.lock();
        if let Some(dead) = queue.to_yield.pop_front() {
            return Poll::Ready(Some(dead));
        }
        let old = queue.waker.replace(cx.waker().clone());
        drop(queue);
        drop(old);
        Poll::Pending
    }
}

impl Context {
    /// The PEs that have died, in the order in which this PE hears of it, beginning with those that
    /// are dead already. Each comes once. The stream never ends.
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// # use ultramarine_runtime::executor::Context;
    ///
    /// /// Writes it down.
    /// async fn mourn(cx: Context) {
    ///     let mut deaths = cx.deaths();
    ///     while let Some(dead) = deaths.next().await {
    ///         eprintln!("{dead} has died");
    ///     }
    /// }
    /// ```
    pub fn deaths(&self) -> DeathStream {
        let queue = Arc::<Queue>::default();
        let listener: Arc<dyn DeathListener> = queue.clone();
        self.pe.kept.death_listeners.add(Arc::downgrade(&listener));
        // A PE that dies now comes by either way, and once.
        self.pe.liveness.dead().for_each(|dead| queue.on_death(dead));
        DeathStream(queue)
    }
}
