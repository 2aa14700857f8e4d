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
    Topo(Box<topo::Arguments>),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> Result<ExitCode> {
    // Not for users, and so in no help, completion or page.
    if std::env::args_os().nth(1).is_some_and(|word| word == probe::NAME) {
        probe::run(probe::Arguments::parse_from(std::env::args_os().skip(1)))?;
        return Ok(ExitCode::SUCCESS);
    }
    match Command::parse() {
        Command::Run(arguments) => run::run(&arguments)?,
        Command::Doctor(arguments) => return doctor::run(&arguments),
        Command::Topo(arguments) => topo::run(*arguments)?,
        Command::Completions(arguments) => completions::run(&arguments)?,
        Command::Man(arguments) => man::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
