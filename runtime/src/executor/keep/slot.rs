//! One value on one PE, present or expected. This file must never know how the value arrives.

use crate::error::TaskError;
use crate::executor::task::caught::{discard, discard_with};
use crate::lock::Lock;
use std::any::Any;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use ultramarine_topology::Pe;

/// A value that is here, or will be.
pub(crate) struct Slot<T>(Lock<State<T>>);

struct State<T> {
    value: Value<T>,
    /// The wakers of those that wait and have been polled, by number.
    wakers: BTreeMap<u64, Waker>,
    /// How many wait for the value, and the number of the last.
    waiting: usize,
    last: u64,
    /// Whether it is being made or fetched.
    is_on_its_way: bool,
    /// Whether the slot itself keeps the value alive.
    is_kept: bool,
    /// The PEs that got the value from this one.
    given_to: Vec<Pe>,
}

enum Value<T> {
    None,
    There(Arc<T>),
    /// The slot does not keep the value; tasks that have it do.
    Weak(Weak<T>),
    Failed(TaskError),
}

/// A slot of any type.
pub(crate) trait AnySlot: Send + Sync {
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// Makes the slot's reference weak: from now on only tasks keep the value. Returns the PEs that
    /// got it from this one.
    fn weaken(&self) -> Vec<Pe>;
    /// Whether the slot is weak and no task has the value any more.
    fn is_gone(&self) -> bool;
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot(Lock::new(State {
            value: Value::None,
            wakers: BTreeMap::new(),
            waiting: 0,
            last: 0,
            is_on_its_way: false,
            is_kept: true,
            given_to: Vec::new(),
        }))
    }
}

impl<T> Slot<T> {
    /// The value or its error, if either is here.
    pub(crate) fn now(&self) -> Option<Result<Arc<T>, TaskError>> {
        self.0.lock().now()
    }

    /// Has the caller make or fetch the value: the first one, while it is not here. There is one
    /// delivery at a time.
    pub(crate) fn claim_delivery(self: &Arc<Self>) -> Option<Delivery<T>> {
        let mut state = self.0.lock();
        let is_there = match &state.value {
            Value::None => false,
            Value::Weak(value) => value.strong_count() > 0,
            Value::There(_) | Value::Failed(_) => true,
        };
        let is_claimed = !is_there && !std::mem::replace(&mut state.is_on_its_way, true);
        is_claimed.then(|| Delivery(Some(self.clone())))
    }

    /// Notes that a PE gets the value from this one.
    pub(crate) fn note_given(&self, to: Pe) {
        let mut state = self.0.lock();
        if !state.given_to.contains(&to) {
            state.given_to.push(to);
        }
    }

    /// Makes the reference weak now, unless some wait for the value. If the value arrives again, it
    /// is kept again.
    pub(crate) fn weaken_unless_awaited(&self) {
        let mut state = self.0.lock();
        let old = if state.waiting == 0 { state.weaken_now() } else { None };
        drop(state);
        discard(old);
    }

    /// Takes in the value, or why there is none. The first value counts. A delivery goes on.
    pub(crate) fn settle(&self, result: Result<Arc<T>, TaskError>) {
        Self::settle_in(self.0.lock(), result);
    }

    fn settle_in(mut state: MutexGuard<'_, State<T>>, result: Result<Arc<T>, TaskError>) {
        let wakers = std::mem::take(&mut state.wakers);
        let old = match (&state.value, result) {
            (Value::There(_), late) => late.ok().map_or(Value::None, Value::There),
            (_, Ok(value)) => {
                // It must live until those that wait have taken it.
                let is_kept = state.is_kept || state.waiting > 0;
                let weak = Value::Weak(Arc::downgrade(&value));
                let there = Value::There(value);
                let (kept, dropped) = if is_kept { (there, weak) } else { (weak, there) };
                drop(std::mem::replace(&mut state.value, kept));
                dropped
            }
            (_, Err(error)) => std::mem::replace(&mut state.value, Value::Failed(error)),
        };
        drop(state);
        discard(old);
        wakers.into_values().for_each(|waker| discard_with(|| waker.wake()));
    }

    /// Waits for the value.
    pub(crate) fn wait(self: Arc<Self>) -> Wait<T> {
        let mut state = self.0.lock();
        state.waiting += 1;
        state.last += 1;
        let number = state.last;
        drop(state);
        Wait { slot: self, number }
    }
}

