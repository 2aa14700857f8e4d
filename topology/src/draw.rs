//! The hierarchy drawn as text, for people who want to see what the runtime believes.
//!
//! ```
//! use ultramarine_topology::{LevelKind::Host, Place, Topology};
//! let places = ["a", "a", "b"].map(|name| Place::from_pairs([(Host, name)]));
//! let job = Topology::new(&places, &[4, 4, 2])?;
//! assert_eq!(job.to_string(), "\
//! job: 3 PEs, power 10, distance 1
//! ├─ host a: 2 PEs, power 8, distance 1/2
//! │  ├─ PE 0: rank 0, power 4
//! │  └─ PE 1: rank 1, power 4
//! └─ host b, PE 2: rank 2, power 2
//! ");
//! # Ok::<(), ultramarine_topology::TopologyError>(())
//! ```
//!
//! At each branch stands how far PEs of different children are from each other. Levels that do
//! not branch share a line with what is below them. Of more than [`RUN_MAX`] siblings in a row
//! that look the same but for names and ranks, the first is drawn and the others are counted.

use crate::hierarchy::Node;
use crate::place::write_path;
use crate::{Ball, Label, Pe, Topology};
use std::fmt::{self, Formatter};

/// The longest run of siblings of the same shape that is drawn in full.
const RUN_MAX: usize = 4;

/// One child of a branch: a subtree or a PE.
#[derive(Clone, Copy)]
struct Child<'a> {
    ball: Ball,
    /// The branch at its top; `None` for a PE.
    node: Option<&'a Node>,
    /// The labels that lead to it from the branch above.
    path: &'a [Label],
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let root = self.cluster(Pe::ROOT, crate::Distance::ONE);
        let depth = root.map_or(0, |node| node.depth);
        f.write_str("job")?;
        if depth > 0 {
            f.write_str(" at ")?;
            write_path(f, &self.place(Pe::ROOT).labels()[..depth])?;
        }
        let Some(root) = root else {
            // A single PE has no branch above it.
            let path = self.place(Pe::ROOT).labels();
            let ball = Ball::new(0, 1);
            writeln!(f, ": 1 PE, power {}", self.power_of(ball))?;
            return self.draw_child(f, Child { ball, node: None, path }, "", true);
        };
        f.write_str(": ")?;
        self.draw_branch(f, root, "")
    }
}

impl Topology {
    /// Ends the line that names a branch, and draws its children. Recurses as deep as places are,
    /// which is limited.
    fn draw_branch(&self, f: &mut Formatter<'_>, node: &Node, indent: &str) -> fmt::Result {
        let (pes, power) = (node.ball.len(), self.power_of(node.ball));
        writeln!(f, "{pes} PEs, power {power}, distance {}", node.distance)?;
        let children = self.children(node);
        let runs = children.chunk_by(|a, b| self.look_the_same(*a, *b));
        for run in runs {
            let is_last = |child: &Child<'_>| child.ball.numbers().end == node.ball.numbers().end;
            if run.len() <= RUN_MAX {
                for child in run {
                    self.draw_child(f, *child, indent, is_last(child))?;
                }
            } else {
                self.draw_child(f, run[0], indent, false)?;
                self.draw_rest(f, &run[1..], indent, is_last(&run[run.len() - 1]))?;
            }
        }
        Ok(())
    }

    fn draw_child(
        &self,
        f: &mut Formatter<'_>,
        child: Child<'_>,
        indent: &str,
        is_last: bool,
    ) -> fmt::Result {
        let (tee, bar) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        f.write_str(indent)?;
        f.write_str(tee)?;
        write_path(f, child.path)?;
        if let Some(node) = child.node {
            f.write_str(": ")?;
            return self.draw_branch(f, node, &format!("{indent}{bar}"));
        }
        let (pe, comma) = (child.ball.first(), if child.path.is_empty() { "" } else { ", " });
        writeln!(f, "{comma}{pe}: rank {}, power {}", self.rank_of(pe), self.power(pe))
    }

