//! Unbalanced Tree Search: counts the nodes of a tree that cannot be divided evenly in advance
//! (Olivier, Huan, Liu, Prins, Dinan, Sadayappan, Tseng: UTS, an unbalanced tree search benchmark,
//! LCPC 2006).
//!
//! A benchmark of load balancing: a subtree may be a leaf or millions of nodes, and a visit costs
//! one SHA-1, a tenth of a microsecond. Flags and trees are those of the reference program, so its
//! sample trees have the published flags (T1: `-t1 -a3 -d10 -b4 -r19`).

use crate::arena::{ArenaFlags, Units, run_in_arena};
use crate::{Job, Report, SearchFlags, name_of, run_program};
use clap::ValueEnum;
use rayon::iter::{ParallelIterator, walk_tree_postfix};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine_uts::{Node, Uts};

/// Count the nodes of an unbalanced tree.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    tree: Uts,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::ParEnumerate)]
    skeleton: Skeleton,
    #[command(flatten)]
    search: SearchFlags,
    #[command(flatten)]
    arena: ArenaFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// Tasks that any PE may steal.
    ParEnumerate,
    /// The threads of the root only, by rayon.
    Rayon,
    /// One thread of the root, node after node.
    Sequential,
}

/// The counts of the visited part of a tree.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct TreeCounts {
    nodes: u64,
    leaves: u64,
    /// The greatest depth.
    depth: u32,
}

impl TreeCounts {
    #[inline]
    fn visit(&mut self, node: &Node) {
        self.nodes += 1;
        self.leaves += u64::from(node.children == 0);
        self.depth = self.depth.max(node.depth);
    }

    fn add(&mut self, other: &TreeCounts) {
        self.nodes += other.nodes;
        self.leaves += other.leaves;
        self.depth = self.depth.max(other.depth);
    }
}

/// The number of nodes that a unit visits: some 2 ms.
const UNIT_NODES: u64 = 20_000;
/// Into how many units the rest of one is dealt.
const UNITS: usize = 4;

/// The subtrees of some nodes as a unit. Of what it does not visit, other units are made.
impl Units for Uts {
    type Found = TreeCounts;

    fn whole(&self) -> Vec<u8> {
        self.root().to_bytes().to_vec()
    }

    fn run(&self, unit: &[u8], left: &mut Vec<Vec<u8>>) -> Option<TreeCounts> {
        let nodes = unit.chunks(Node::BYTES).map(Node::from_bytes);
        let mut nodes: Vec<_> = nodes.collect::<Option<_>>()?;
        let mut found = TreeCounts::default();
        while found.nodes < UNIT_NODES
            && let Some(node) = nodes.pop()
        {
            found.visit(&node);
            nodes.extend(self.grow(node));
        }
        let units = UNITS.min(nodes.len());
        let deal = |first| nodes.iter().skip(first).step_by(units).flat_map(Node::to_bytes);
        left.extend((0..units).map(|first| deal(first).collect()));
        Some(found)
    }

    fn add(found: &mut TreeCounts, more: TreeCounts) {
        found.add(&more);
    }
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("uts", uts)
}

async fn uts(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { tree, skeleton, search: flags, arena } = arguments;
    if let Some(file) = arena.file {
        let run = run_in_arena(&job, &file, &tree).await?;
        let report = run.report(&job, run.found.nodes).await?;
        return with_shape(report, &run.found).print();
    }
    if !matches!(skeleton, Skeleton::ParEnumerate) {
        flags.journal.refuse_for(&skeleton)?;
    }
    let start = Instant::now();
    let found = match skeleton {
        Skeleton::ParEnumerate => {
            let visit = |_: &Uts, node: &Node, found: &mut TreeCounts| found.visit(node);
            let merge = |found: &mut TreeCounts, other: TreeCounts| found.add(&other);
            let root = tree.root();
            let splitting = flags.splitting.unwrap_or(Splitting::StealDriven);
            flags.run(&job, enumerate(splitting, visit, merge, tree, root)).await?
        }
        Skeleton::Rayon => by_rayon(&tree),
        Skeleton::Sequential => sequential(&tree),
    };
    let report = job.report(name_of(&skeleton), start, found.nodes).await?;
    with_shape(report, &found).print()
}

fn with_shape(report: Report, found: &TreeCounts) -> Report {
    report.with("depth", found.depth).with("leaves", found.leaves)
}

fn by_rayon(tree: &Uts) -> TreeCounts {
    let visit = |mut found: TreeCounts, node: Node| {
        found.visit(&node);
        found
    };
    let merge = |mut found: TreeCounts, other: TreeCounts| {
        found.add(&other);
        found
    };
    let nodes = walk_tree_postfix(tree.root(), |node| tree.grow(*node));
    nodes.fold(TreeCounts::default, visit).reduce(TreeCounts::default, merge)
}

fn sequential(tree: &Uts) -> TreeCounts {
    let (mut found, mut left) = (TreeCounts::default(), vec![tree.root()]);
    while let Some(node) = left.pop() {
        found.visit(&node);
        left.extend(tree.grow(node));
    }
    found
}
