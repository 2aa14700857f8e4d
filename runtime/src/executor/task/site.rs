//! The PE as its tasks see it: the trait [`Site`].

use super::cancel::{Canceller, new_task};
use super::guest::Guest;
use super::origin::Origin;
use super::travel::DelayedStart;
use crate::protocol::{Message, TaskId};
use async_task::Task;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// What a task needs of the PE on which it runs.
pub(crate) trait Site: Canceller + Sized + 'static {
    /// The PE that runs the main task.
    fn root(&self) -> Pe;

    /// The PE's number among those of this process.
    fn slot(&self) -> u64;

    /// The longest argument or result that can travel, in bytes.
    fn value_bytes_max(&self) -> usize;

    /// Whether this PE has heard that another has died.
    fn is_dead(&self, pe: Pe) -> bool;

    /// Counts tasks that were dropped or stopped because their home had died.
    fn count_orphans(&self, tasks: u64);

    /// Sends a message at the next turn of the engine.
    fn send(&self, to: Pe, message: Message);

    /// Keeps a guest that has started and waits for something. It is stopped if its home dies or
    /// cancels it.
    fn keep_guest(&self, id: TaskId, task: Task<()>);

    /// Puts a guest back into the queues when the values for which it waits have arrived.
    fn begin_later(self: &Arc<Self>, guest: Guest, delayed: DelayedStart);

    /// Whether a task that runs here for `home` is an *orphan*: its home has died.
    #[inline]
    fn is_orphaned(&self, home: Pe) -> bool {
        home != self.me() && self.is_dead(home)
    }

    /// The origin of the main task, and of tasks that the runtime itself spawns on this PE.
    fn own_origin(&self) -> Origin {
        Origin { task: new_task(self.me(), self.slot()), home: self.me(), is_supervised: false }
    }
}