impl<T> State<T> {
    fn now(&self) -> Option<Result<Arc<T>, TaskError>> {
        match &self.value {
            Value::There(value) => Some(Ok(value.clone())),
            Value::Weak(value) => value.upgrade().map(Ok),
            Value::Failed(error) => Some(Err(error.clone())),
            Value::None => None,
        }
    }

    /// Makes the reference weak if nothing needs it. The caller drops the old value after the lock.
    fn weaken_if_unused(&mut self) -> Option<Value<T>> {
        if self.is_kept || self.waiting > 0 { None } else { self.weaken_now() }
    }

    fn weaken_now(&mut self) -> Option<Value<T>> {
        let Value::There(value) = &self.value else { return None };
        let weak = Value::Weak(Arc::downgrade(value));
        Some(std::mem::replace(&mut self.value, weak))
    }
}

impl<T: Send + Sync + 'static> AnySlot for Slot<T> {
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn weaken(&self) -> Vec<Pe> {
        let mut state = self.0.lock();
        state.is_kept = false;
        let given_to = std::mem::take(&mut state.given_to);
        let old = state.weaken_if_unused();
        drop(state);
        discard(old);
        given_to
    }

    fn is_gone(&self) -> bool {
        let state = self.0.lock();
        let is_gone = match &state.value {
            Value::None => !state.is_kept,
            Value::There(_) => false,
            Value::Weak(value) => value.strong_count() == 0,
            Value::Failed(_) => true,
        };
        is_gone && !state.is_on_its_way && state.waiting == 0
    }
}

/// A value is being made or fetched. If this is dropped before it has ended, as when the job ends,
/// those that wait get an error.
pub(crate) struct Delivery<T>(Option<Arc<Slot<T>>>);

impl<T> Delivery<T> {
    /// Ends with the value, or why there is none. From now on the next may be claimed.
    pub(crate) fn end_with(mut self, result: Result<Arc<T>, TaskError>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<Arc<T>, TaskError>) {
        if let Some(slot) = self.0.take() {
            let mut state = slot.0.lock();
            state.is_on_its_way = false;
            Slot::settle_in(state, result);
        }
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        self.end(Err(TaskError::ShuttingDown));
    }
}

/// Waits for a value.
pub(crate) struct Wait<T> {
    slot: Arc<Slot<T>>,
    number: u64,
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        let mut state = self.slot.0.lock();
        state.waiting -= 1;
        let waker = state.wakers.remove(&self.number);
        let value = state.weaken_if_unused();
        drop(state);
        discard((waker, value));
    }
}

impl<T> Future for Wait<T> {
    type Output = Result<Arc<T>, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.0.lock();
        if let Some(result) = state.now() {
            return Poll::Ready(result);
        }
        let old = state.wakers.insert(self.number, cx.waker().clone());
        drop(state);
        discard(old);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;
    use ultramarine_testkit::Woken;

    type Number = Slot<u32>;

    /// Lets go of what has arrived while it is told of that, and claims the next delivery.
    struct Claims {
        slot: Arc<Number>,
        waiting: Lock<Option<Wait<u32>>>,
        next: Lock<Option<Delivery<u32>>>,
    }

    impl Wake for Claims {
        fn wake(self: Arc<Self>) {
            drop(self.waiting.lock().take());
            self.slot.weaken();
            *self.next.lock() = self.slot.claim_delivery();
        }
    }

