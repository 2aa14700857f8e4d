//! Why a graph has no result.

use super::handles::NodeId;
use serde::{Deserialize, Serialize};
use ultramarine_runtime::error::TaskError;
use ultramarine_topology::Pe;

/// Why a graph has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DagError {
    /// A node's function panicked. What depends on the node has no result either.
    #[error("{node} ({name}) panicked: {message}")]
    Panicked {
        /// The node.
        node: NodeId,
        /// The name of its function.
        name: String,
        /// What the panic said.
        message: String,
    },
    /// A node's argument or its result cannot be encoded, or cannot be decoded on another PE.
    #[error("the {what} of {node} ({name}) cannot be sent: {why}")]
    Unsendable {
        /// `argument` or `result`.
        what: String,
        /// The node.
        node: NodeId,
        /// The name of its function.
        name: String,
        /// Why not.
        why: String,
    },
    /// A node's result takes more memory than is [allowed](super::Dag::memory).
    #[error(
        "the result of {node} ({name}) takes {bytes} bytes, and `memory` allows a PE only {limit}"
    )]
    TooLarge {
        /// The node.
        node: NodeId,
        /// The name of its function.
        name: String,
        /// About how many bytes of memory the result takes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The function that builds the graph is not pure: it built another graph on another PE.
    #[error(
        "the graph that {pe} has built differs from the root's: its builder must be pure (does it \
         use the order of a HashMap, a clock, random numbers or a file?)"
    )]
    Differs {
        /// The other PE.
        pe: Pe,
    },
    /// A node uses one of an earlier block that does not exist, or that a stream did not return.
    #[error("there is no {node}; or it is of a stream, and was not returned, or is over")]
    NoSuchNode {
        /// The node.
        node: NodeId,
    },
    /// The function that builds the graph panicked.
    #[error("block {block} of the graph cannot be built: {message}")]
    Unbuilt {
        /// The block; 0 if the graph is built as a whole.
        block: u32,
        /// What the panic said.
        message: String,
    },
    /// A picture is wanted of a graph that is built [in blocks](super::Dag::blocks).
    #[error("a graph that is built in blocks has no picture, since no PE has all of its edges")]
    InBlocks,
    /// The journal cannot be used or written.
    #[error("{message}")]
    Journal {
        /// Why not.
        message: String,
    },
    /// The job ends, or the runtime refused something.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl DagError {
    /// A node's result cannot be sent.
    pub(super) fn unsendable(node: NodeId, name: &str, error: TaskError) -> Self {
        let why = match error {
            // It would name the function of the message.
            TaskError::Codec { reason, .. } => reason,
            other => other.to_string(),
        };
        DagError::Unsendable { what: "result".to_owned(), node, name: name.to_owned(), why }
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is used where errors are mapped")]
    pub(super) fn journal(error: impl ToString) -> Self {
        DagError::Journal { message: error.to_string() }
    }
}
