//! Why there can be no such machine, worded for the person who described it.

use super::{PES_MAX, WORKERS_MAX};
use ultramarine_topology::TopologyError;

/// Why a machine cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A part of the description is no number: the description, and the part.
    #[error(
        "`{1}` in the machine `{0}` is no number; a machine is written as numbers with an x \
         between them, RACKSxHOSTSxPESxWORKERS, such as 64x32x4x16"
    )]
    NotANumber(String, String),
    /// The description has more numbers than a machine has levels: this many.
    #[error(
        "the machine `{0}` has {1} numbers, and at most 5 have a meaning: \
         GROUPSxRACKSxHOSTSxPESxWORKERS"
    )]
    TooManyNumbers(String, usize),
    /// One of the numbers of the description is 0.
    #[error("the machine `{0}` has a level of 0; each number is at least 1")]
    Zero(String),
    /// The machine of this description has this many PEs, more than can be simulated.
    #[error("the machine `{0}` has {1} PEs; at most {PES_MAX} can be simulated")]
    TooManyPes(String, u128),
    /// A PE has no worker thread, or more than can be simulated.
    #[error("a PE with {0} worker threads cannot be simulated; 1 to {WORKERS_MAX} are allowed")]
    Workers(u64),
    /// The cores do not make whole PEs of this many worker threads.
    #[error(
        "{0} cores do not make PEs of {1} worker threads each; give a multiple of {1}, or another \
         number of workers by --workers"
    )]
    Cores(u64, u32),
    /// What is slow is not described as a fraction and a factor.
    #[error(
        "`{0}` does not say what is slow: it is written FRACTION:FACTOR, such as 0.1:2 for a tenth \
         at half the speed; the fraction is above 0 and at most 1, the factor from 1 to 1000"
    )]
    Slow(String),
    /// The worker threads of unequal hosts are not a list of numbers.
    #[error(
        "`{0}` is no list of worker threads: it is written A,B,… such as 16,8, with numbers from 1 \
         to {WORKERS_MAX}; the hosts take them in turn"
    )]
    Unequal(String),
    /// The topology file cannot be used, or no topology can be built of it.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}
