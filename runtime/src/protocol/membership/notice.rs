//! What PEs say to each other about who lives, and where each of them stands.

use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// What PEs say to each other about who lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Notice {
    /// The sender lives, and knows this many dead.
    Known {
        /// The length of its list.
        dead: u32,
    },
    /// To the root: the sender has no contact with this PE.
    Accuse {
        /// Who does not answer.
        pe: Pe,
        /// The sender has lost it for good.
        insists: bool,
    },
    /// From the root to a witness, or to oneself: see whether this PE can be reached.
    Look {
        /// At whom to look.
        pe: Pe,
    },
    /// All that the sender knows to be dead.
    Bulletin {
        /// In the order in which the root declared them.
        dead: Vec<Pe>,
    },
    /// The root does not answer somebody: see for yourself.
    Orphaned {
        /// Who found out.
        herald: Pe,
    },
    /// The sender leaves because the job is over.
    Goodbye,
}

/// Where a PE stands, as it sees it. It begins as a member, and each of the others is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MembershipStatus {
    /// It belongs to the job.
    Member,
    /// The others hold it for dead; it has to leave.
    Expelled,
    /// It has lost the root, and cannot go on without.
    RootLost,
    /// The job has ended.
    Over {
        /// Who said so first.
        by: Pe,
    },
}
