//! Runs simulations; `cargo xtask simulate` calls it.
//!
//! It ends with 0 if all was as it must be, with 1 if not, and with 2 if the command line is not
//! valid, or names a file or folder that cannot be used.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use ultramarine_simulator::experiment::Command;

fn main() -> ExitCode {
    let command = match Command::read(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    match command.show(&mut std::io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.is_refusal() { 2 } else { 1 })
        }
    }
}
