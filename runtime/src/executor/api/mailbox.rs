//! Mailboxes: values that tasks on different PEs send each other, in order.

use super::context::Context;
use super::mail_types::{AnyMail, MailTypes};
use super::waiting::{Wait, Waiting};
use crate::error::TaskError;
use crate::executor::keep::deaths::DeathListener;
use crate::executor::keep::inbox::InboxItem;
use crate::executor::keep::store::Key;
use crate::executor::task::caught::{discard, discard_with};
use crate::executor::task::portable::Portable;
use crate::lock::Lock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};
use ultramarine_topology::Pe;

/// A PE's mailbox for one key and one type: it receives, and it sends to mailboxes of the same key
/// on other PEs. See [`Context::mailbox`]. Cheap to clone.
pub struct Mailbox<T> {
    cx: Context,
    key: Key,
    mail_queue: Arc<MailQueue<T>>,
}

/// Keeps a mailbox until its key is forgotten. Then the tasks that wait there are told.
struct CloseWhenForgotten<T>(Arc<MailQueue<T>>);

impl<T> Drop for CloseWhenForgotten<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Mailbox { cx: self.cx.clone(), key: self.key, mail_queue: self.mail_queue.clone() }
    }
}

impl<T> std::fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Values that have arrived and were not received yet.
struct MailQueue<T> {
    state: Lock<State<T>>,
    /// The mailboxes of the same key.
    types: Arc<MailTypes>,
}

struct State<T> {
    from: BTreeMap<Pe, Sender<T>>,
    /// Senders, each at most once. The next to receive from is the first that has values left.
    queue: VecDeque<Pe>,
    /// PEs that have died, and those of them that `receive_any` has yet to report.
    dead: BTreeSet<Pe>,
    unreported_deaths: VecDeque<Pe>,
    /// The tasks that wait for a value of any sender.
    waiting: Waiting,
    /// No value arrives any more: the key was forgotten.
    is_closed: bool,
    /// Whether a value has ever arrived, and whether a task has ever waited.
    has_come: bool,
    has_waited: bool,
}

struct Sender<T> {
    values: VecDeque<T>,
    is_queued: bool,
    /// The tasks that wait for a value of this sender.
    waiting: Waiting,
}

fn wake_all(waiting: impl Iterator<Item = Waker>) {
    waiting.for_each(|waker| discard_with(|| waker.wake()));
}

impl<T> State<T> {
    /// Whether a task waits, as far as is known: it may have given up.
    fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || self.from.values().any(|sender| !sender.waiting.is_empty())
    }

    /// The next value; senders take turns.
    fn next_of_any(&mut self) -> Option<(Pe, T)> {
        while let Some(from) = self.queue.pop_front() {
            let sender = self.from.get_mut(&from)?;
            let value = sender.values.pop_front();
            sender.is_queued = !sender.values.is_empty();
            if sender.is_queued {
                self.queue.push_back(from);
            }
            // None if all were received from this sender by name.
            if let Some(value) = value {
                return Some((from, value));
            }
        }
        None
    }
}

impl<T> Default for Sender<T> {
    fn default() -> Self {
        Sender { values: VecDeque::new(), is_queued: false, waiting: Waiting::default() }
    }
}

impl<T> MailQueue<T> {
    fn new(types: Arc<MailTypes>) -> Self {
        let state = State {
            from: BTreeMap::new(),
            queue: VecDeque::new(),
            dead: BTreeSet::new(),
            unreported_deaths: VecDeque::new(),
            waiting: Waiting::default(),
            is_closed: false,
            has_come: false,
            has_waited: false,
        };
        MailQueue { state: Lock::new(state), types }
    }

