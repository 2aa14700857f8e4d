//! Numbers of processing elements.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A processing element: one process of the job, or a group of threads that plays one.
///
/// *Invariants:* PEs are numbered from 0 in hierarchy order, so that near PEs have near numbers.
/// The root of the job is PE 0. A PE number is not the launcher's rank:
/// [`Topology::rank_of`](crate::Topology::rank_of) has that.
///
/// ```
/// use ultramarine_topology::Pe;
/// assert_eq!(Pe::ROOT, Pe::new(0));
/// assert_eq!(Pe::new(7).to_string(), "PE 7");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Pe(u32);

impl Pe {
    /// The PE that runs the main task.
    pub const ROOT: Pe = Pe(0);

    /// The PE with this number. Its users check whether the job has such a PE.
    pub const fn new(number: u32) -> Self {
        Pe(number)
    }

    /// Its number, less than [`Topology::pes`](crate::Topology::pes).
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Its number as an index into a table with one row per PE.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {}", self.0)
    }
}
