//! Why a port cannot send or receive.

use crate::transport::error::LaneError;
use ultramarine_topology::Pe;

/// Why a [`Port`](super::Port) cannot send or receive.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A message given to [`send`](super::Port::send) is too long.
    #[error(
        "a message of {bytes} bytes to {to} is longer than the limit of {limit} bytes: \
         send less at a time, or raise `message_bytes_max`"
    )]
    TooLongToSend {
        /// The receiver.
        to: Pe,
        /// The length of the message or its array, in bytes.
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
        /// The sender.
        from: Pe,
        /// The length that it announced, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A peer sent bytes that no port writes.
    #[error(
        "{from} sent bytes that are not a message: make sure that all PEs run the same program"
    )]
    Malformed {
        /// The sender.
        from: Pe,
    },
    /// The lane failed.
    #[error(transparent)]
    Lane(#[from] LaneError),
}
