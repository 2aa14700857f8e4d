//! Runs the proofs, one by one and in full length; `cargo xtask test --only proof` runs the quick
//! ones.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use stateright::Model;
use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;
use ultramarine_proof::membership::MembershipCase;
use ultramarine_proof::supersteps::SuperstepsCase;
use ultramarine_proof::supervision::SupervisionCase;
use ultramarine_proof::tables::TablesCase;
use ultramarine_proof::{search, spin};

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
        #[command(flatten)]
        cases: Cases,
    },
    /// Search all states of a few PEs that agree on which are dead
    Membership {
        #[command(flatten)]
        cases: Cases,
    },
    /// Search all states of a few PEs that compute in supersteps
    Supersteps {
        #[command(flatten)]
        cases: Cases,
    },
    /// Search all states of a few PEs that hold a distributed table
    Tables {
        #[command(flatten)]
        cases: Cases,
    },
    /// Have SPIN check the model in Promela
    Spin {
        /// A longer search: an hour, and up to 12 gigabytes of memory
        #[arg(long)]
        large: bool,
    },
}

/// Which cases are searched.
#[derive(clap::Args)]
struct Cases {
    /// The longer cases, too: minutes, and some gigabytes of memory
    #[arg(long)]
    large: bool,
    /// Only the cases whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
}

impl Cases {
    /// Searches these cases one by one, and says what was found. Returns whether all is well.
    fn search<M>(&self, quick: Vec<(&str, M)>, large: fn() -> Vec<(&'static str, M)>) -> bool
    where
        M: Model + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
        M::Action: Clone + Debug + PartialEq + Send + Sync,
    {
        let large = self.large.then(large).into_iter().flatten();
        let all = quick.into_iter().chain(large).filter(|(name, _)| name.contains(&self.only));
        let search = |(name, case)| {
            let found = search::all(case);
            println!("{name}: {found}");
            found.is_good()
        };
        let good: Vec<bool> = all.map(search).collect();
        if good.is_empty() {
            eprintln!("no case has a name that contains {:?}", self.only);
        }
        !good.is_empty() && !good.contains(&false)
    }
}

fn main() -> ExitCode {
    let is_good = match Arguments::parse().proof {
        Proof::Supervision { cases } => {
            cases.search(SupervisionCase::quick(), SupervisionCase::large)
        }
        Proof::Membership { cases } => {
            let mut quick = MembershipCase::quick();
            quick.extend(MembershipCase::with_succession());
            cases.search(quick, MembershipCase::large)
        }
        Proof::Supersteps { cases } => cases.search(SuperstepsCase::quick(), SuperstepsCase::large),
        Proof::Tables { cases } => cases.search(TablesCase::quick(), TablesCase::large),
        Proof::Spin { large } => spin_says(large),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
