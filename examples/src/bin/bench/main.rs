//! Benchmarks. Each compares Ultramarine with another program for the same work, in turn within one
//! run, and prints the figures beside the goals. No benchmark passes or fails by time.
//!
//! The program launches other programs and copies of itself (`bench child …`), because it measures
//! whole jobs under a launcher.

mod bsp;
mod bulk;
mod cancel;
mod child;
mod cores;
mod dag;
mod detection;
mod divide;
mod gather;
mod idle;
mod launch;
mod mail;
mod memo;
mod memory;
mod noop;
mod pagerank;
mod plot;
mod proc;
mod programs;
mod reaction;
mod recovery;
mod replicas;
mod report;
mod sample;
mod search;
mod skeletons;
mod spawn;
mod startup;
mod steal;
mod succession;
mod sum_euler;
mod supervision;
mod table;
mod taskset;
mod trips;
mod uts;

use clap::{Parser, Subcommand};
use launch::Bench;
use proc::Processors;
use report::{Goal, Report};
use sample::{Sample, Unit};
use std::path::PathBuf;
use ultramarine::{Error, Result};

/// Measure the runtime against others and against its goals.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Which benchmarks to run [default: all].
    names: Vec<String>,
    /// Repeat each measurement less often.
    #[arg(long)]
    quick: bool,
    /// The time for `cores`, which repeats what it can in this time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// List the benchmarks and exit.
    #[arg(long)]
    list: bool,
    /// A Python interpreter with mpi4py, to compare with.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// The folder for charts.
    #[arg(long, value_name = "FOLDER", default_value = "target/plots")]
    plots: PathBuf,
    #[command(subcommand)]
    mode: Option<Mode>,
}

#[derive(Subcommand)]
enum Mode {
    /// One job of a benchmark, which starts it.
    #[command(hide = true)]
    Child(child::Arguments),
}

/// Name, description, and what measures. It ends at the first program that fails.
type Benchmark = (&'static str, &'static str, fn(&Bench, &mut Report) -> Result<()>);

#[rustfmt::skip]
const BENCHMARKS: [Benchmark; 32] = [
    ("sum-euler", "sum of totients, 400 tasks on 2 cores, against the sequential program and MPI",
        sum_euler::measure),
    ("skeletons", "two computations by the map skeletons, on ever more PEs", skeletons::measure),
    ("spawn", "spawning and awaiting a million tasks on one PE, against rayon", spawn::measure),
    ("divide", "divide and conquer without a threshold, against rayon::join, and on two PEs",
        divide::measure),
    ("uts", "unbalanced tree search, 102 million nodes, against a sequential loop", uts::measure),
    ("search", "branch and bound on two PEs, ten cliques and ten knapsacks, against one worker",
        search::measure),
    ("programs", "a sweep, supersteps, a knapsack, a quadrature and tiles, against MPI and rayon",
        programs::measure),
    ("dag", "how small the nodes of a graph may be, against MPI by hand and rayon",
        dag::metg::measure),
    ("dag-deaths",
        "graphs on 20 PEs of which up to three are killed, against graphs without deaths",
        dag::deaths::measure),
    ("dag-assignments",
        "graphs whose nodes are assigned to PEs in three ways: time, and what is sent",
        dag::assignments::measure),
    ("noop", "empty tasks per second from one PE to two, against mpi4py.futures", noop::measure),
    ("steal", "a thief's wait for a task, in memory and by messages, beside MPI's own round trip",
        steal::measure),
    ("taskset", "tasks in shared memory: one worker, a thief, a dead worker, and programs",
        taskset::measure),
    ("bsp", "supersteps, checkpoints, and programs that lose a PE, against MPI", bsp::measure),
    ("table", "distributed tables, against local maps, and all states of a cube", table::measure),
    ("memo", "divide and conquer with a memo, where parts overlap and where not", memo::measure),
    ("bulk", "large arguments and results, over each lane, against MPI and mpi4py", bulk::measure),
    ("mail", "arrays from task to task, within other values or not, against MPI", mail::measure),
    ("gather", "8 MB from each of four PEs to a fifth, against MPI", gather::measure),
    ("pagerank", "a graph of 10 million edges on two PEs, against MPI and one loop",
        pagerank::measure),
    ("trips", "round trips to one PE while 192 MB go to another", trips::measure),
    ("reaction", "from an event until the main task goes on, while all workers compute",
        reaction::measure),
    ("cancel", "from cancelling a million tasks until no PE has any left", cancel::measure),
    ("idle", "CPU use of a job that waits", idle::measure),
    ("startup", "from mpiexec to the first task, against an empty MPI program", startup::measure),
    ("memory", "bytes per waiting task, and growth over ten million tasks", memory::measure),
    ("supervision", "supervised tasks against unsupervised ones, without deaths",
        supervision::measure),
    ("detection", "from the death of a process until each survivor knows of it",
        detection::measure),
    ("succession", "from the death of the root until each survivor knows which PE is root now",
        succession::measure),
    ("recovery", "jobs that lose 1 of 10 or 5 of 20 PEs, against jobs that lose none",
        recovery::measure),
    ("replicas", "how many of 65,234 tasks run again when processes die, lazy and eager",
        replicas::measure),
    ("cores", "programs, tasks and transfers on 1, 2, 4, … all cores, within --minutes",
        cores::measure),
];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Mode::Child(child)) = arguments.mode {
        return child.run();
    }
    if arguments.list {
        for (name, about, _) in &BENCHMARKS {
            println!("{name:<15} {about}");
        }
        return Ok(());
    }
    let chosen = choose(&arguments.names)?;
    let Arguments { quick, minutes, python, plots, .. } = arguments;
    std::fs::create_dir_all(&plots)?;
    let bench = Bench::new(quick, minutes, python, plots)?;
    let mut report = Report::default();
    for (name, about, measure) in chosen {
        report.begin(name, about);
        let before = Processors::now()?;
        if let Err(error) = measure(&bench, &mut report) {
            report.missing("what follows", &error.to_string());
        }
        let others = Sample::one(Processors::now()?.percent_of_others(before));
        report.figure("(the processors were used by others)", &others, Unit::PERCENT);
    }
    report.print_summary();
    Ok(())
}

/// The benchmarks of these names, or all if there are no names.
fn choose(names: &[String]) -> Result<Vec<&'static Benchmark>> {
    if names.is_empty() {
        return Ok(BENCHMARKS.iter().collect());
    }
    let find = |name: &String| {
        BENCHMARKS.iter().find(|benchmark| benchmark.0 == name).ok_or_else(|| {
            let known: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.0).collect();
            Error::other(format!("there is no benchmark `{name}`; there are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// The number of cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
