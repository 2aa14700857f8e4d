//! For which PE a task runs.

use crate::protocol::TaskId;
use ultramarine_topology::Pe;

/// Whose a task is: its name, and the PE that waits for it.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// The task's name, by which it can be cancelled.
    pub(crate) task: TaskId,
    /// The PE that waits for the task, or for the guest on this PE from which it descends.
    pub(crate) home: Pe,
    /// Whether the tasks that it spawns are supervised.
    pub(crate) is_supervised: bool,
}
