//! cargo-deny: licences, bans and sources of the dependencies, by the rules in `deny.toml`.
//!
//! Advisories are left out: their database has to be fetched, and a check must not fail because
//! another server is down.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use crate::process::{self, Failure, Result};

/// Without the graph of which crate needs which duplicate, which fills pages.
const CHECK: [&str; 5] = ["check", "--hide-inclusion-graph", "licenses", "bans", "sources"];

/// A later one may need a later compiler.
const VERSION: &str = "cargo-deny@0.20.2";

/// How often to try: a registry may be out of reach for a moment.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_secs(30);

/// Where cargo-deny is installed if the user has none: inside the build folder, to touch nothing
/// else.
fn own_root() -> PathBuf {
    process::target_root().join("tools")
}

/// The command that checks, if cargo-deny is installed.
pub(crate) fn find() -> Option<Command> {
    let own = own_root().join("bin/cargo-deny");
    let program = if own.is_file() { own } else { process::find_program("cargo-deny")? };
    let mut command = Command::new(program);
    command.current_dir(process::root()).args(CHECK);
    Some(command)
}

/// Checks; installs cargo-deny before, if it is not here.
///
/// # Errors
/// cargo-deny cannot be installed; most likely there is no network.
pub(crate) fn run() -> Result<ExitCode> {
    let mut check = match find() {
        Some(command) => command,
        None => install()?,
    };
    process::status_of(&mut check).map(process::exit_code)
}

/// Some minutes on two cores: too long for `cargo xtask test` to do it unasked. An unoptimised
/// build is done sooner than an optimised one, and checks as well.
fn install() -> Result<Command> {
    println!("Installing cargo-deny into {} (some minutes, once) …", own_root().display());
    let mut install = process::cargo();
    install.args(["install", "--locked", "--debug", "--config", "profile.dev.debug=0"]);
    install.args([VERSION, "--root"]).arg(own_root());
    let mut result = process::run(&mut install);
    for _ in 1..TRIES {
        let Err(Failure(why)) = &result else { break };
        println!("{why}; once more, in {} s", BETWEEN_TRIES.as_secs());
        thread::sleep(BETWEEN_TRIES);
        result = process::run(&mut install);
    }
    result?;
    find().ok_or_else(|| Failure("cargo-deny was installed but is not there".into()))
}