    #[test]
    fn the_end_of_a_delivery_leaves_the_next_alone() {
        let slot = Arc::<Number>::default();
        let delivery = slot.claim_delivery().expect("it is the first");
        assert!(slot.claim_delivery().is_none(), "there is one already");
        let (mut waiting, next) = (slot.clone().wait(), Lock::default());
        let claims = Arc::new(Claims { slot: slot.clone(), waiting: Lock::default(), next });
        let waker = Waker::from(claims.clone());
        assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker)).is_pending());
        *claims.waiting.lock() = Some(waiting);
        delivery.end_with(Ok(Arc::new(1)));
        let next = claims.next.lock().take().expect("the first is gone");
        assert!(slot.now().is_none(), "it is on its way");
        next.end_with(Ok(Arc::new(2)));
        assert!(slot.is_gone(), "no one waits for it");
    }

    #[test]
    fn a_value_that_comes_by_another_way_lets_no_second_delivery_begin() {
        let slot = Arc::<Number>::default();
        let delivery = slot.claim_delivery().expect("it is the first");
        slot.settle(Ok(Arc::new(1)));
        slot.weaken();
        assert!(slot.claim_delivery().is_none(), "the first has not ended");
        let mut waiting = slot.clone().wait();
        drop(delivery);
        let ended = Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(ended, Poll::Ready(Err(TaskError::ShuttingDown)));
    }

    fn poll(waiting: &mut Wait<u32>, waker: &Waker) -> Poll<Result<Arc<u32>, TaskError>> {
        Pin::new(waiting).poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn a_value_stays_until_those_that_wait_have_taken_it() {
        let slot = Arc::<Number>::default();
        let [mut first, second] = [(); 2].map(|()| slot.clone().wait());
        slot.weaken();
        slot.settle(Ok(Arc::new(1)));
        slot.weaken();
        slot.weaken_unless_awaited();
        assert_eq!(poll(&mut first, Waker::noop()), Poll::Ready(Ok(Arc::new(1))));
        drop(first);
        assert!(slot.now().is_some() && !slot.is_gone(), "another waits");
        drop(second);
        assert!(slot.now().is_none() && slot.is_gone());
    }

    #[test]
    fn a_value_that_is_kept_is_let_go_once_it_is_weakened() {
        let slot = Arc::<Number>::default();
        drop(slot.clone().wait());
        slot.settle(Ok(Arc::new(1)));
        drop(slot.clone().wait());
        assert!(slot.now().is_some(), "the slot keeps it");
        slot.weaken_unless_awaited();
        assert!(slot.now().is_none(), "none waits");
        // It has come again.
        slot.settle(Ok(Arc::new(2)));
        assert!(slot.now().is_some(), "the slot keeps it");
        slot.note_given(Pe::new(3));
        slot.note_given(Pe::new(3));
        assert_eq!(slot.weaken(), [Pe::new(3)]);
        assert!(slot.now().is_none() && slot.is_gone());
    }

    /// A task that waits may have moved to another that polls it.
    #[test]
    fn the_last_waker_of_each_that_waits_is_woken() {
        let slot = Arc::<Number>::default();
        let woken: [Arc<Woken>; 3] = Default::default();
        let mut waiting = [(); 2].map(|()| slot.clone().wait());
        let given_up = slot.clone().wait();
        for (moved, by) in [(0, 0), (0, 1), (1, 2)] {
            assert!(poll(&mut waiting[moved], &woken[by].waker()).is_pending());
        }
        drop(given_up);
        slot.settle(Ok(Arc::new(1)));
        assert_eq!(woken.map(|one| one.count()), [0, 1, 1]);
        assert!(!slot.is_gone());
    }

    /// A value of a user's type, whose drop panics.
    struct Breaks(Arc<AtomicU32>);

    impl Drop for Breaks {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("it breaks");
        }
    }

    /// The last to let go of it may be a worker between two tasks.
    #[test]
    fn no_panic_of_a_value_that_is_dropped_gets_out() {
        let dropped = Arc::<AtomicU32>::default();
        let slot = || {
            let slot = Arc::<Slot<Breaks>>::default();
            let waiting = slot.clone().wait();
            slot.settle(Ok(Arc::new(Breaks(dropped.clone()))));
            (slot, waiting)
        };
        let (first, waiting) = slot();
        first.weaken();
        drop(waiting);
        let (second, waiting) = slot();
        drop(waiting);
        second.weaken();
        let (third, waiting) = slot();
        drop(waiting);
        third.weaken_unless_awaited();
        let (fourth, _waiting) = slot();
        fourth.settle(Ok(Arc::new(Breaks(dropped.clone()))));
        let fifth = Arc::<Slot<Breaks>>::default();
        fifth.weaken();
        fifth.settle(Ok(Arc::new(Breaks(dropped.clone()))));
        assert_eq!(dropped.load(Ordering::Relaxed), 5);
        assert!(fourth.now().is_some(), "the first value stays");
        std::mem::forget(fourth);
    }

    #[test]
    fn the_first_value_counts_and_makes_good_an_error() {
        let slot = Arc::<Number>::default();
        slot.settle(Err(TaskError::ShuttingDown));
        assert!(slot.claim_delivery().is_none() && slot.is_gone(), "it has failed");
        [1, 2].into_iter().for_each(|value| slot.settle(Ok(Arc::new(value))));
        slot.settle(Err(TaskError::ShuttingDown));
        assert_eq!(slot.now(), Some(Ok(Arc::new(1))));
    }
}
