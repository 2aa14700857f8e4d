//! The PE as its tasks see it.

use super::cancel::{Cancelled, new_task};
use super::guest::Guest;
use super::origin::Origin;
use super::travel::Late;
use crate::protocol::{Message, TaskId};
use async_task::Task;
use std::sync::Arc;
use ultramarine_topology::Pe;

/// What a task needs of the PE on which it runs.
pub(crate) trait Site: Send + Sync + Sized + 'static {
    /// Which PE this is.
    fn me(&self) -> Pe;

    /// Its number among the PEs of this process.
    fn slot(&self) -> u64;

    /// The longest argument or result that can travel, in bytes.
    fn value_bytes_max(&self) -> usize;

    /// Tasks that are not wanted any more.
    fn cancelled(&self) -> &Cancelled;

    /// Whether this PE has heard that another has died.
    fn is_dead(&self, pe: Pe) -> bool;

    /// Counts tasks that were dropped or stopped because their home had died.
    fn count_orphans(&self, tasks: u64);

    /// Sends a message at the next turn of the engine.
    fn send(&self, to: Pe, message: Message);

    /// A guest has begun, and waits for something. It is stopped if its home dies or cancels it.
    fn keep_guest(&self, id: TaskId, task: Task<()>);

    /// Puts a guest back into the queues when the values have arrived for which it waits.
    fn begin_later(self: &Arc<Self>, guest: Guest, late: Late);

    /// Whether a task that runs here on behalf of `home` is an orphan.
    #[inline]
    fn is_orphaned(&self, home: Pe) -> bool {
        home != self.me() && self.is_dead(home)
    }

    /// The origin of what this PE does for itself, and of the main task.
    fn own_origin(&self) -> Origin {
        Origin { task: new_task(self.me(), self.slot()), home: self.me(), is_supervised: false }
    }
}
