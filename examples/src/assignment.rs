//! The flag `--assignment` of examples on graphs: which PE computes which node.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use ultramarine::skeletons::dag::{Assignment, Builder, Node};

/// Which PE computes which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum AssignmentChoice {
    /// Each level of the graph is divided among the PEs in their order.
    Levels,
    /// The first input of a node is computed where the node is, further ones on the next PEs.
    Cyclic,
    /// The program places the nodes.
    Placed,
}

impl AssignmentChoice {
    /// The rule for nodes that are not placed.
    pub fn rule(self) -> Assignment {
        match self {
            AssignmentChoice::Levels | AssignmentChoice::Placed => Assignment::Levels,
            AssignmentChoice::Cyclic => Assignment::Cyclic,
        }
    }

    /// Places a node, if it is for the program to do so.
    pub fn place<T>(self, g: &mut Builder, node: Node<T>, pe: u32) {
        if self == AssignmentChoice::Placed {
            g.place(node, pe);
        }
    }
}
