//! What home knows about one of its tasks while it is away.

use crate::protocol::message::{Bytes, Version};
use serde::{Deserialize, Serialize};
use ultramarine_topology::{Distance, Pe};

/// Where a task is, as its home knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Location {
    /// It waits or runs on this PE.
    At(Pe),
    /// It was handed on, and may be on either PE or between them.
    InTransit {
        /// The PE that handed it on.
        from: Pe,
        /// The PE that gets it.
        to: Pe,
    },
    /// The last copy is lost, and the next copy waits at home for a thief.
    Lost,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) version: Version,
    pub(super) location: Location,
    /// How far from home it may go.
    pub(super) radius: Distance,
    /// If the task is supervised. (There can be millions of others, placed and not yet done, whose
    /// records must be small.)
    pub(super) backup: Option<Box<Backup>>,
}

/// What home needs to run a task again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backup {
    pub(super) body: Bytes,
    /// The PEs with which former copies were lost, each once.
    pub(super) lost_with: Vec<Pe>,
}

impl Backup {
    pub(super) fn of(body: Bytes) -> Self {
        Backup { body, lost_with: Vec::new() }
    }
}

impl Record {
    /// The number of PEs with which copies were lost.
    pub(super) fn losses(&self) -> usize {
        self.backup.as_ref().map_or(0, |backup| backup.lost_with.len())
    }
}
