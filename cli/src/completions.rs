//! `ultramarine completions`: what a shell needs to complete this command's arguments.

use crate::error::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::Write as _;

/// Print a script that lets a shell complete this command's arguments, as in
/// `ultramarine completions bash > ~/.local/share/bash-completion/completions/ultramarine`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut script = Vec::new();
    // The generator panics where its output is closed early.
    let command = &mut crate::Command::command();
    clap_complete::generate(arguments.shell, command, "ultramarine", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
