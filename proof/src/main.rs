//! Runs the proofs, one by one and in full length; `cargo xtask test --only proof` runs the quick
//! ones.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use ultramarine_proof::{membership, search, spin, supervision};

/// Proofs that a job survives the deaths of its processes.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    proof: Proof,
}

#[derive(Subcommand)]
enum Proof {
    /// Search all states of a few PEs that supervise, steal, run and lose tasks
    Supervision {
        /// The longer cases, too: minutes, and some gigabytes of memory
        #[arg(long)]
        large: bool,
    },
    /// Search all states of a few PEs that agree on which are dead
    Membership {
        /// The longer cases, too: minutes, and some gigabytes of memory
        #[arg(long)]
        large: bool,
    },
    /// Have SPIN check the model in Promela
    Spin {
        /// A longer search: an hour, and up to 12 gigabytes of memory
        #[arg(long)]
        large: bool,
    },
}

fn main() -> ExitCode {
    let is_good = match Arguments::parse().proof {
        Proof::Supervision { large } => {
            let long = large.then(supervision::SupervisionCase::large).into_iter().flatten();
            let cases = supervision::SupervisionCase::quick().into_iter().chain(long);
            cases.fold(true, |is_good, (name, case)| show(name, &search::all(case)) && is_good)
        }
        Proof::Membership { large } => {
            let long = large.then(membership::MembershipCase::large).into_iter().flatten();
            let quick = membership::MembershipCase::quick().into_iter();
            let cases = quick.chain(membership::MembershipCase::with_succession()).chain(long);
            cases.fold(true, |is_good, (name, case)| show(name, &search::all(case)) && is_good)
        }
        Proof::Spin { large } => spin_says(large),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(name: &str, search: &search::SearchResult) -> bool {
    println!("{name}: {search}");
    search.is_good()
}

fn spin_says(large: bool) -> bool {
    let folder = std::env::temp_dir().join(format!("ultramarine-spin-{}", std::process::id()));
    let macros: &[&str] = if large { &["MORE_HOPS=1"] } else { &[] };
    let result = spin::check(macros, &folder);
    // If it cannot be removed, a folder of no use is left.
    let _ = std::fs::remove_dir_all(&folder);
    match &result {
        Ok(result) => println!("supervision.pml: {result}"),
        Err(error) => eprintln!("{error}"),
    }
    result.is_ok_and(|result| !result.is_violated)
}
