//! Why a job ends before its time.

use crate::transport::LaneError;
use crate::transport::link::LinkError;
use crate::wire::WireError;
use ultramarine_topology::Pe;

/// Why a job cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The channel between two PEs cannot be kept up.
    #[error("{me} cannot go on: {source}")]
    Link {
        /// Who noticed.
        me: Pe,
        /// What went wrong.
        source: LinkError,
    },
    /// A message made no sense.
    #[error("{me} got a message from {from} that it cannot read: {source}")]
    Message {
        /// Who got it.
        me: Pe,
        /// Who sent it.
        from: Pe,
        /// What is wrong with it.
        source: WireError,
    },
    /// A message speaks of a PE that the job does not have.
    #[error("{me} got a message from {from} about a PE that does not exist")]
    Nonsense {
        /// Who got it.
        me: Pe,
        /// Who sent it.
        from: Pe,
    },
    /// Another PE gave up.
    #[error("the job was ended because of {pe}: {reason}")]
    Elsewhere {
        /// Who gave up.
        pe: Pe,
        /// Why.
        reason: String,
    },
    /// The failure detector could not start.
    #[error("{me} cannot watch over the others: {source}")]
    Detector {
        /// Who was to watch.
        me: Pe,
        /// What went wrong.
        source: LaneError,
    },
    /// The others hold this PE for dead, and go on without it.
    #[error(
        "{me} leaves: the others hold it for dead, since it did not answer in time (it was \
         stopped, or cut off; `dead_after` says how long they wait)"
    )]
    Expelled {
        /// Who leaves.
        me: Pe,
    },
    /// The root has died, or cannot be reached any more.
    #[error("{me} leaves: the job has lost its root ({reason})")]
    RootLost {
        /// Who leaves.
        me: Pe,
        /// How that showed.
        reason: String,
    },
    /// The runtime itself panicked.
    #[error("{me} cannot go on: the thread that looks after its messages panicked: {message}")]
    DriverPanicked {
        /// Whose driver.
        me: Pe,
        /// What it said.
        message: String,
    },
    /// The main task panicked.
    #[error("the main task panicked: {0}")]
    MainPanicked(String),
    /// The operating system refused to start worker threads.
    #[error("the worker threads of {me} cannot be started: {reason}")]
    Threads {
        /// Whose threads.
        me: Pe,
        /// What the system said.
        reason: String,
    },
}

impl JobError {
    /// Whether this PE leaves without a word: nobody would listen.
    pub(crate) fn is_desertion(&self) -> bool {
        matches!(self, JobError::Expelled { .. } | JobError::RootLost { .. })
    }
}
