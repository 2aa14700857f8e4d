//! What home knows about one of its tasks that is away.

use crate::protocol::message::{Bytes, Version};
use serde::{Deserialize, Serialize};
use ultramarine_topology::{Distance, Pe};

/// Where a task is, as far as its home knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Location {
    /// It waits or runs there.
    At(Pe),
    /// It was handed on, and may be on either PE or between them.
    InTransit {
        /// Who handed it on.
        from: Pe,
        /// Who is to get it.
        to: Pe,
    },
    /// The last copy is lost, and the next one waits at home for a thief.
    Lost,
}

/// What home knows about a task that is away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) version: Version,
    pub(super) location: Location,
    /// How far from home it may go.
    pub(super) radius: Distance,
    /// If it is supervised. (Of the others there can be millions, placed and not yet done.)
    pub(super) backup: Option<Box<Backup>>,
}

/// What home runs a task again from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backup {
    pub(super) body: Bytes,
    /// The PEs that the former copies were lost with, each once.
    pub(super) lost_with: Vec<Pe>,
}

impl Backup {
    pub(super) fn of(body: Bytes) -> Self {
        Backup { body, lost_with: Vec::new() }
    }
}

impl Record {
    /// How many PEs it was lost with.
    pub(super) fn losses(&self) -> usize {
        self.backup.as_ref().map_or(0, |backup| backup.lost_with.len())
    }
}
