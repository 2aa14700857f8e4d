//! Why a port cannot do what was asked.

use crate::transport::error::LaneError;
use ultramarine_topology::Pe;

/// Why a [`Port`](super::Port) cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A message given to [`send`](super::Port::send) is too long.
    #[error(
        "a message of {bytes} bytes to {to} is longer than the limit of {limit} bytes: \
         send less at a time, or raise `message_bytes_max`"
    )]
    TooLongToSend {
        /// Where it was to go.
        to: Pe,
        /// Its length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A peer announced a message that is too long.
    #[error(
        "{from} announced a message of {bytes} bytes, over the limit of {limit} bytes: \
         give all PEs of the job the same `message_bytes_max`"
    )]
    MessageTooLong {
        /// Who announced it.
        from: Pe,
        /// Its length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A peer sent what no port writes.
    #[error("{from} sent what is no message: see that all PEs of the job run the same program")]
    Malformed {
        /// Who sent it.
        from: Pe,
    },
    /// The lane failed.
    #[error(transparent)]
    Lane(#[from] LaneError),
}
