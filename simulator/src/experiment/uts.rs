//! Unbalanced tree search by stealing alone: the published trees, really grown, node by node.
//!
//! A node costs as long as the reference program takes for one (127 ns). The simulation grows each
//! node too, so a large tree takes its time: T1XXL about ten minutes a run.

use super::number::whole_number;
use super::output::{Each, series};
use super::{Experiment, ExperimentError, RunFigures, Setup, doublings, figures};
use crate::chart::{Axis, Chart};
use crate::machine::CORES_MAX;
use crate::network::Preset;
use crate::table::Column;
use crate::workload::search::SearchWorkload;
use clap::{Parser, ValueEnum};
use std::sync::Arc;
use ultramarine_uts::Uts;

/// The options of the search.
#[derive(Clone, Debug, clap::Args)]
pub struct UnbalancedSearch {
    /// What it runs on. A PE has one worker unless told otherwise, so cores are PEs
    #[command(flatten)]
    pub setup: Setup,

    /// The trees
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "t1xxl")]
    #[arg(ignore_case = true)]
    pub tree: Vec<PublishedTree>,

    /// What a node costs, in nanoseconds
    #[arg(long, value_name = "ns", default_value_t = 127)]
    #[arg(value_parser = whole_number::<u64>(1..=1_000_000_000))]
    pub node_ns: u64,

    /// How many nodes a task visits before it looks whether work is wanted
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = whole_number::<u64>(1..=1_000_000))]
    pub nodes_at_once: u64,

    /// Double the cores from 128 up to this number
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    #[arg(conflicts_with_all = ["cores", "machine", "topology"])]
    #[arg(value_parser = whole_number::<u64>(FIRST_CORES..=CORES_MAX))]
    pub most_cores: u64,

    /// Supervise the tasks
    #[arg(long)]
    pub supervised: bool,
}

/// The cores of the smallest run.
pub(super) const FIRST_CORES: u64 = 128;

/// A sample tree of the benchmark, of a known number of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PublishedTree {
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
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            PublishedTree::T1 => "T1",
            PublishedTree::T3 => "T3",
            PublishedTree::T1l => "T1L",
            PublishedTree::T3l => "T3L",
            PublishedTree::T1xxl => "T1XXL",
        }
    }

    /// The flags of the reference program, and the number of nodes (`sample_trees.sh` there).
    fn flags_and_nodes(self) -> (&'static str, u64) {
        match self {
            PublishedTree::T1 => ("-t1 -a3 -d10 -b4 -r19", 4_130_071),
            PublishedTree::T3 => ("-t0 -b2000 -q0.124875 -m8 -r42", 4_112_897),
            PublishedTree::T1l => ("-t1 -a3 -d13 -b4 -r29", 102_181_082),
            PublishedTree::T3l => ("-t0 -b2000 -q0.200014 -m5 -r7", 111_345_631),
            PublishedTree::T1xxl => ("-t1 -a3 -d15 -b4 -r19", 4_230_646_601),
        }
    }

    fn tree(self) -> (Uts, u64) {
        /// The flags of a tree alone.
        #[derive(Parser)]
        #[command(no_binary_name = true)]
        struct Flags {
            #[command(flatten)]
            tree: Uts,
        }
        let (flags, nodes) = self.flags_and_nodes();
        (Flags::parse_from(flags.split(' ')).tree, nodes)
    }
}

impl Experiment for UnbalancedSearch {
    type Row = RunFigures;

    fn columns(&self) -> Vec<Column<RunFigures>> {
        figures::columns("tree")
    }

    fn run(&self, each: &mut Each<'_, RunFigures>) -> Result<(), ExperimentError> {
        let cores = doublings(FIRST_CORES, self.most_cores);
        for base in self.setup.bases(&cores, 1, Preset::Gemini)? {
            for which in &self.tree {
                let (tree, nodes) = which.tree();
                let search = SearchWorkload {
                    tree,
                    nodes,
                    node_ns: self.node_ns,
                    nodes_at_once: self.nodes_at_once,
                    is_supervised: base.supervises(self.supervised),
                };
                let workload = Arc::new(Arc::new(search));
                each(RunFigures::of(which.name(), &base, workload, Vec::new())?)?;
            }
        }
        Ok(())
    }

    fn charts(&self, rows: &[RunFigures]) -> Vec<(&'static str, Chart)> {
        vec![("uts", efficiency_chart("UTS trees by stealing alone", rows))]
    }
}

/// Efficiency over cores, a line for each series.
pub(super) fn efficiency_chart(title: &str, rows: &[RunFigures]) -> Chart {
    let efficiency = |row: &RunFigures| Some((row.cores as f64, 100.0 * row.efficiency));
    Chart {
        title: title.to_owned(),
        x: Axis::log2("cores"),
        y: Axis::percent("efficiency, %"),
        series: series(rows, |row| row.series.clone(), efficiency),
        references: Vec::new(),
        goals: Vec::new(),
    }
}
