//! The hierarchy in outline, to be drawn: branches, PEs, and runs of siblings that look
//! the same, of which one stands for all.
//!
//! Levels that do not branch are part of the path to what is below them.

use crate::hierarchy::Node;
use crate::{Ball, Distance, Label, Pe, Topology};

/// The longest run of siblings of the same shape that is told in full.
const RUN_MAX: usize = 4;

/// A part of the hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    /// The labels that lead to it from the branch above.
    pub path: Vec<Label>,
    /// The PEs in it.
    pub ball: Ball,
    /// What it is.
    pub shape: Shape,
}

/// What a part of the hierarchy is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One PE.
    Pe,
    /// Several parts, so far from each other.
    Branch {
        /// How far PEs of different parts are from each other.
        distance: Distance,
        /// The parts, by number of their PEs.
        parts: Vec<Outline>,
    },
    /// Several siblings after the one before, whose last one the path leads to.
    More {
        /// How many.
        siblings: usize,
        /// They differ from the one before in nothing but names and ranks.
        are_alike: bool,
    },
}

impl Topology {
    /// The hierarchy in outline. Of more than four siblings in a row that look the same but for
    /// names and ranks, the first is told and the others are counted; and of more than `parts_max`
    /// (at least 2) parts that are left of a branch, the last ones are counted.
    pub fn outline(&self, parts_max: usize) -> Outline {
        let root = self.cluster(Pe::ROOT, Distance::ONE);
        let labels = self.place(Pe::ROOT).labels();
        let path = labels[..root.map_or(labels.len(), |node| node.depth)].to_vec();
        match root {
            None => Outline { path, ball: Ball::new(0, 1), shape: Shape::Pe },
            Some(root) => Outline { path, ..self.branch(root, parts_max) },
        }
    }

    /// The first and the last rank in a part whose ranks follow each other as its PEs do.
    pub fn ranks_in_order(&self, part: &Outline) -> Option<(u32, u32)> {
        let first = self.rank_of(part.ball.first());
        let last = first + part.ball.len() - 1;
        let mut pairs = (first..=last).zip(part.ball.iter());
        pairs.all(|(rank, pe)| self.rank_of(pe) == rank).then_some((first, last))
    }

    /// A branch without its path. Recurses as deep as places are, which is limited.
    fn branch(&self, node: &Node, parts_max: usize) -> Outline {
        let children = self.children(node);
        let mut parts = Vec::new();
        for run in children.chunk_by(|a, b| self.look_the_same(*a, *b)) {
            let told = if run.len() <= RUN_MAX { run.len() } else { 1 };
            parts.extend(run[..told].iter().map(|child| (*child, None)));
            if told < run.len() {
                parts.push((run[run.len() - 1], Some(&run[told..])));
            }
        }
        // Whatever more there is, is counted in one.
        let cut = (parts.len() > parts_max).then(|| parts_max.max(2) - 1);
        let rest = cut.map(|cut| {
            let (first, run) = parts[cut];
            let first = run.map_or(first, |run| run[0]).ball.numbers().start;
            let begin = children.partition_point(|child| child.ball.numbers().start < first);
            more(&children[begin..], false)
        });
        let told = parts.iter().take(cut.unwrap_or(parts.len()));
        let told = told.map(|(child, run)| match run {
            Some(run) => more(run, true),
            None => self.part(*child, parts_max),
        });
        let parts = told.chain(rest).collect();
        let shape = Shape::Branch { distance: node.distance, parts };
        Outline { path: Vec::new(), ball: node.ball, shape }
    }

    fn part(&self, child: Child<'_>, parts_max: usize) -> Outline {
        let path = child.path.to_vec();
        match child.node {
            None => Outline { path, ball: child.ball, shape: Shape::Pe },
            Some(node) => Outline { path, ..self.branch(node, parts_max) },
        }
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

/// One child of a branch: a subtree or a PE.
#[derive(Clone, Copy)]
struct Child<'a> {
    ball: Ball,
    /// The branch at its top; `None` for a PE.
    node: Option<&'a Node>,
    /// The labels that lead to it from the branch above.
    path: &'a [Label],
}

/// What stands for these siblings, of which there is at least one.
fn more(rest: &[Child<'_>], are_alike: bool) -> Outline {
    let (first, last) = (&rest[0], &rest[rest.len() - 1]);
    Outline {
        path: last.path.to_vec(),
        ball: Ball::new(first.ball.numbers().start, last.ball.numbers().end),
        shape: Shape::More { siblings: rest.len(), are_alike },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LevelKind::{Host, Switch};
    use crate::Place;

    /// The shape alone, as in `(. (. .) +3)`.
    fn sketch(outline: &Outline) -> String {
        match &outline.shape {
            Shape::Pe => ".".to_owned(),
            Shape::More { siblings, are_alike } => {
                format!("{}{siblings}", if *are_alike { '=' } else { '+' })
            }
            Shape::Branch { parts, .. } => {
                format!("({})", parts.iter().map(sketch).collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn siblings_that_look_the_same_are_counted() {
        assert_eq!(sketch(&Topology::flat(4).outline(100)), "(. . . .)");
        assert_eq!(sketch(&Topology::flat(5).outline(100)), "(. =4)");
        assert_eq!(sketch(&Topology::flat(1).outline(100)), ".");
    }

    #[test]
    fn what_is_too_much_is_counted_in_one() {
        let places = vec![Place::from_pairs([(Host, "a")]); 10];
        let job = |powers: &[u64]| Topology::new(&places, powers).unwrap();
        let all_differ = job(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(sketch(&all_differ.outline(10)), "(. . . . . . . . . .)");
        assert_eq!(sketch(&all_differ.outline(9)), "(. . . . . . . . +2)");
        assert_eq!(sketch(&all_differ.outline(0)), "(. +9)");
        // A run that is cut is counted with the rest, but for what was told of it.
        let runs = job(&[1, 1, 1, 1, 1, 2, 3, 3, 3, 3]);
        assert_eq!(sketch(&runs.outline(9)), "(. =4 . . . . .)");
        assert_eq!(sketch(&runs.outline(3)), "(. =4 +5)");
        assert_eq!(sketch(&runs.outline(2)), "(. +9)");
    }

    #[test]
    fn paths_lead_to_the_last_of_those_counted() {
        let host = |n: u32| Place::from_pairs([(Switch, "top"), (Host, &*format!("n{n}"))]);
        let places: Vec<_> = (0..12).map(|n| host(n / 2)).collect();
        let outline = Topology::new(&places, &[1; 12]).unwrap().outline(100);
        assert_eq!(outline.path, [Label::new(Switch, "top")]);
        let Shape::Branch { distance, parts } = &outline.shape else { panic!("{outline:?}") };
        assert_eq!(*distance, Distance::ONE);
        assert_eq!(parts[0].path, [Label::new(Host, "n0")]);
        assert_eq!(parts[1].path, [Label::new(Host, "n5")]);
        assert_eq!(parts[1].ball.numbers(), 2..12);
        assert_eq!(parts[1].shape, Shape::More { siblings: 5, are_alike: true });
    }
}
