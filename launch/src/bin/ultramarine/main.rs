//! The `ultramarine` command.

mod bounded;
mod completions;
mod man;
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
    Topo(topo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> Result<ExitCode> {
    match Command::parse() {
        Command::Run(arguments) => run::run(&arguments)?,
        Command::Topo(arguments) => topo::run(arguments)?,
        Command::Completions(arguments) => completions::run(&arguments)?,
        Command::Man(arguments) => man::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
