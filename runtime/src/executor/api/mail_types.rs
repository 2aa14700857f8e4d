//! Says when a task waits at a mailbox, while all that comes is of another type: the type is part
//! of a mailbox's address, so nothing would ever tell.

use super::context::Context;
use crate::lock::Lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The mailboxes of one key on one PE, one for each type.
#[derive(Default)]
pub(super) struct MailTypes {
    boxes: Lock<Vec<Weak<dyn AnyMail>>>,
    has_warned: AtomicBool,
}

/// A mailbox of any type.
pub(super) trait AnyMail: Send + Sync {
    /// The name of its type.
    fn of(&self) -> &'static str;
    /// Whether a task waits, and nothing has ever come.
    fn waits_in_vain(&self) -> bool;
    /// Whether something has come for which no task waits.
    fn is_left_unread(&self) -> bool;
}

impl MailTypes {
    pub(super) fn add(&self, mail: Weak<dyn AnyMail>) {
        self.boxes.lock().push(mail);
    }

    /// A task has begun to wait, or something has come, for the first time in one of them. If there
    /// are others, looks after some time (`blocked_after`) whether the two belong together.
    pub(super) fn look_later(self: &Arc<Self>, cx: &Context) {
        if self.boxes.lock().len() < 2 || self.has_warned.load(Ordering::Relaxed) {
            return;
        }
        let (types, later) = (self.clone(), cx.clone());
        let look = async move {
            later.sleep(later.pe.settings.blocked_after).await;
            types.look(&later);
        };
        cx.pe.run_async(look).into_iter().for_each(async_task::Task::detach);
    }

    fn look(&self, cx: &Context) {
        let boxes: Vec<_> = self.boxes.lock().iter().filter_map(Weak::upgrade).collect();
        let waits = boxes.iter().find(|mail| mail.waits_in_vain());
        let unread = boxes.iter().find(|mail| mail.is_left_unread());
        if let (Some(waits), Some(unread)) = (waits, unread)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                pe = cx.pe().number(),
                "a task waits at a mailbox of `{}`, and what has come under its key is for a \
                 mailbox of `{}`, at which no task waits: send and receive the same type",
                waits.of(),
                unread.of()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::pe::tests::{ByHand, alone};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};
    use ultramarine_testkit::eventually;

    const AFTER: Duration = Duration::from_millis(2);

    /// What the driver does, until all that is due later has been done.
    fn settle(pe: &ByHand) {
        std::thread::sleep(2 * AFTER);
        eventually("it rests", || {
            pe.0.turn();
            let is_over = pe.0.kept.timers.fire(Instant::now()).is_none();
            pe.0.wake_workers_if_needed();
            is_over && pe.0.queues.is_empty() && pe.rests()
        });
    }

    /// Whether it is told that a value of another type has come. A task waits for one sender or for
    /// any, from before the value comes or afterwards.
    fn is_told(is_named: bool, waits_first: bool, comes: bool) -> bool {
        let pe = alone(1, |settings| settings.blocked_after = AFTER);
        let (cx, key) = (pe.context(), pe.context().new_key());
        let (short, long) = (cx.mailbox::<u32>(key), cx.mailbox::<u64>(key));
        let types = cx.shared(key, MailTypes::default);
        let mut named = pin!(short.receive(cx.pe()));
        let mut any = pin!(short.receive_any());
        let mut wait = || {
            let waker = &mut Context::from_waker(Waker::noop());
            let is_waiting = if is_named {
                named.as_mut().poll(waker).is_pending()
            } else {
                any.as_mut().poll(waker).is_pending()
            };
            assert!(is_waiting);
            settle(&pe);
        };
        let send = || {
            if comes {
                long.send(cx.pe(), 7).expect("it may be sent");
            }
            settle(&pe);
        };
        if waits_first {
            wait();
            assert!(!types.has_warned.load(Ordering::SeqCst), "nothing has come");
            send();
        } else {
            send();
            assert!(!types.has_warned.load(Ordering::SeqCst), "no task waits");
            wait();
        }
        types.has_warned.load(Ordering::SeqCst)
    }

    #[test]
    fn it_is_told_when_a_task_waits_and_another_type_has_come_whichever_is_first() {
        for (is_named, waits_first) in [(true, true), (true, false), (false, true), (false, false)]
        {
            assert!(is_told(is_named, waits_first, true), "{is_named} {waits_first}");
            assert!(!is_told(is_named, waits_first, false), "{is_named} {waits_first}");
        }
    }
}
