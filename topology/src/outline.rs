//! A summary of the hierarchy, for drawing: branches, PEs, and runs of equal siblings of which only
//! the first is shown.
//!
//! A level that does not branch is part of the path to the part below it.

use crate::hierarchy::Cluster;
use crate::{Ball, Distance, Label, Pe, Topology};

/// The longest run of equal siblings that is shown in full.
const RUN_MAX: usize = 4;

/// A part of the hierarchy; [`Topology::outline`] returns the whole.
///
/// ```
/// use ultramarine_topology::{OutlineKind, Topology};
/// let OutlineKind::Branch { parts, .. } = Topology::flat(100).outline(10).kind else { panic!() };
/// // PE 0, and "99 more like it".
/// assert_eq!(parts[0].kind, OutlineKind::Pe);
/// assert_eq!(parts[1].kind, OutlineKind::More { siblings: 99, are_alike: true });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    /// The labels from the branch above down to it.
    pub path: Vec<Label>,
    /// The PEs in it.
    pub ball: Ball,
    /// What is shown of it.
    pub kind: OutlineKind,
}

/// What an [`Outline`] shows of a part of the hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutlineKind {
    /// One PE.
    Pe,
    /// Several parts.
    Branch {
        /// The distance between PEs of different parts.
        distance: Distance,
        /// The parts, by ascending PE number.
        parts: Vec<Outline>,
    },
    /// Siblings that are only counted. The path leads to the last of them.
    More {
        /// The number of siblings.
        siblings: usize,
        /// Whether they equal the sibling before them, except for names and ranks.
        are_alike: bool,
    },
}

impl Topology {
    /// A summary of the hierarchy. Of more than four consecutive siblings that are equal except for
    /// names and ranks, it shows the first and counts the others. If a branch then still has more
    /// than `parts_max` parts (at least 2), the last ones are counted as one part.
    pub fn outline(&self, parts_max: usize) -> Outline {
        let root = self.cluster(Pe::ROOT, Distance::ONE);
        let labels = self.place(Pe::ROOT).labels();
        let path = labels[..root.map_or(labels.len(), |cluster| cluster.depth)].to_vec();
        match root {
            None => Outline { path, ball: Ball::new(0, 1), kind: OutlineKind::Pe },
            Some(root) => Outline { path, ..self.branch(root, parts_max) },
        }
    }

    /// The first and the last rank in a part, if its ranks are consecutive in the order of its PEs.
    pub fn ranks_in_order(&self, part: &Outline) -> Option<(u32, u32)> {
        let first = self.rank_of(part.ball.first());
        let last = first + part.ball.len() - 1;
        let mut pairs = (first..=last).zip(part.ball.iter());
        pairs.all(|(rank, pe)| self.rank_of(pe) == rank).then_some((first, last))
    }

    /// A branch without its path. Recurses at most [`DEPTH_LIMIT`](crate::DEPTH_LIMIT) deep.
    fn branch(&self, cluster: &Cluster, parts_max: usize) -> Outline {
        let children = self.children(cluster);
        let mut parts = Vec::new();
        for run in children.chunk_by(|a, b| self.are_equal(*a, *b)) {
            let shown = if run.len() <= RUN_MAX { run.len() } else { 1 };
            parts.extend(run[..shown].iter().map(|child| (*child, None)));
            if shown < run.len() {
                parts.push((run[run.len() - 1], Some(&run[shown..])));
            }
        }
        // The parts after `parts_max` are counted as one.
        let cut = (parts.len() > parts_max).then(|| parts_max.max(2) - 1);
        let rest = cut.map(|cut| {
            let (first, run) = parts[cut];
            let first = run.map_or(first, |run| run[0]).ball.numbers().start;
            let begin = children.partition_point(|child| child.ball.numbers().start < first);
            more(&children[begin..], false)
        });
        let shown = parts.iter().take(cut.unwrap_or(parts.len()));
        let shown = shown.map(|(child, run)| match run {
            Some(run) => more(run, true),
            None => self.part(*child, parts_max),
        });
        let parts = shown.chain(rest).collect();
        let kind = OutlineKind::Branch { distance: cluster.distance, parts };
        Outline { path: Vec::new(), ball: cluster.ball, kind }
    }

    fn part(&self, child: Subtree<'_>, parts_max: usize) -> Outline {
        let path = child.path.to_vec();
        match child.cluster {
            None => Outline { path, ball: child.ball, kind: OutlineKind::Pe },
            Some(cluster) => Outline { path, ..self.branch(cluster, parts_max) },
        }
    }

