//! Running a command as its user does, alone or under a launcher.

use std::path::PathBuf;
use std::process::Command;
pub(crate) use ultramarine_testkit::{Ended, launcher, run};

/// A command in an environment without launchers and settings.
pub(crate) fn scrubbed(program: impl AsRef<std::ffi::OsStr>) -> Command {
    ultramarine_testkit::alone(program, "")
}

/// A folder for the files of one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    ultramarine_testkit::folder!(test)
}