    fn wait(&self, from: Option<Pe>) -> MailWait<'_, T> {
        MailWait { mail_queue: self, from, number: Wait::default() }
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let any = state.waiting.take();
        let senders = state.from.values_mut().flat_map(|sender| sender.waiting.take());
        let waiting: Vec<_> = senders.chain(any).collect();
        drop(state);
        wake_all(waiting.into_iter());
    }

    /// Adds a value. Returns whether it is the first that has ever come.
    fn put(&self, from: Pe, value: T) -> bool {
        let mut state = self.state.lock();
        let is_first = !std::mem::replace(&mut state.has_come, true);
        let State { from: senders, queue, waiting, .. } = &mut *state;
        let any = waiting.take();
        let sender = senders.entry(from).or_default();
        sender.values.push_back(value);
        if !std::mem::replace(&mut sender.is_queued, true) {
            queue.push_back(from);
        }
        let by_name = sender.waiting.take();
        drop(state);
        wake_all(by_name.chain(any));
        is_first
    }
}

/// A task's wait for a value. Nothing is left of it when it is dropped.
struct MailWait<'a, T> {
    mail_queue: &'a MailQueue<T>,
    from: Option<Pe>,
    number: Wait,
}

impl<T> Drop for MailWait<'_, T> {
    fn drop(&mut self) {
        if self.number == Wait::default() {
            return;
        }
        let mut state = self.mail_queue.state.lock();
        let waiting = match self.from {
            None => Some(&mut state.waiting),
            Some(from) => state.from.get_mut(&from).map(|sender| &mut sender.waiting),
        };
        let waker = waiting.and_then(|waiting| waiting.remove(self.number));
        drop(state);
        drop(waker);
    }
}

impl<T: Send> AnyMail for MailQueue<T> {
    fn of(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn waits_in_vain(&self) -> bool {
        let state = self.state.lock();
        !state.has_come && state.is_awaited()
    }

    fn is_left_unread(&self) -> bool {
        let state = self.state.lock();
        !state.is_awaited() && state.from.values().any(|sender| !sender.values.is_empty())
    }
}

impl<T: Send> DeathListener for MailQueue<T> {
    fn on_death(&self, dead: Pe) {
        let mut state = self.state.lock();
        if !state.dead.insert(dead) {
            return;
        }
        state.unreported_deaths.push_back(dead);
        let by_name = state.from.get_mut(&dead).map(|sender| sender.waiting.take());
        let any = state.waiting.take();
        drop(state);
        wake_all(by_name.into_iter().flatten().chain(any));
    }
}

/// The last owner may hold a lock of ours: no panic may get out.
impl<T> Drop for MailQueue<T> {
    fn drop(&mut self) {
        discard(std::mem::take(&mut self.state.lock().from));
    }
}

impl<T: Portable> Mailbox<T> {
    /// Sends a value to the mailbox of this key and type on a PE, which may be this one. The
    /// mailbox need not exist there yet. Values from one PE to another arrive in order.
    ///
    /// The value is moved, so that its arrays can be read from where they lie until the other PE
    /// has them: nothing can change them meanwhile.
    ///
    /// ```compile_fail,E0382
    /// # use ultramarine_runtime::executor::Mailbox;
    /// # use ultramarine_runtime::error::TaskError;
    /// # use ultramarine_topology::Pe;
    /// fn send(mailbox: &Mailbox<Vec<f64>>, mut values: Vec<f64>) -> Result<(), TaskError> {
    ///     mailbox.send(Pe::new(1), values)?;
    ///     values[0] = 0.5;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Context::tell`]. A value for a PE that has died is lost without an error, and so is
    /// one whose key is forgotten there.
    pub fn send(&self, to: Pe, value: T) -> Result<(), TaskError> {
        let deliver = |cx: &Context, (key, from, value): (Key, Pe, T)| {
            let Mailbox { mail_queue, .. } = cx.mailbox(key);
            if mail_queue.put(from, value) {
                mail_queue.types.look_later(cx);
            }
        };
        self.cx.tell_fn(to, deliver, (self.key, self.cx.pe(), value))
    }