    /// One line for the siblings after the first of a run.
    fn draw_rest(
        &self,
        f: &mut Formatter<'_>,
        rest: &[Child<'_>],
        indent: &str,
        is_last: bool,
    ) -> fmt::Result {
        let (first, last) = (&rest[0], &rest[rest.len() - 1]);
        let pes = Ball::new(first.ball.numbers().start, last.ball.numbers().end);
        let (from, to) = (pes.first(), pes.at(pes.len() - 1));
        let tee = if is_last { "└─ " } else { "├─ " };
        write!(f, "{indent}{tee}… {} more like it", rest.len())?;
        if !last.path.is_empty() {
            f.write_str(", to ")?;
            write_path(f, last.path)?;
        }
        write!(f, ": {from} to {to}")?;
        let rank = self.rank_of(from);
        if (rank..).zip(pes.iter()).all(|(rank, pe)| self.rank_of(pe) == rank) {
            write!(f, ", ranks {rank} to {}", self.rank_of(to))?;
        }
        writeln!(f)
    }

    fn children<'a>(&'a self, branch: &Node) -> Vec<Child<'a>> {
        let mut children = Vec::new();
        let mut next = branch.ball.numbers().start;
        while next < branch.ball.numbers().end {
            let pe = Pe::new(next);
            let node = self.cluster_below(pe, branch);
            let ball = node.map_or(Ball::new(next, next + 1), |node| node.ball);
            let labels = self.place(pe).labels();
            let depth = node.map_or(labels.len(), |node| node.depth);
            children.push(Child { ball, node, path: &labels[branch.depth..depth] });
            next = ball.numbers().end;
        }
        children
    }

    /// Whether two siblings differ in nothing but names and ranks. How PEs are apart from the
    /// next one tells the whole shape of a hierarchy.
    fn look_the_same(&self, a: Child<'_>, b: Child<'_>) -> bool {
        let kinds = |pe| self.place(pe).labels().iter().map(|label| label.kind);
        let gap = |ball: Ball, pe: Pe| {
            let next = Pe::new(pe.number() + 1);
            ball.contains(next).then(|| self.distance(pe, next))
        };
        a.ball.len() == b.ball.len()
            && a.ball.iter().zip(b.ball.iter()).all(|(p, q)| {
                self.power(p) == self.power(q)
                    && gap(a.ball, p) == gap(b.ball, q)
                    && kinds(p).eq(kinds(q))
            })
    }
}

#[cfg(test)]
mod tests {
    use crate::LevelKind::{Host, Numa, Package, Switch};
    use crate::{Place, Topology};

    #[test]
    fn levels_that_do_not_branch_share_a_line() {
        let places = [
            Place::from_pairs([(Switch, "top"), (Switch, "r1"), (Host, "a"), (Package, "0")]),
            Place::from_pairs([(Switch, "top"), (Switch, "r2"), (Host, "b")]),
            Place::from_pairs([(Switch, "top"), (Switch, "r1"), (Host, "a"), (Package, "1")]),
            Place::from_pairs([(Switch, "top"), (Switch, "r1"), (Host, "a"), (Package, "1")]),
        ];
        let job = Topology::new(&places, &[8, 16, 4, 4]).unwrap();
        assert_eq!(
            job.to_string(),
            "\
job at switch top: 4 PEs, power 32, distance 1
├─ switch r1, host a: 3 PEs, power 16, distance 1/2
│  ├─ package 0, PE 0: rank 0, power 8
│  └─ package 1: 2 PEs, power 8, distance 1/4
│     ├─ PE 1: rank 2, power 4
│     └─ PE 2: rank 3, power 4
└─ switch r2, host b, PE 3: rank 1, power 16
"
        );
    }

    #[test]
    fn equal_siblings_are_counted() {
        // 100 racks of 100 hosts with a PE each, but the last rack has one stronger PE.
        let places: Vec<Place> = (0..10_000)
            .map(|i| {
                let (rack, host) = (format!("r{}", i / 100), format!("n{:02}", i % 100));
                Place::from_pairs([(Switch, &*rack), (Host, &*host), (Numa, "0")])
            })
            .collect();
        let mut powers = vec![2; 10_000];
        powers[9_999] = 4;
        assert_eq!(
            Topology::new(&places, &powers).unwrap().to_string(),
            "\
job: 10000 PEs, power 20002, distance 1
├─ switch r0: 100 PEs, power 200, distance 1/2
│  ├─ host n00, numa 0, PE 0: rank 0, power 2
│  └─ … 99 more like it, to host n99, numa 0: PE 1 to PE 99, ranks 1 to 99
├─ … 98 more like it, to switch r98: PE 100 to PE 9899, ranks 100 to 9899
└─ switch r99: 100 PEs, power 202, distance 1/2
   ├─ host n00, numa 0, PE 9900: rank 9900, power 2
   ├─ … 98 more like it, to host n98, numa 0: PE 9901 to PE 9998, ranks 9901 to 9998
   └─ host n99, numa 0, PE 9999: rank 9999, power 4
"
        );
    }

    #[test]
    fn ranks_are_told_only_where_they_follow_each_other() {
        let host = |rank: usize| Place::from_pairs([(Host, ["a", "b"][rank % 2])]);
        let places: Vec<Place> = (0..12).map(host).collect();
        assert_eq!(
            Topology::new(&places, &[1; 12]).unwrap().to_string(),
            "\
job: 12 PEs, power 12, distance 1
├─ host a: 6 PEs, power 6, distance 1/2
│  ├─ PE 0: rank 0, power 1
│  └─ … 5 more like it: PE 1 to PE 5
└─ host b: 6 PEs, power 6, distance 1/2
   ├─ PE 6: rank 1, power 1
   └─ … 5 more like it: PE 7 to PE 11
"
        );
    }

    #[test]
    fn a_job_of_one_and_a_flat_job() {
        let one = Topology::new(&[Place::from_pairs([(Host, "a")])], &[8]).unwrap();
        assert_eq!(one.to_string(), "job: 1 PE, power 8\n└─ host a, PE 0: rank 0, power 8\n");
        assert_eq!(
            Topology::flat(2).to_string(),
            "job: 2 PEs, power 2, distance 1\n\
             ├─ PE 0: rank 0, power 1\n└─ PE 1: rank 1, power 1\n"
        );
    }
}
