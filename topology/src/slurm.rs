//! Places from Slurm's `SLURM_TOPOLOGY_ADDR`.
//!
//! Where Slurm has a topology plugin it tells each task the names of the switches from the top of
//! the network down to the leaf, and last the node, with dots between them:
//!
//! ```text
//! SLURM_TOPOLOGY_ADDR=s0.s1.n3
//! SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
//! ```
//!
//! On a level where several switches are side by side the name is a range, as in `s[0-3].s8.n3`.
//! The range is taken as one name: hosts below the same set of switches are equally near.
//! Without a network Slurm gives the node alone, and the place is that host.

use crate::{Label, LevelKind, Place};

/// Why `SLURM_TOPOLOGY_ADDR` cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SlurmError {
    /// One variable without the other.
    #[error(
        "SLURM_TOPOLOGY_ADDR is set to `{addr}` but SLURM_TOPOLOGY_ADDR_PATTERN is not set; \
         pass both on to the processes, or neither"
    )]
    NoPattern {
        /// `SLURM_TOPOLOGY_ADDR`.
        addr: String,
    },
    /// The two have different numbers of components.
    #[error(
        "SLURM_TOPOLOGY_ADDR `{addr}` has {names} components but SLURM_TOPOLOGY_ADDR_PATTERN \
         `{pattern}` has {kinds}; unset both, or give a topology file"
    )]
    Length {
        /// `SLURM_TOPOLOGY_ADDR`.
        addr: String,
        /// How many components it has.
        names: usize,
        /// `SLURM_TOPOLOGY_ADDR_PATTERN`.
        pattern: String,
        /// How many components it has.
        kinds: usize,
    },
    /// A component of a kind that Slurm does not document.
    #[error(
        "SLURM_TOPOLOGY_ADDR_PATTERN `{pattern}` has a component `{kind}`, which is none of \
         switch, block and node; unset it, or give a topology file"
    )]
    Kind {
        /// `SLURM_TOPOLOGY_ADDR_PATTERN`.
        pattern: String,
        /// The component.
        kind: String,
    },
    /// A component without a name.
    #[error(
        "SLURM_TOPOLOGY_ADDR `{addr}` has an empty component; unset it, or give a topology file"
    )]
    EmptyName {
        /// `SLURM_TOPOLOGY_ADDR`.
        addr: String,
    },
    /// Something other than exactly one node, at the end.
    #[error(
        "SLURM_TOPOLOGY_ADDR_PATTERN `{pattern}` does not end in its only `node`; \
         unset it, or give a topology file"
    )]
    Node {
        /// `SLURM_TOPOLOGY_ADDR_PATTERN`.
        pattern: String,
    },
}

/// The place that the two variables name.
pub(crate) fn place(addr: &str, pattern: &str) -> Result<Place, SlurmError> {
    let names: Vec<&str> = addr.split('.').collect();
    let kinds: Vec<&str> = pattern.split('.').collect();
    let [owned_addr, owned_pattern] = [addr, pattern].map(|text| move || text.to_owned());
    if names.len() != kinds.len() {
        return Err(SlurmError::Length {
            addr: owned_addr(),
            names: names.len(),
            pattern: owned_pattern(),
            kinds: kinds.len(),
        });
    }
    let mut labels = Vec::with_capacity(names.len());
    for (i, (name, kind)) in names.iter().zip(&kinds).enumerate() {
        let is_last = i + 1 == kinds.len();
        let kind = match *kind {
            "switch" | "block" if !is_last => LevelKind::Switch,
            "node" if is_last => LevelKind::Host,
            "switch" | "block" | "node" => {
                return Err(SlurmError::Node { pattern: owned_pattern() });
            }
            other => {
                let kind = other.to_owned();
                return Err(SlurmError::Kind { pattern: owned_pattern(), kind });
            }
        };
        if name.is_empty() {
            return Err(SlurmError::EmptyName { addr: owned_addr() });
        }
        labels.push(Label::new(kind, *name));
    }
    Ok(Place::new(labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use LevelKind::{Host, Switch};

    #[test]
    fn switches_lead_to_the_node() {
        assert_eq!(
            place("s0.s1.n3", "switch.switch.node").unwrap(),
            Place::from_pairs([(Switch, "s0"), (Switch, "s1"), (Host, "n3")])
        );
        assert_eq!(place("n3", "node").unwrap(), Place::from_pairs([(Host, "n3")]));
        assert_eq!(
            place("b1.n3", "block.node").unwrap(),
            Place::from_pairs([(Switch, "b1"), (Host, "n3")])
        );
    }

    #[test]
    fn switches_side_by_side_are_one_name() {
        assert_eq!(
            place("s[0-3],t7.s8.n3", "switch.switch.node").unwrap(),
            Place::from_pairs([(Switch, "s[0-3],t7"), (Switch, "s8"), (Host, "n3")])
        );
    }

    #[test]
    fn errors_quote_the_variables() {
        let text = |addr, pattern| place(addr, pattern).unwrap_err().to_string();
        assert_eq!(
            text("s0.n3", "switch.switch.node"),
            "SLURM_TOPOLOGY_ADDR `s0.n3` has 2 components but SLURM_TOPOLOGY_ADDR_PATTERN \
             `switch.switch.node` has 3; unset both, or give a topology file"
        );
        assert!(text("s0.n3", "router.node").contains("`router`, which is none of"));
        assert!(text("n3.s0", "node.switch").contains("does not end in its only `node`"));
        assert!(text("n3.n4", "node.node").contains("does not end in its only `node`"));
        assert!(text(".n4", "switch.node").contains("an empty component"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            addr in "\\PC{0,20}",
            pattern in "(switch|node|x|\\.){0,5}",
        ) {
            if let Ok(place) = place(&addr, &pattern) {
                proptest::prop_assert!(place.host().is_some());
            }
        }
    }
}
