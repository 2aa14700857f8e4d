//! Why there can be no such machine, worded for the person who described it.

use super::{PES_MAX, WORKERS_MAX};
use ultramarine_topology::TopologyError;

/// Why a machine cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A part of the description is no number.
    #[error(
        "`{part}` in the machine `{text}` is no number; a machine is written as numbers with an x \
         between them, RACKSxHOSTSxPESxWORKERS, such as 64x32x4x16"
    )]
    NotANumber {
        /// The description.
        text: String,
        /// The part.
        part: String,
    },

    /// The description has more numbers than a machine has levels.
    #[error(
        "the machine `{text}` has {count} numbers, and at most 5 have a meaning: \
         GROUPSxRACKSxHOSTSxPESxWORKERS"
    )]
    TooManyNumbers {
        /// The description.
        text: String,
        /// How many numbers it has.
        count: usize,
    },

    /// One of the numbers is 0.
    #[error("the machine `{text}` has a level of 0; each number is at least 1")]
    Zero {
        /// The description.
        text: String,
    },

    /// The machine has more PEs than can be simulated.
    #[error("the machine `{text}` has {pes} PEs; at most {PES_MAX} can be simulated")]
    TooManyPes {
        /// The description.
        text: String,
        /// The number of PEs.
        pes: u128,
    },

    /// A PE has no worker thread, or more than can be simulated.
    #[error(
        "a PE with {workers} worker threads cannot be simulated; 1 to {WORKERS_MAX} are allowed"
    )]
    Workers {
        /// The number of workers.
        workers: u64,
    },

    /// The cores do not make whole PEs.
    #[error(
        "{cores} cores do not make PEs of {workers} worker threads each; give a multiple of \
         {workers}, or another number of workers by --workers"
    )]
    Cores {
        /// The number of cores.
        cores: u64,
        /// Worker threads a PE.
        workers: u32,
    },

    /// What is slow is not described as a fraction and a factor.
    #[error(
        "`{text}` does not say what is slow: it is written FRACTION:FACTOR, such as 0.1:2 for a \
         tenth at half the speed; the fraction is above 0 and at most 1, the factor from 1 to 1000"
    )]
    Slow {
        /// The text.
        text: String,
    },

    /// The worker threads of unequal hosts are not a list of numbers.
    #[error(
        "`{text}` is no list of worker threads: it is written A,B,… such as 16,8, with numbers \
         from 1 to {WORKERS_MAX}; the hosts take them in turn"
    )]
    Unequal {
        /// The text.
        text: String,
    },

    /// The topology file cannot be used, or no topology can be built of it.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}
