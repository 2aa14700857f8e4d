//! On whose behalf a task runs.

use crate::protocol::TaskId;
use ultramarine_topology::Pe;

/// Whose a task is.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// The task itself, for others to cancel it.
    pub(crate) task: TaskId,
    /// The PE that waits for it, or for the one on this PE from which it descends.
    pub(crate) home: Pe,
    /// Whether what it spawns is supervised.
    pub(crate) is_supervised: bool,
}
