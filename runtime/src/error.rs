//! Why a task has no value. Errors that end the whole job are
//! [`JobError`](crate::executor::JobError)s.

use serde::{Deserialize, Serialize};
use ultramarine_topology::Pe;

/// Why a future ends without a value. Like a value, the error is sent to the PE that spawned the
/// task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskError {
    /// The task's code panicked.
    #[error("the task panicked on {pe}: {message}")]
    Panicked {
        /// The PE that ran it.
        pe: Pe,
        /// The panic's message.
        message: String,
    },
    /// The task was placed on a PE that the job does not have.
    #[error("{pe} does not exist: the job has {pes} PEs, numbered from 0")]
    NoSuchPe {
        /// The PE that was named.
        pe: Pe,
        /// The number of PEs in the job.
        pes: u32,
    },
    /// The argument or the result is longer than a message may be.
    #[error(
        "the {what} is {bytes} bytes long, more than the limit of {limit} bytes: send less at a \
         time, or raise `message_bytes_max`"
    )]
    TooLarge {
        /// Names the argument or the result, its task and its type.
        what: String,
        /// Its encoded length, in bytes.
        bytes: usize,
        /// The limit in force, in bytes.
        limit: usize,
    },
    /// The argument or the result could not be encoded, or could not be decoded by its receiver.
    #[error("the {what} cannot be sent to another PE: {reason}")]
    Codec {
        /// Names the argument or the result, its task and its type.
        what: String,
        /// Why the encoder or the decoder stopped.
        reason: String,
    },
    /// The task names code that this program does not have.
    #[error("{pe} cannot run the task: {reason}")]
    UnknownCode {
        /// The PE that refused it.
        pe: Pe,
        /// The check that failed.
        reason: String,
    },
    /// All PEs that had the value of a [`Shared`](crate::executor::Shared) or
    /// [`Remote`](crate::executor::Remote) have died.
    #[error("a value that was made on {pe} is lost: no living PE has a copy of it")]
    ValueLost {
        /// The PE that made it.
        pe: Pe,
    },
    /// The task was, or may have been, on a PE that died, and it was not supervised.
    #[error(
        "the task may have been lost with {pe}, which died: spawn it with `cx.supervised()`, and \
         it is run again (if it does no harm to run it twice, and no other task waits for its mail)"
    )]
    Lost {
        /// The PE that died.
        pe: Pe,
    },
    /// Every copy of a supervised task was lost with the PE that it was on. The task itself may be
    /// what kills its hosts.
    #[error(
        "the task `{task}` was given up after {} PEs had died with copies of it, {}: either it \
         kills the processes that run it, or the job needs more processes and a larger \
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
    /// The PE from which a message or a value was expected has died.
    #[error("{pe} has died: nothing more comes from it")]
    Died {
        /// The dead PE.
        pe: Pe,
    },
    /// The task was [cancelled](crate::executor::Future::abort).
    #[error("the task was cancelled")]
    Cancelled,
    /// The program's main task ended while this task was not yet done.
    #[error("the job is shutting down")]
    ShuttingDown,
}
