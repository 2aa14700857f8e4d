//! Says when a task waits at a mailbox, while all that comes is of another type: the type is part
//! of a mailbox's address, so nothing would ever tell.

use super::context::Context;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The mailboxes of one key on one PE, one for each type.
#[derive(Default)]
pub(super) struct MailTypes {
    boxes: Mutex<Vec<Weak<dyn AnyMail>>>,
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
    fn boxes(&self) -> MutexGuard<'_, Vec<Weak<dyn AnyMail>>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, mail: Weak<dyn AnyMail>) {
        self.boxes().push(mail);
    }

    /// A task has begun to wait, or something has come, for the first time in one of them. If there
    /// are others, looks after some time (`blocked_after`) whether the two belong together.
    pub(super) fn look_later(self: &Arc<Self>, cx: &Context) {
        if self.boxes().len() < 2 || self.has_warned.load(Ordering::Relaxed) {
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
        let boxes: Vec<_> = self.boxes().iter().filter_map(Weak::upgrade).collect();
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
