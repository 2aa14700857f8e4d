//! Errors that end a job early.

use crate::transport::LaneError;
use crate::transport::link::LinkError;
use crate::wire::WireError;
use ultramarine_topology::Pe;

/// Why a job, or this PE's part in it, cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The connection between two PEs failed.
    #[error("{me} cannot go on: {source}")]
    Link {
        /// The PE that noticed.
        me: Pe,
        /// What went wrong.
        source: LinkError,
    },
    /// A message could not be decoded.
    #[error("{me} got a message from {from} that it cannot read: {source}")]
    Message {
        /// The PE that received it.
        me: Pe,
        /// The PE that sent it.
        from: Pe,
        /// What is wrong with it.
        source: WireError,
    },
    /// A message names a PE that the job does not have.
    #[error("{me} got a message from {from} about a PE that does not exist")]
    Nonsense {
        /// The PE that received it.
        me: Pe,
        /// The PE that sent it.
        from: Pe,
    },
    /// Another PE could not go on.
    #[error("the job was ended because of {pe}: {reason}")]
    Elsewhere {
        /// The PE that could not go on.
        pe: Pe,
        /// Its error.
        reason: String,
    },
    /// The failure detector could not start.
    #[error("{me} cannot start its failure detector: {source}")]
    Detector {
        /// The PE whose detector it is.
        me: Pe,
        /// What went wrong.
        source: LaneError,
    },
    /// The other PEs consider this one dead, and go on without it.
    #[error(
        "{me} leaves: the others hold it for dead, since it did not answer in time (it was \
         stopped, or cut off; `dead_after` says how long they wait)"
    )]
    Expelled {
        /// The PE that leaves.
        me: Pe,
    },
    /// A call into MPI does not return, and the task that has led to it cannot go on. Others run
    /// what was supervised here.
    #[error("{me} leaves: after a death a call into MPI did not return, amid a task")]
    Stuck {
        /// The PE that leaves.
        me: Pe,
    },
    /// The root has died, or cannot be reached any more.
    #[error("{me} leaves: the job has lost its root ({reason})")]
    RootLost {
        /// The PE that leaves.
        me: Pe,
        /// How the loss was noticed.
        reason: String,
    },
    /// The runtime itself panicked, which is a defect of it.
    #[error("{me} cannot go on: its driver thread panicked: {message}")]
    DriverPanicked {
        /// The PE whose driver panicked.
        me: Pe,
        /// The panic's message.
        message: String,
    },
    /// The main task panicked.
    #[error("the main task panicked: {0}")]
    MainPanicked(String),
    /// The operating system refused to start worker threads.
    #[error("the worker threads of {me} cannot be started: {reason}")]
    Threads {
        /// The PE whose threads they are.
        me: Pe,
        /// What the system said.
        reason: String,
    },
}

impl JobError {
    /// Whether this PE leaves without telling the others: they would not listen, or it cannot reach
    /// them. To them it is as one that has died.
    pub(crate) fn leaves_silently(&self) -> bool {
        let is_alone = matches!(
            self,
            JobError::Expelled { .. } | JobError::Stuck { .. } | JobError::RootLost { .. }
        );
        is_alone || self.is_of_own_lane()
    }

    /// Whether its own lane has failed, and so will each further turn. (What another PE of the same
    /// process does is no failure of the lane.)
    pub fn is_of_own_lane(&self) -> bool {
        let JobError::Link { source: LinkError::Lane(error), .. } = self else { return false };
        !matches!(error, LaneError::HasLeft(_) | LaneError::NoSuchPe(_))
    }
}
