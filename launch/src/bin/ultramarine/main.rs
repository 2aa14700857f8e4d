//! The `ultramarine` command.

mod bounded;
mod completions;
mod doctor;
mod man;
mod probe;
mod run;
mod topo;

use clap::Parser;
use std::process::ExitCode;
use ultramarine::Result;

/// Irregular task parallelism on supercomputers.
#[derive(Parser)]
#[command(version)]
enum Command {
    Run(run::Arguments),
    Doctor(doctor::Arguments),
    Topo(topo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[command(hide = true)]
    Probe(probe::Arguments),
}

fn main() -> Result<ExitCode> {
    match Command::parse() {
        Command::Run(arguments) => run::run(&arguments)?,
        Command::Doctor(arguments) => return doctor::run(&arguments),
        Command::Topo(arguments) => topo::run(arguments)?,
        Command::Completions(arguments) => completions::run(&arguments)?,
        Command::Man(arguments) => man::run(&arguments)?,
        Command::Probe(arguments) => probe::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
