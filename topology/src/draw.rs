//! The hierarchy as text, so that users can check what the runtime believes about their machine.
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
//! The distance at a branch is that between PEs of different children. A level that does not branch
//! shares a line with the part below it. Of more than four consecutive siblings that are equal
//! except for names and ranks, only the first is drawn; the others are counted.

use crate::Topology;
use crate::outline::{Outline, OutlineKind};
use crate::place::write_path;
use std::fmt::{self, Formatter};

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let outline = self.outline(usize::MAX);
        f.write_str("job")?;
        if let OutlineKind::Branch { .. } = outline.kind {
            if !outline.path.is_empty() {
                f.write_str(" at ")?;
                write_path(f, &outline.path)?;
            }
            f.write_str(": ")?;
            return self.draw_parts(f, &outline, "");
        }
        // The only PE of a job has no branch above it.
        writeln!(f, ": 1 PE, power {}", self.power_of(outline.ball))?;
        self.draw(f, &outline, "", true)
    }
}

impl Topology {
    /// Ends the line that names a part, and draws the parts below it. Recurses at most
    /// [`DEPTH_LIMIT`](crate::DEPTH_LIMIT) deep.
    fn draw_parts(&self, f: &mut Formatter<'_>, branch: &Outline, indent: &str) -> fmt::Result {
        let OutlineKind::Branch { distance, parts } = &branch.kind else { return writeln!(f) };
        let (pes, power) = (branch.ball.len(), self.power_of(branch.ball));
        writeln!(f, "{pes} PEs, power {power}, distance {distance}")?;
        for (place, part) in (1..).zip(parts) {
            self.draw(f, part, indent, place == parts.len())?;
        }
        Ok(())
    }

    fn draw(
        &self,
        f: &mut Formatter<'_>,
        part: &Outline,
        indent: &str,
        is_last: bool,
    ) -> fmt::Result {
        let (tee, bar) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write!(f, "{indent}{tee}")?;
        if let OutlineKind::More { siblings, are_alike } = part.kind {
            return self.draw_more(f, part, siblings, are_alike);
        }
        write_path(f, &part.path)?;
        if let OutlineKind::Branch { .. } = part.kind {
            f.write_str(": ")?;
            return self.draw_parts(f, part, &format!("{indent}{bar}"));
        }
        let (pe, comma) = (part.ball.first(), if part.path.is_empty() { "" } else { ", " });
        writeln!(f, "{comma}{pe}: rank {}, power {}", self.rank_of(pe), self.power(pe))
    }

    /// Draws the line that counts several siblings.
    fn draw_more(
        &self,
        f: &mut Formatter<'_>,
        part: &Outline,
        siblings: usize,
        are_alike: bool,
    ) -> fmt::Result {
        write!(f, "… {siblings} {}", if are_alike { "more like it" } else { "others" })?;
        if !part.path.is_empty() {
            f.write_str(", to ")?;
            write_path(f, &part.path)?;
        }
        let (from, to) = (part.ball.first(), part.ball.at(part.ball.len() - 1));
        write!(f, ": {from} to {to}")?;
        if let Some((first, last)) = self.ranks_in_order(part) {
            write!(f, ", ranks {first} to {last}")?;
        }
        writeln!(f)
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
    fn ranks_are_shown_only_if_they_are_consecutive() {
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