    /// The next value from this PE. Waits for it without a limit: see [`Context::timeout`]. If
    /// several tasks wait, each value goes to one of them.
    ///
    /// # Errors
    ///
    /// Once all values that have arrived from it are received: [`TaskError::Died`] if the PE has
    /// died, [`TaskError::Cancelled`] if the key was forgotten here, [`TaskError::ShuttingDown`] if
    /// the job ends. [`TaskError::NoSuchPe`] if the job has no such PE.
    pub async fn receive(&self, from: Pe) -> Result<T, TaskError> {
        let pes = self.cx.pes();
        if from.number() >= pes {
            return Err(TaskError::NoSuchPe { pe: from, pes });
        }
        let mut wait = self.mail_queue.wait(Some(from));
        std::future::poll_fn(move |waker| {
            let mut state = self.mail_queue.state.lock();
            let sender = state.from.entry(from).or_default();
            if let Some(value) = sender.values.pop_front() {
                return Poll::Ready(Ok(value));
            }
            let old = sender.waiting.add(&mut wait.number, waker.waker());
            let is_dead = state.dead.contains(&from);
            let is_closed = state.is_closed;
            let is_first = !std::mem::replace(&mut state.has_waited, true);
            drop(state);
            drop(old);
            if is_first {
                self.mail_queue.types.look_later(&self.cx);
            }
            if is_dead {
                return Poll::Ready(Err(TaskError::Died { pe: from }));
            }
            self.cx.end_of_waiting(is_closed)
        })
        .await
    }

    /// The next value of any sender, and the PE that sent it. Senders take turns. Waits without a
    /// limit: see [`Context::timeout`]. If several tasks wait, each value, and the news of each
    /// death, goes to one of them.
    ///
    /// # Errors
    ///
    /// Once all values that have arrived are received: [`TaskError::Died`] for each PE that has
    /// died, once, also if it never sent anything; others may still send. [`TaskError::Cancelled`]
    /// if the key was forgotten here, [`TaskError::ShuttingDown`] if the job ends.
    pub async fn receive_any(&self) -> Result<(Pe, T), TaskError> {
        let mut wait = self.mail_queue.wait(None);
        std::future::poll_fn(move |waker| {
            let mut state = self.mail_queue.state.lock();
            if let Some(found) = state.next_of_any() {
                return Poll::Ready(Ok(found));
            }
            if let Some(pe) = state.unreported_deaths.pop_front() {
                return Poll::Ready(Err(TaskError::Died { pe }));
            }
            let old = state.waiting.add(&mut wait.number, waker.waker());
            let is_closed = state.is_closed;
            let is_first = !std::mem::replace(&mut state.has_waited, true);
            drop(state);
            drop(old);
            if is_first {
                self.mail_queue.types.look_later(&self.cx);
            }
            self.cx.end_of_waiting(is_closed)
        })
        .await
    }
}

impl Context {
    /// Why no value arrives any more, if that is so.
    fn end_of_waiting<T>(&self, is_closed: bool) -> Poll<Result<T, TaskError>> {
        match (self.pe.is_ending(), is_closed) {
            (true, _) => Poll::Ready(Err(TaskError::ShuttingDown)),
            (_, true) => Poll::Ready(Err(TaskError::Cancelled)),
            _ => Poll::Pending,
        }
    }

