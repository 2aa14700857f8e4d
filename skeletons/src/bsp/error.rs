//! The errors of bulk-synchronous runs.

use serde::{Deserialize, Serialize};
use ultramarine_runtime::error::TaskError;

/// Why a bulk-synchronous run has no outputs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BspError {
    /// A rank panicked: in its step, or when it was made.
    #[error("rank {rank} panicked in superstep {superstep}, {stage}: {message}")]
    Panicked {
        /// The rank.
        rank: u32,
        /// The superstep.
        superstep: u64,
        /// The stage, as its `Debug` says it; or what else was done with the rank.
        stage: String,
        /// What the panic said.
        message: String,
    },
    /// A rank cannot be saved, or what was saved cannot be read, or its output cannot be sent.
    #[error("rank {rank} in superstep {superstep}: {message}")]
    Codec {
        /// The rank.
        rank: u32,
        /// The superstep.
        superstep: u64,
        /// Why not.
        message: String,
    },
    /// The directory for checkpoints cannot be used.
    #[error("{message}")]
    Directory {
        /// Why not.
        message: String,
    },
    /// The files for the ranks cannot be found.
    #[error("{message}")]
    Input {
        /// Why not.
        message: String,
    },
    /// The program does what no program may: it sends something to a rank that has ended, or more
    /// in a superstep than fits into a message (`message_bytes_max`); ranks take part in different
    /// collective operations at once; or all sleep for ever.
    #[error("{message}")]
    Program {
        /// What it does.
        message: String,
    },
    /// The job ends, or the runtime refused something.
    #[error(transparent)]
    Task(#[from] TaskError),
}
