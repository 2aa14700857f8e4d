//! Errors of this crate, worded for the person who started the job.

use crate::Place;
use crate::file::FileError;
use crate::hostname::PatternError;

/// Why a topology cannot be built, or the place of this process cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The job has no PEs.
    #[error("a topology needs at least one PE, and none was given")]
    NoPes,

    /// The job has more PEs than there are PE numbers.
    #[error("{pes} PEs are more than the {} that can be numbered", u32::MAX)]
    TooManyPes {
        /// The number of PEs.
        pes: usize,
    },

    /// The number of powers differs from the number of places.
    #[error("{places} places but {powers} compute powers were given; each PE has one of both")]
    PowersMismatch {
        /// The number of places.
        places: usize,
        /// The number of powers.
        powers: usize,
    },

    /// A PE has a compute power of 0.
    #[error("rank {rank} has a compute power of 0; each PE has at least one worker thread")]
    NoPower {
        /// The launcher's rank of the PE.
        rank: u32,
    },

    /// The sum of the powers exceeds 64 bits.
    #[error("the compute powers of all PEs add up to more than 2^64; measure in a larger unit")]
    PowerOverflow,

    /// A place has more than [`DEPTH_LIMIT`](crate::DEPTH_LIMIT) labels.
    #[error(
        "the place of rank {rank} is {depth} levels deep, more than the limit of {}: {place}",
        crate::DEPTH_LIMIT
    )]
    TooDeep {
        /// The launcher's rank of the PE.
        rank: u32,
        /// The number of labels of its place.
        depth: usize,
        /// The place.
        place: Place,
    },

    /// The topology file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),

    /// The host pattern cannot be used.
    #[error(transparent)]
    HostPattern(#[from] PatternError),

    /// The name of this host is unknown.
    #[error("cannot find out the name of this host from {path}: {cause}")]
    NoHostName {
        /// The file that should contain it.
        path: &'static str,
        /// The error of the system.
        cause: std::io::Error,
    },
}
