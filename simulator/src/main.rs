//! Runs simulations; `cargo xtask simulate` calls it.
//!
//! It ends with 0 if all was as it must be, with 1 if not, and with 2 if the command line is not
//! valid, or names a file or folder that cannot be used.

#![forbid(unsafe_code)]

use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use ultramarine_simulator::experiment::Command;

fn main() -> ExitCode {
    end_quietly_when_unread();
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

/// Events are printed with `println!`, which panics when their reader has gone (`--tell | head`).
fn end_quietly_when_unread() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let is_unread = info.payload_as_str().is_some_and(|text| {
            text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
        });
        if is_unread {
            std::process::exit(0);
        }
        usual(info);
    }));
}
