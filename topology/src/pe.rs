//! The name of a processing element.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A processing element: one process of the job (or one group of threads standing for one),
/// numbered from 0 in hierarchy order. The root of the job is always PE 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Pe(u32);

impl Pe {
    /// The PE that runs the program's `main`.
    pub const ROOT: Pe = Pe(0);

    /// The PE with this number. Whether the job has such a PE is checked where it is used.
    pub const fn new(number: u32) -> Self {
        Pe(number)
    }

    /// Its number, from 0 to the number of PEs less one.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Its number, for indexing tables that have a row per PE.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {}", self.0)
    }
}
