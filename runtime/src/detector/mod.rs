//! Stand-in until the detector is here.

use ultramarine_topology::Pe;

/// What the detector has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These PEs have died.
    Dead(Vec<Pe>),
    /// The others hold this PE for dead: it must leave.
    Expelled,
    /// The root has died, or cannot be reached: this PE must leave.
    RootLost {
        /// How that showed.
        reason: String,
    },
    /// A PE has left in order: the job is over.
    JobOver {
        /// Which.
        by: Pe,
    },
}
