//! Jobs under a launcher of MPI.

use crate::command::scrub;
use std::ffi::OsString;
use std::process::Command;

/// Names the launcher that belongs to the MPI that the tests are built with.
const VARIABLE: &str = "MPIEXEC_FOR_TESTS";

/// The launcher that belongs to this build, in an environment without other launchers and settings.
/// `None` where there is none, which it says: the test then has nothing to do.
pub fn launcher() -> Option<Command> {
    let mut command = Command::new(launcher_name()?);
    scrub(&mut command);
    Some(command)
}

/// The name of that launcher.
pub fn launcher_name() -> Option<OsString> {
    let launcher = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    if launcher.is_none() {
        println!("skipped: {VARIABLE} names no launcher");
    }
    launcher
}

#[doc(hidden)]
pub fn test_command(test: &str) -> Vec<OsString> {
    let own = std::env::current_exe().expect("the test has a file");
    let words = ["--ignored", "--exact", "--nocapture", "--test-threads=1", test];
    std::iter::once(own.into()).chain(words.map(OsString::from)).collect()
}
