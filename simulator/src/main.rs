//! Runs simulations; `cargo xtask simulate` calls it.
//!
//! It ends with 0 if all was as it must be, with 1 if not, and with 2 if the command line is not
//! valid, or names a file or folder that cannot be used.

#![forbid(unsafe_code)]

use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use ultramarine_simulator::experiment::Command;

fn main() -> ExitCode {
    end_when_unwritten();
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

/// Events are printed with `println!`, which panics when their reader has gone (`--tell | head`) or
/// a disk is full. Neither is a fault of this program.
fn end_when_unwritten() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let text = info.payload_as_str().filter(|it| it.starts_with("failed printing to stdout"));
        match text {
            Some(text) if text.contains("Broken pipe") => std::process::exit(0),
            Some(text) => {
                eprintln!("error: {text}");
                std::process::exit(1);
            }
            None => usual(info),
        }
    }));
}
