//! The place of a PE: the path of labels from the root of the machine down to it.
//!
//! A place is plain data. At start-up every process finds its own place and sends it to the root,
//! and [`Topology`](crate::Topology) computes distances from all of them. This module must never
//! know where labels come from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of thing that a label names. Kinds are ordered by nesting, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LevelKind {
    /// A data centre or cluster, connected by a wide-area network.
    Site,
    /// A group of hosts: a switch, rack, chassis, blade or island. Switches nest.
    Switch,
    /// A machine with one operating system.
    Host,
    /// A processor package (socket).
    Package,
    /// A NUMA node: some cores and the memory next to them.
    Numa,
}

impl LevelKind {
    /// All kinds, outermost first.
    pub const ALL: [LevelKind; 5] =
        [LevelKind::Site, LevelKind::Switch, LevelKind::Host, LevelKind::Package, LevelKind::Numa];
}

impl fmt::Display for LevelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LevelKind::Site => "site",
            LevelKind::Switch => "switch",
            LevelKind::Host => "host",
            LevelKind::Package => "package",
            LevelKind::Numa => "numa",
        })
    }
}

/// One step of the path to a PE, such as `host nid0042`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Label {
    /// The kind of thing.
    pub kind: LevelKind,
    /// Its name, unique among things with the same labels above them.
    pub name: String,
}

impl Label {
    /// A label of this kind and name.
    pub fn new(kind: LevelKind, name: impl Into<String>) -> Self {
        Label { kind, name: name.into() }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// The largest number of labels in a place: 32. [`Topology::new`](crate::Topology::new) refuses
/// deeper places.
pub const DEPTH_LIMIT: usize = 32;

/// A path of labels from the root down to, and without, the PE itself: outermost label first.
///
/// The empty place is the root: nothing is known about the position of the PE. The longer the
/// common prefix of two places, the nearer their PEs are.
///
/// ```
/// use ultramarine_topology::{LevelKind::*, Place};
/// let place = Place::from_pairs([(Switch, "rack3"), (Host, "n17"), (Package, "0")]);
/// assert_eq!(place.to_string(), "switch rack3, host n17, package 0");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Place {
    labels: Vec<Label>,
}

impl Place {
    /// The place at the end of this path, outermost label first.
    ///
    /// Any path is a place. [`Topology::new`](crate::Topology::new) refuses a path of more than
    /// [`DEPTH_LIMIT`](crate::DEPTH_LIMIT) labels, since it can name the rank in the error.
    pub fn new(labels: Vec<Label>) -> Self {
        Place { labels }
    }

    /// [`Place::new`] from pairs of a kind and a name.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (LevelKind, &'a str)>) -> Self {
        Place::new(pairs.into_iter().map(|(kind, name)| Label::new(kind, name)).collect())
    }

    /// The path, outermost label first.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The name of the host, if the path contains one.
    pub fn host(&self) -> Option<&str> {
        self.labels.iter().find(|l| l.kind == LevelKind::Host).map(|l| l.name.as_str())
    }

    /// Appends labels below this place.
    #[must_use]
    pub fn extended(mut self, below: impl IntoIterator<Item = Label>) -> Self {
        self.labels.extend(below);
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.labels.is_empty() {
            return f.write_str("the root");
        }
        write_path(f, &self.labels)
    }
}

/// Writes labels, separated by commas.
pub(crate) fn write_path(f: &mut fmt::Formatter<'_>, labels: &[Label]) -> fmt::Result {
    for (i, label) in labels.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(f, "{comma}{label}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_travels() {
        #[derive(PartialEq, Debug, Serialize, Deserialize)]
        struct Message {
            place: Place,
        }
        let labels = LevelKind::ALL.map(|kind| Label::new(kind, format!("{kind} \"1\"")));
        let sent = Message { place: Place::new(labels.to_vec()) };
        let text = toml::to_string(&sent).unwrap();
        assert_eq!(toml::from_str::<Message>(&text).unwrap(), sent);
    }

    #[test]
    fn the_root_has_no_host() {
        assert_eq!(Place::default().to_string(), "the root");
        assert_eq!(Place::default().host(), None);
    }
}
