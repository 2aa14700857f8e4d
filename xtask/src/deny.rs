//! cargo-deny: licences, bans and sources of the dependencies, by the rules in `deny.toml`.
//!
//! Advisories are left out: their database has to be fetched, and a check must not fail because
//! somebody else's server is away.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::process::{self, Failure, Result};

/// Without the graph of who needs which duplicate, which fills pages.
const CHECK: [&str; 5] = ["check", "--hide-inclusion-graph", "licenses", "bans", "sources"];

/// Where cargo-deny is installed if the user has none: inside the build folder, to touch nothing else.
fn own_root() -> PathBuf {
    process::target_root().join("tools")
}

/// The command that checks, if cargo-deny is installed.
fn find() -> Option<Command> {
    let own = own_root().join("bin/cargo-deny");
    let program = if own.is_file() { own } else { process::find_program("cargo-deny")? };
    let mut command = Command::new(program);
    command.current_dir(process::root()).args(CHECK);
    Some(command)
}

/// The command that checks; installs cargo-deny before, if it is not here (three minutes on two
/// cores, once).
///
/// # Errors
/// cargo-deny cannot be installed; most likely there is no network.
pub(crate) fn find_or_install() -> Result<Command> {
    if let Some(command) = find() {
        return Ok(command);
    }
    println!("Installing cargo-deny into {}, once …", own_root().display());
    let mut install = process::cargo();
    install.args(["install", "--quiet", "--locked", "cargo-deny", "--root"]).arg(own_root());
    process::run(&mut install)?;
    find().ok_or_else(|| Failure("cargo-deny was installed but is not there".into()))
}

pub(crate) fn run() -> Result<ExitCode> {
    process::status_of(&mut find_or_install()?).map(process::exit_code)
}
