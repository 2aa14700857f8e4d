//! Where a PE is: the path of labels from the root of the machine down to it.
//!
//! A place is plain data. Every PE finds out its own and tells the others at start-up; only then
//! does [`Topology`](crate::Topology) make distances of them. Nothing here knows where the labels
//! came from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a label names. The order is that of nesting, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LevelKind {
    /// A data centre or cluster, reached over a wide-area network.
    Site,
    /// Whatever groups hosts: a switch, rack, chassis, blade or island. Switches nest.
    Switch,
    /// A machine with an operating system of its own.
    Host,
    /// A processor package (socket).
    Package,
    /// A NUMA node: cores and the memory next to them.
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
    /// What is named.
    pub kind: LevelKind,
    /// Its name. It has to be unique only among those with the same labels above.
    pub name: String,
}

impl Label {
    /// The label of this kind and name.
    pub fn new(kind: LevelKind, name: impl Into<String>) -> Self {
        Label { kind, name: name.into() }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// A path of labels from the root down to (not including) the PE itself.
///
/// The empty place is the root: nothing is known about where the PE is.
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
    /// Any path is a place. One longer than 32 labels is refused where
    /// the topology is made, where the rank it came from is known.
    pub fn new(labels: Vec<Label>) -> Self {
        Place { labels }
    }

    /// As [`Place::new`], from kinds and names.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (LevelKind, &'a str)>) -> Self {
        Place::new(pairs.into_iter().map(|(kind, name)| Label::new(kind, name)).collect())
    }

    /// The path, outermost label first.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The name of the host, where the path names one.
    pub fn host(&self) -> Option<&str> {
        self.labels.iter().find(|l| l.kind == LevelKind::Host).map(|l| l.name.as_str())
    }

    /// This place with further labels below it.
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

/// The labels with commas between them.
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