    /// This PE's mailbox for a key. Tasks on other PEs send to it from their mailboxes of the same
    /// key, which [travels](Context::new_key) to them. So neighbours exchange values without the PE
    /// that spawned them.
    ///
    /// The mailbox stays until the key is [forgotten](Context::forget) here, or the PE that made
    /// the key dies. Until then it keeps all values that arrive and are not received, without a
    /// limit. A value that arrives later makes a new mailbox.
    ///
    /// The type is part of the address: a `u64` arrives in the mailbox of `u64`. **A mailbox on
    /// which nothing arrives waits, without an error**: also if the value was sent as another type,
    /// as `u32` for example, or under another key. (Of another type the log tells after 10 s, the
    /// setting `blocked_after`.) [`Context::timeout`] limits the wait.
    ///
    /// Spawn tasks that exchange values [unsupervised](Context::unsupervised). A supervised task
    /// may be run again after a death, alone and perhaps elsewhere: it would not receive again what
    /// it received the first time, and would send its values twice. Instead, let the tasks that are
    /// left hear of the death, and start all of them again under a new key, as the example
    /// `stencil` does.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::{Context, Key};
    /// # use ultramarine_runtime::error::TaskError;
    /// # use ultramarine_topology::Pe;
    /// /// Passes a number around: each PE has what its neighbour had.
    /// async fn rotate(cx: Context, (key, number): (Key, u64)) -> Result<u64, TaskError> {
    ///     let (me, pes) = (cx.pe().number(), cx.pes());
    ///     let mail = cx.mailbox(key);
    ///     mail.send(Pe::new((me + 1) % pes), number)?;
    ///     mail.receive(Pe::new((me + pes - 1) % pes)).await
    /// }
    /// ```
    pub fn mailbox<T: Portable>(&self, key: Key) -> Mailbox<T> {
        let mut is_new = false;
        let kept = self.shared(key, || {
            is_new = true;
            let types = self.shared(key, MailTypes::default);
            CloseWhenForgotten(Arc::new(MailQueue::<T>::new(types)))
        });
        let mail_queue = kept.0.clone();
        if is_new {
            let any: Arc<dyn AnyMail> = mail_queue.clone();
            mail_queue.types.add(Arc::downgrade(&any));
            let listener: Arc<dyn DeathListener> = mail_queue.clone();
            self.pe.kept.death_listeners.add(Arc::downgrade(&listener));
            // Those that died before are announced to it too.
            self.pe.liveness.dead().for_each(|dead| self.pe.read(InboxItem::Death(dead)));
        }
        Mailbox { cx: self.clone(), key, mail_queue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_testkit::Woken;

    #[test]
    fn senders_take_turns_and_none_is_queued_twice() {
        let mail_queue = MailQueue::new(Arc::default());
        let (one, two) = (Pe::new(1), Pe::new(2));
        assert!(mail_queue.put(one, 0));
        assert!(!mail_queue.put(one, 1) && !mail_queue.put(one, 2));
        mail_queue.put(two, 7);
        let mut state = mail_queue.state.lock();
        assert_eq!(state.queue.len(), 2);
        assert_eq!(state.next_of_any(), Some((one, 0)));
        assert_eq!(state.next_of_any(), Some((two, 7)));
        // Received by name.
        assert_eq!(state.from.get_mut(&one).and_then(|one| one.values.pop_front()), Some(1));
        assert_eq!(state.next_of_any(), Some((one, 2)));
        assert_eq!(state.next_of_any(), None);
        drop(state);
        mail_queue.put(two, 8);
        assert_eq!(mail_queue.state.lock().next_of_any(), Some((two, 8)));
    }

    /// A queue in which one waits for each of the senders 1 and 2, and another for any.
    fn awaited() -> (MailQueue<u32>, [Arc<Woken>; 3]) {
        let mail_queue = MailQueue::new(Arc::default());
        let woken = <[Arc<Woken>; 3]>::default();
        let mut state = mail_queue.state.lock();
        for (sender, by) in [(1, 0), (2, 1)] {
            let sender = state.from.entry(Pe::new(sender)).or_default();
            drop(sender.waiting.add(&mut Wait::default(), &woken[by].waker()));
        }
        drop(state.waiting.add(&mut Wait::default(), &woken[2].waker()));
        drop(state);
        (mail_queue, woken)
    }

    fn counts(woken: &[Arc<Woken>; 3]) -> [u32; 3] {
        woken.each_ref().map(|one| one.count())
    }

    #[test]
    fn those_are_woken_that_wait_for_what_has_come() {
        let (mail_queue, woken) = awaited();
        mail_queue.put(Pe::new(1), 7);
        mail_queue.put(Pe::new(1), 8);
        assert_eq!(counts(&woken), [1, 0, 1]);
        mail_queue.close();
        assert_eq!(counts(&woken), [1, 1, 1]);
        assert!(mail_queue.state.lock().is_closed);
        let (mail_queue, woken) = awaited();
        mail_queue.close();
        assert_eq!(counts(&woken), [1, 1, 1]);
    }

    #[test]
    fn a_death_is_told_once() {
        let (mail_queue, woken) = awaited();
        [2, 2, 3].into_iter().for_each(|dead| mail_queue.on_death(Pe::new(dead)));
        assert_eq!(counts(&woken), [0, 1, 1]);
        let state = mail_queue.state.lock();
        assert_eq!(state.unreported_deaths, [2, 3].map(Pe::new));
        assert_eq!(state.dead.len(), 2);
    }
}