    fn children<'a>(&'a self, branch: &Cluster) -> Vec<Subtree<'a>> {
        let mut children = Vec::new();
        let mut next = branch.ball.numbers().start;
        while next < branch.ball.numbers().end {
            let pe = Pe::new(next);
            let cluster = self.cluster_below(pe, branch);
            let ball = cluster.map_or(Ball::new(next, next + 1), |cluster| cluster.ball);
            let labels = self.place(pe).labels();
            let depth = cluster.map_or(labels.len(), |cluster| cluster.depth);
            children.push(Subtree { ball, cluster, path: &labels[branch.depth..depth] });
            next = ball.numbers().end;
        }
        children
    }

    /// Whether two siblings differ only in names and ranks. The distances between consecutive PEs
    /// determine the whole hierarchy, so comparing those is enough.
    fn are_equal(&self, a: Subtree<'_>, b: Subtree<'_>) -> bool {
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

/// One child of a branch: a subtree or a PE.
#[derive(Clone, Copy)]
struct Subtree<'a> {
    ball: Ball,
    /// The cluster at its top; `None` for a PE.
    cluster: Option<&'a Cluster>,
    /// The labels from the branch above down to it.
    path: &'a [Label],
}

/// The part that counts these siblings, at least one.
fn more(rest: &[Subtree<'_>], are_alike: bool) -> Outline {
    let (first, last) = (&rest[0], &rest[rest.len() - 1]);
    Outline {
        path: last.path.to_vec(),
        ball: Ball::new(first.ball.numbers().start, last.ball.numbers().end),
        kind: OutlineKind::More { siblings: rest.len(), are_alike },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LevelKind::{Host, Switch};
    use crate::Place;

    /// The structure alone, as in `(. (. .) +3)`.
    fn sketch(outline: &Outline) -> String {
        match &outline.kind {
            OutlineKind::Pe => ".".to_owned(),
            OutlineKind::More { siblings, are_alike } => {
                format!("{}{siblings}", if *are_alike { '=' } else { '+' })
            }
            OutlineKind::Branch { parts, .. } => {
                format!("({})", parts.iter().map(sketch).collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn equal_siblings_are_counted() {
        assert_eq!(sketch(&Topology::flat(4).outline(100)), "(. . . .)");
        assert_eq!(sketch(&Topology::flat(5).outline(100)), "(. =4)");
        assert_eq!(sketch(&Topology::flat(1).outline(100)), ".");
    }

    #[test]
    fn excess_parts_are_counted_as_one() {
        let places = vec![Place::from_pairs([(Host, "a")]); 10];
        let job = |powers: &[u64]| Topology::new(&places, powers).unwrap();
        let all_differ = job(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(sketch(&all_differ.outline(10)), "(. . . . . . . . . .)");
        assert_eq!(sketch(&all_differ.outline(9)), "(. . . . . . . . +2)");
        assert_eq!(sketch(&all_differ.outline(0)), "(. +9)");
        // A run that is cut is counted with the rest, except for the part that was shown.
        let runs = job(&[1, 1, 1, 1, 1, 2, 3, 3, 3, 3]);
        assert_eq!(sketch(&runs.outline(9)), "(. =4 . . . . .)");
        assert_eq!(sketch(&runs.outline(3)), "(. =4 +5)");
        assert_eq!(sketch(&runs.outline(2)), "(. +9)");
    }

    #[test]
    fn paths_lead_to_the_last_sibling_counted() {
        let host = |n: u32| Place::from_pairs([(Switch, "top"), (Host, &*format!("n{n}"))]);
        let places: Vec<_> = (0..12).map(|n| host(n / 2)).collect();
        let outline = Topology::new(&places, &[1; 12]).unwrap().outline(100);
        assert_eq!(outline.path, [Label::new(Switch, "top")]);
        let OutlineKind::Branch { distance, parts } = &outline.kind else { panic!("{outline:?}") };
        assert_eq!(*distance, Distance::ONE);
        assert_eq!(parts[0].path, [Label::new(Host, "n0")]);
        assert_eq!(parts[1].path, [Label::new(Host, "n5")]);
        assert_eq!(parts[1].ball.numbers(), 2..12);
        assert_eq!(parts[1].kind, OutlineKind::More { siblings: 5, are_alike: true });
    }
}
