//! How groups, and their openings, are told from each other.

use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// What all PEs call a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Name {
    /// What the group is about. Groups of the same digest are one, unless they have owners.
    pub digest: u128,
    /// The PE that has opened it, and the number of the opening there, if the group ends with that
    /// PE. `None`: it goes on, for the next root.
    pub owner: Option<(Pe, u64)>,
}

impl Name {
    /// The PE whose program needs the group.
    pub fn home(self, root: Pe) -> Pe {
        self.owner.map_or(root, |(owner, _)| owner)
    }

    /// Whether the group ends with this PE.
    pub fn ends_with(self, pe: Pe) -> bool {
        self.owner.is_some_and(|(owner, _)| owner == pe)
    }
}

/// When a group was opened: later openings are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// How often the main task had been started, with this time, as far as its PE knew.
    pub attempt: u32,
    /// The PE that has opened it. Of two roots that know of the same attempts the one with the
    /// greater number came later.
    pub by: Pe,
    /// The number of the opening on that PE.
    pub number: u64,
    /// The number of the opening on that PE with which the group began. 0: it may go on from what
    /// another root has opened.
    pub first: u64,
}

impl Opening {
    /// Whether the other opening is of a group of the same name that was closed before this one
    /// began.
    pub fn began_after(self, other: Opening) -> bool {
        self.first > 0 && other < Opening { number: self.first, ..self }
    }
}

/// An opening of a group, as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct GroupId {
    /// The group.
    pub name: Name,
    /// Which opening of it.
    pub opening: Opening,
}
