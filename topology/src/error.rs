//! What can be wrong with a hierarchy, told to the person who started the job.

use crate::Place;
use crate::file::FileError;
use crate::hostname::PatternError;

/// Why there is no topology, or no place for this process in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// There are no PEs.
    #[error("a topology needs at least one PE, and none was given")]
    NoPes,

    /// More PEs than numbers for them.
    #[error("{pes} PEs are more than the {} that can be numbered", u32::MAX)]
    TooManyPes {
        /// How many were given.
        pes: usize,
    },

    /// Not one power for each place.
    #[error("{places} places but {powers} compute powers were given; each PE has one of both")]
    PowersMismatch {
        /// How many places.
        places: usize,
        /// How many powers.
        powers: usize,
    },

    /// A PE without compute power.
    #[error("rank {rank} has a compute power of 0; each PE has at least one worker thread")]
    NoPower {
        /// The rank given by the launcher.
        rank: u32,
    },

    /// The powers do not add up to a 64-bit number.
    #[error("the compute powers of all PEs add up to more than 2^64; measure in a larger unit")]
    PowerOverflow,

    /// A path with too many labels.
    #[error(
        "the place of rank {rank} is {depth} levels deep, more than the limit of {}: {place}",
        crate::DEPTH_LIMIT
    )]
    TooDeep {
        /// The rank given by the launcher.
        rank: u32,
        /// How many labels its place has.
        depth: usize,
        /// The place.
        place: Place,
    },

    /// The topology file is of no use.
    #[error(transparent)]
    File(#[from] FileError),

    /// The host pattern is of no use.
    #[error(transparent)]
    HostPattern(#[from] PatternError),

    /// The system does not tell the name of this host.
    #[error("cannot find out the name of this host from {path}: {cause}")]
    NoHostName {
        /// Where it was looked for.
        path: &'static str,
        /// What the system says.
        cause: std::io::Error,
    },
}
