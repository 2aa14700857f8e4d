//! The `ultramarine` command.

mod topo;

use clap::Parser;

/// Irregular task parallelism on supercomputers.
#[derive(Parser)]
#[command(version)]
enum Command {
    Topo(topo::Arguments),
}

fn main() -> ultramarine::Result<()> {
    match Command::parse() {
        Command::Topo(arguments) => topo::run(arguments),
    }
}
