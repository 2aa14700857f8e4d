//! Who has died, for the program to hear.

use super::caught::discard_with;
use super::context::Context;
use super::processor::Processor;
use futures_util::stream::Stream;
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// Who is to hear of deaths.
pub(super) trait DeathListener: Send + Sync {
    fn on_death(&self, dead: Pe);
}

/// Those who are to hear of deaths on one PE.
#[derive(Default)]
pub(super) struct Deaths(Mutex<Vec<Weak<dyn DeathListener>>>);

impl Deaths {
    /// Tells this one of each death from now on, as long as it is there.
    pub(super) fn tell(&self, one: Weak<dyn DeathListener>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(one);
    }

    pub(super) fn announce(&self, dead: Pe) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).for_each(|one| one.on_death(dead));
    }
}

/// The deaths that a stream has heard of.
#[derive(Default)]
struct Queue(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    all: BTreeSet<Pe>,
    to_yield: VecDeque<Pe>,
    waker: Option<Waker>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// PEs that have died, as this one hears of it; see [`Context::deaths`].
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
    /// The PEs that have died, one after the other as this PE hears of it, beginning with those of
    /// which it has heard already. It never ends.
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
        self.pe.deaths.tell(Arc::downgrade(&listener));
        // Those that die now come by either way, and once.
        let dead = (0..self.pes()).map(Pe::new).filter(|pe| self.is_dead(*pe));
        dead.for_each(|dead| queue.on_death(dead));
        DeathStream(queue)
    }
}

impl Processor {
    /// Tells the program of a death, behind all that has come from that PE.
    pub(super) fn announce_death(&self, dead: Pe) {
        let announce = async |cx: Context, dead| cx.pe.deaths.announce(dead);
        let me = self.me().number();
        if self.tell(me..me + 1, announce, dead).is_err() {
            // The job is ending.
            self.deaths.announce(dead);
        }
    }
}
