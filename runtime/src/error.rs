//! What can go wrong with one task. (What can go wrong with the whole job is
//! [`JobError`](crate::executor::JobError).)

use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// Why a future ends without a value. It travels from PE to PE as a value does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskError {
    /// The task's code panicked.
    #[error("the task panicked on {pe}: {message}")]
    Panicked {
        /// Where it ran.
        pe: Pe,
        /// What it said.
        message: String,
    },
    /// The task was to be placed on a PE that the job does not have.
    #[error("{pe} does not exist: the job has {pes} PEs, numbered from 0")]
    NoSuchPe {
        /// The PE asked for.
        pe: Pe,
        /// How many there are.
        pes: u32,
    },
    /// The argument or the result is longer than a message may be.
    #[error(
        "the {what} takes {bytes} bytes, more than the {limit} bytes of a message; send less, or \
         raise `message_bytes_max`"
    )]
    TooLarge {
        /// The argument or the result, of which task, and its type.
        what: String,
        /// Its encoded length.
        bytes: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The argument or the result could not be encoded, or did not decode on the other side.
    #[error(
        "the {what} cannot be carried from PE to PE: {reason} (what serde can leave out or put \
         elsewhere does not travel: `skip_serializing_if`, `flatten`, `untagged`, `tag`; see \
         `Portable`)"
    )]
    Codec {
        /// The argument or the result, of which task, and its type.
        what: String,
        /// What the codec said.
        reason: String,
    },
    /// The task names code that this program does not have.
    #[error("{pe} cannot run the task: {reason}")]
    UnknownCode {
        /// Who refused it.
        pe: Pe,
        /// Which check failed.
        reason: String,
    },
    /// All PEs that had a value of a [`Shared`](crate::executor::Shared) or
    /// [`Remote`](crate::executor::Remote) have died.
    #[error("a value that was made on {pe} is lost: no PE that lives has a copy of it")]
    ValueLost {
        /// Where it was made.
        pe: Pe,
    },
    /// The task was, or may have been, on a PE that died, and nobody supervised it.
    #[error(
        "the task may have been lost with {pe}, which died: spawn it with `cx.supervised()` to \
         have it run again, if it can be run again alone"
    )]
    Lost {
        /// The PE that died.
        pe: Pe,
    },
    /// Every copy of a supervised task was lost with the PE that it was on: it may be the task
    /// itself that kills its hosts.
    #[error(
        "the task `{task}` was given up after {} PEs had died with copies of it, {}: either it \
         ends the processes that run it, or more processes are needed, and a greater \
         `max_replicas`",
        .with.len(),
        .with.iter().map(Pe::to_string).collect::<Vec<_>>().join(", ")
    )]
    GaveUp {
        /// The name of the task's function.
        task: String,
        /// The PEs that died with copies of it.
        with: Vec<Pe>,
    },
    /// The PE from which something was to come has died.
    #[error("{pe} has died: nothing more comes from it")]
    Died {
        /// The dead one.
        pe: Pe,
    },
    /// The task was [cancelled](crate::executor::Future::abort).
    #[error("the task was cancelled")]
    Cancelled,
    /// The program's main task ended while this task was not yet done.
    #[error("the job is shutting down")]
    ShuttingDown,
}
