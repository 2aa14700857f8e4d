//! The messages of the membership protocol, and the status of a PE in it.

use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// A message of the membership protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Notice {
    /// A heartbeat: the sender lives, and knows of this many deaths.
    Known {
        /// The length of its list.
        dead: u32,
    },
    /// To the root: the sender has no contact with this PE.
    Accuse {
        /// The PE that does not answer.
        pe: Pe,
        /// Whether the sender has lost it for good.
        insists: bool,
    },
    /// From the root to a witness, or from a PE to itself: find out whether this PE can be reached.
    Look {
        /// The PE to look at.
        pe: Pe,
        /// Whether what has been seen already, or is on its way, does not count.
        anew: bool,
    },
    /// A part of the root's list of the dead.
    Bulletin {
        /// The number of deaths before these.
        after: u32,
        /// The dead, in the order in which the root declared them.
        dead: Vec<Pe>,
    },
    /// The root does not answer the herald: look at the root yourself.
    Orphaned {
        /// The PE that found out.
        herald: Pe,
    },
    /// The sender leaves because the job is over.
    Goodbye,
}

/// Whether a PE is a member of the job, as it sees it. It begins as a member; each other status is
/// final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MembershipStatus {
    /// It belongs to the job.
    Member,
    /// The root has declared it dead; it must leave.
    Expelled,
    /// It has lost the root, and must leave.
    RootLost,
    /// The job has ended.
    Over {
        /// The PE that said so first.
        by: Pe,
    },
}
