//! Runs simulations; `cargo xtask simulate` calls it.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use ultramarine_simulator::faults;
use ultramarine_simulator::report::RunTotals;

/// Simulates jobs of up to 10^5 PEs.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Random jobs with random faults: each must end, with the right result
    Faults {
        /// The seed of the first job; each further job has the next seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of jobs
        #[arg(long, default_value_t = 1000)]
        runs: u64,
        /// Print every event
        #[arg(long)]
        tell: bool,
    },
    /// Trial
    Trial {
        /// The machine: RACKSxHOSTSxPESxWORKERS
        machine: String,
        /// Items for each worker
        items: u64,
        /// Cost of an item, in µs
        us: u64,
        /// Spread
        spread: String,
    },
}

fn main() -> ExitCode {
    let is_good = match Arguments::parse().experiment {
        Experiment::Faults { seed, runs, tell } => simulate_faults(seed, runs, tell),
        Experiment::Trial { machine, items, us, spread } => {
            ultramarine_simulator::experiment::trial(&machine, items, us, &spread)
        }
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn simulate_faults(seed: u64, runs: u64, tell: bool) -> bool {
    let mut total = RunTotals::default();
    for seed in seed..seed.saturating_add(runs) {
        let run = faults::run(seed, tell);
        if tell || run.fault.is_some() {
            println!("{run}");
        }
        total.add(&run);
    }
    println!("{total}");
    total.faults == 0
}
