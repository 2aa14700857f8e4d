//! Benchmarks. Each compares Ultramarine with another program for the same work, in turn within one
//! run, and prints the figures beside the goals. No benchmark passes or fails by time.
//!
//! The program launches other programs and copies of itself (`bench child …`), because it measures
//! whole jobs under a launcher.

mod bulk;
mod cancel;
mod child;
mod dag;
mod detection;
mod divide;
mod idle;
mod launch;
mod memory;
mod noop;
mod plot;
mod proc;
mod programs;
mod reaction;
mod recovery;
mod replicas;
mod report;
mod sample;
mod skeletons;
mod spawn;
mod startup;
mod steal;
mod succession;
mod sum_euler;
mod supervision;
mod trips;
mod uts;

use clap::{Parser, Subcommand};
use launch::Launcher;
use proc::Processors;
use report::Report;
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

/// The means of a benchmark.
struct Bench {
    launcher: Launcher,
    quick: bool,
    python: Option<PathBuf>,
    /// A folder for charts, which exists.
    plots: PathBuf,
}

impl Bench {
    /// The number of rounds in which the contenders run in turn.
    fn rounds(&self, usual: usize) -> usize {
        if self.quick { 2 } else { usual }
    }
}

struct Benchmark {
    name: &'static str,
    about: &'static str,
    measure: fn(&Bench, &mut Report),
}

const BENCHMARKS: [Benchmark; 23] = [
    Benchmark {
        name: "sum-euler",
        about: "sum of totients, 400 tasks on 2 cores, against the sequential program and MPI",
        measure: sum_euler::measure,
    },
    Benchmark {
        name: "skeletons",
        about: "two computations by the map skeletons, on ever more PEs",
        measure: skeletons::measure,
    },
    Benchmark {
        name: "spawn",
        about: "spawning and awaiting a million tasks on one PE, against rayon",
        measure: spawn::measure,
    },
    Benchmark {
        name: "divide",
        about: "divide and conquer without a threshold, against rayon::join, and on two PEs",
        measure: divide::measure,
    },
    Benchmark {
        name: "uts",
        about: "unbalanced tree search, 102 million nodes, against a sequential loop",
        measure: uts::measure,
    },
    Benchmark {
        name: "programs",
        about: "a sweep, a stencil, a knapsack, a quadrature and tiles, against MPI and rayon",
        measure: programs::measure,
    },
    Benchmark {
        name: "dag",
        about: "how small the nodes of a graph may be, against MPI by hand and rayon",
        measure: dag::metg::measure,
    },
    Benchmark {
        name: "dag-deaths",
        about: "graphs on 20 PEs of which up to three are killed, against graphs without deaths",
        measure: dag::deaths::measure,
    },
    Benchmark {
        name: "dag-assignments",
        about: "graphs whose nodes are assigned to PEs in three ways: time, and what is sent",
        measure: dag::assignments::measure,
    },
    Benchmark {
        name: "noop",
        about: "empty tasks per second from one PE to two, against mpi4py.futures",
        measure: noop::measure,
    },
    Benchmark {
        name: "steal",
        about: "from a thief's FISH to the stolen task, beside MPI's own round trip",
        measure: steal::measure,
    },
    Benchmark {
        name: "bulk",
        about: "large arguments and results, over each lane, against MPI and mpi4py",
        measure: bulk::measure,
    },
    Benchmark {
        name: "trips",
        about: "round trips to one PE while 192 MB go to another",
        measure: trips::measure,
    },
    Benchmark {
        name: "reaction",
        about: "from an event until the main task goes on, while all workers compute",
        measure: reaction::measure,
    },
    Benchmark {
        name: "cancel",
        about: "from cancelling a million tasks until no PE has any left",
        measure: cancel::measure,
    },
    Benchmark { name: "idle", about: "CPU use of a job that waits", measure: idle::measure },
    Benchmark {
        name: "startup",
        about: "from mpiexec to the first task, against an empty MPI program",
        measure: startup::measure,
    },
    Benchmark {
        name: "memory",
        about: "bytes per waiting task, and growth over ten million tasks",
        measure: memory::measure,
    },
    Benchmark {
        name: "supervision",
        about: "supervised tasks against unsupervised ones, without deaths",
        measure: supervision::measure,
    },
    Benchmark {
        name: "detection",
        about: "from the death of a process until each survivor knows of it",
        measure: detection::measure,
    },
    Benchmark {
        name: "succession",
        about: "from the death of the root until each survivor knows which PE is root now",
        measure: succession::measure,
    },
    Benchmark {
        name: "recovery",
        about: "jobs that lose 1 of 10 or 5 of 20 PEs, against jobs that lose none",
        measure: recovery::measure,
    },
    Benchmark {
        name: "replicas",
        about: "how many of 65,234 tasks run again when processes die, lazy and eager",
        measure: replicas::measure,
    },
];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Mode::Child(child)) = arguments.mode {
        return child.run();
    }
    if arguments.list {
        for Benchmark { name, about, .. } in &BENCHMARKS {
            println!("{name:<15} {about}");
        }
        return Ok(());
    }
    let chosen = choose(&arguments.names)?;
    let Arguments { quick, python, plots, .. } = arguments;
    std::fs::create_dir_all(&plots)?;
    let bench = Bench { launcher: Launcher::from_env()?, quick, python, plots };
    let mut report = Report::default();
    for Benchmark { name, about, measure } in chosen {
        report.begin(name, about);
        let before = Processors::now()?;
        measure(&bench, &mut report);
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
        BENCHMARKS.iter().find(|benchmark| benchmark.name == name).ok_or_else(|| {
            let known: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
            Error::other(format!("there is no benchmark `{name}`; there are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}
