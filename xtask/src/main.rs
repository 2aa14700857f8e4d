//! The project's own chores, so that a newcomer needs two commands: `cargo xtask demo` and
//! `cargo xtask test`.
//!
//! This crate drives `cargo`, `apt-get` and `mpiexec` from outside. It must never depend on a crate
//! of the project, but for `subprocess`, which needs nothing of the machine: it has to build and
//! run where the project itself cannot be built yet, because what it needs is still to be installed
//! by [`setup`].

#![forbid(unsafe_code)]

mod bench;
mod chaos;
mod demo;
mod deny;
mod links;
mod messages;
mod mpi;
mod mutants;
mod process;
mod report;
mod requirement;
mod scaling;
mod setup;
mod simulate;
mod smoke;
mod source;
mod step;
mod table;
mod test;
mod tidy;
mod validate;
mod weigh;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the Ultramarine project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what the build needs: C compiler, pkg-config, libclang, hwloc, MPI
    Setup,
    /// Build an example and run it on four processes, or on the nodes of a Slurm allocation
    Demo,
    /// Check everything: format, lints, docs, the rules of the house, the tests under each MPI
    Test(test::Arguments),
    /// Check the rules of the house on the source tree
    Tidy,
    /// Check the dependencies' licences and origin with cargo-deny, installing it first if missing
    Deny,
    /// Run benchmarks; what follows the first name is passed on to the benchmark program
    Bench {
        /// Optimise the whole program when it is linked, which takes many minutes
        #[arg(long)]
        lto: bool,
        /// Which benchmarks to run, and their options
        #[arg(value_name = "NAME", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Simulate jobs of up to 10^5 PEs; what follows is passed on to the simulator
    #[command(disable_help_flag = true)]
    Simulate {
        /// Which experiment, and its options; `list` names them
        #[arg(value_name = "NAME", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the experiments of docs/SCALING.md again, and put their results in the page
    Scaling {
        /// Which experiments; all unless given
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print how many bytes of a program each task and each call of a skeleton takes
    Weigh,
    /// Disturb real jobs (killed processes, cut networks, …); check results, hangs, leftovers
    Chaos(chaos::Arguments),
    /// Make small mistakes in the code, one at a time, and see whether the quick tests notice
    Mutants(mutants::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Setup => setup::ensure(setup::Wanted::EveryMpi).map(|_| ExitCode::SUCCESS),
        Chore::Demo => demo::run(),
        Chore::Test(arguments) => Ok(test::run(&arguments)),
        Chore::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Chore::Deny => deny::run(),
        Chore::Bench { lto, arguments } => bench::run(lto, &arguments),
        Chore::Simulate { arguments } if validate::is_meant(&arguments) => {
            validate::run(&arguments[1..])
        }
        Chore::Simulate { arguments } => simulate::run(&arguments),
        Chore::Scaling { names } => scaling::run(&names),
        Chore::Weigh => weigh::run(),
        Chore::Chaos(arguments) => chaos::run(&arguments),
        Chore::Mutants(arguments) => mutants::run(&arguments),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("xtask: {failure}");
        ExitCode::FAILURE
    })
}
