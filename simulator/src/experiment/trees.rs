//! Trees of tasks by stealing alone.
//!
//! Unbalanced tree search grows the published trees, node by node. A node costs as long as the
//! reference program takes for one (127 ns). The simulation grows each node too, so a large tree
//! takes its time: T1XXL about ten minutes a run. Queens and Fibonacci numbers are tasks that spawn
//! tasks.

use super::number::{whole, whole_number};
use super::output::{Each, efficiency_chart, reference};
use super::{Base, Experiment, ExperimentError, RunFigures, Sweep};
use crate::chart::Chart;
use crate::network::Preset;
use crate::published::FIBONACCI;
use crate::table::Row;
use crate::workload::search::SearchWorkload;
use crate::workload::spawn_tree::{Fibonacci, Problem, Queens, SpawnTree};
use clap::{Parser, ValueEnum};
use std::sync::Arc;
use ultramarine_uts::Uts;

/// The cores of the smallest run.
const FIRST_CORES: u64 = 128;

/// The options of the search.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct UnbalancedSearch {
    #[command(flatten)]
    sweep: Sweep<FIRST_CORES, 32_768>,
    /// The trees
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "t1xxl")]
    #[arg(ignore_case = true)]
    tree: Vec<PublishedTree>,
    /// What a node costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 127, value_parser = whole(1..=1_000_000_000))]
    node_ns: u64,
    /// How many nodes a task visits before it looks whether work is wanted
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = whole(1..=1_000_000))]
    nodes_at_once: u64,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
}

/// A sample tree of the benchmark, of a known number of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PublishedTree {
    /// Geometric, 4,130,071 nodes
    T1,
    /// Binomial, 4,112,897 nodes, 1,572 deep
    T3,
    /// Geometric, 102,181,082 nodes
    T1l,
    /// Binomial, 111,345,631 nodes, 17,844 deep
    T3l,
    /// Geometric, 4,230,646,601 nodes
    T1xxl,
}

impl PublishedTree {
    /// What it is called, the flags of the reference program, and the number of nodes
    /// (`sample_trees.sh` there).
    fn published(self) -> (&'static str, &'static str, u64) {
        match self {
            PublishedTree::T1 => ("T1", "-t1 -a3 -d10 -b4 -r19", 4_130_071),
            PublishedTree::T3 => ("T3", "-t0 -b2000 -q0.124875 -m8 -r42", 4_112_897),
            PublishedTree::T1l => ("T1L", "-t1 -a3 -d13 -b4 -r29", 102_181_082),
            PublishedTree::T3l => ("T3L", "-t0 -b2000 -q0.200014 -m5 -r7", 111_345_631),
            PublishedTree::T1xxl => ("T1XXL", "-t1 -a3 -d15 -b4 -r19", 4_230_646_601),
        }
    }
}

/// The flags of a tree alone.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Flags {
    #[command(flatten)]
    tree: Uts,
}

impl Experiment for UnbalancedSearch {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        for base in self.sweep.bases(1, Preset::Gemini)? {
            for which in &self.tree {
                let (name, flags, nodes) = which.published();
                let search = SearchWorkload {
                    tree: Flags::parse_from(flags.split(' ')).tree,
                    nodes,
                    node_ns: self.node_ns,
                    nodes_at_once: self.nodes_at_once,
                    is_supervised: base.supervises(self.supervised),
                };
                let workload = Arc::new(Arc::new(search));
                let figures = RunFigures::of(name, &base, workload, Vec::new())?;
                each(figures.row("tree", Row::default()))?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        vec![("uts", efficiency_chart("UTS trees by stealing alone", rows, "tree"))]
    }
}

/// The options of queens.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct QueensTree {
    #[command(flatten)]
    sweep: Sweep<FIRST_CORES, 32_768>,
    /// The rows and columns of the board
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = whole_number::<u32>(1..=16))]
    board: u32,
    /// How many rows are divided into tasks
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole_number::<u32>(1..=12))]
    threshold: u32,
    /// What a board costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 100)]
    #[arg(value_parser = whole_number::<u32>(1..=1_000_000))]
    step_ns: u32,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
    /// A part becomes a task only if another worker may take it, as in `par_divide_and_conquer`
    #[arg(long)]
    lazy: bool,
}

impl Experiment for QueensTree {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        let name = format!("queens {}, {} rows", self.board, self.threshold);
        let problem = Queens::new(self.board, self.threshold);
        let (step_ns, is_supervised, is_lazy) = (self.step_ns.into(), self.supervised, self.lazy);
        let tree = SpawnTree { problem, step_ns, is_supervised, is_lazy };
        run_tree(self.sweep.bases(1, Preset::Gemini)?, &name, &tree, each)
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        vec![("queens", efficiency_chart("Queens by stealing alone", rows, "problem"))]
    }
}

/// The options of Fibonacci numbers.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FibonacciTree {
    #[command(flatten)]
    sweep: Sweep<16, 1024>,
    /// Which number
    #[arg(long, value_name = "N", default_value_t = 45, value_parser = whole_number::<u32>(1..=80))]
    n: u32,
    /// Up to which number a task computes it alone
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = whole_number::<u32>(1..=80))]
    threshold: u32,
    /// What a call costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 3)]
    #[arg(value_parser = whole_number::<u32>(1..=1_000_000))]
    step_ns: u32,
    /// Supervise the tasks
    #[arg(long)]
    supervised: bool,
    /// A part becomes a task only if another worker may take it, as in `par_divide_and_conquer`
    #[arg(long)]
    lazy: bool,
}

/// The most divisions between a number and the threshold: 2^25 tasks or so.
const DIVISIONS_MAX: u32 = 35;

impl Experiment for FibonacciTree {
    fn run(&self, each: &mut Each<'_>) -> Result<(), ExperimentError> {
        let FibonacciTree { n, threshold, .. } = *self;
        if n > threshold + DIVISIONS_MAX {
            return Err(ExperimentError::Refused(format!(
                "fib({n}) down to {threshold} has too many tasks; --n may be at most \
                 {DIVISIONS_MAX} above --threshold"
            )));
        }
        let name = format!("fib {n}, threshold {threshold}");
        let (step_ns, is_supervised, is_lazy) = (self.step_ns.into(), self.supervised, self.lazy);
        let problem = Fibonacci { n, threshold };
        let tree = SpawnTree { problem, step_ns, is_supervised, is_lazy };
        run_tree(self.sweep.bases(16, Preset::Gemini)?, &name, &tree, each)
    }

    fn charts(&self, rows: &[Row]) -> Vec<(&'static str, Chart)> {
        let chart = efficiency_chart("Fibonacci numbers by stealing alone", rows, "problem");
        let references = FIBONACCI.iter().map(|it| reference(it, "")).collect();
        vec![("fibonacci", Chart { references, ..chart })]
    }
}

/// Runs a tree on these machines.
fn run_tree<P: Problem>(
    bases: Vec<Base>,
    name: &str,
    tree: &SpawnTree<P>,
    each: &mut Each<'_>,
) -> Result<(), ExperimentError> {
    for base in bases {
        let is_supervised = base.supervises(tree.is_supervised);
        let workload = Arc::new(SpawnTree { is_supervised, ..*tree });
        let figures = RunFigures::of(name, &base, workload, Vec::new())?;
        each(figures.row("problem", Row::default()))?;
    }
    Ok(())
}
