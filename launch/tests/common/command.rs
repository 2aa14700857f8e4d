//! Running a command as its user does, alone or under a launcher.

use super::launcher::{finish, scrub};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// The longest that a command may run; reached only when the test fails.
const PATIENCE: Duration = Duration::from_secs(50);

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// What it printed, since it succeeded.
    pub(crate) fn succeeded(&self) -> &str {
        assert!(self.ok, "{}{}", self.out, self.err);
        &self.out
    }

    /// The JSON object on the last line.
    pub(crate) fn report(&self) -> Value {
        let last = self.succeeded().lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last:?}\n{}", self.err))
    }

    /// It failed, and said why.
    pub(crate) fn fails_with(&self, text: &str) {
        assert!(!self.ok, "it should fail: {}{}", self.out, self.err);
        // Launchers and terminals may break lines where they like.
        let said = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(text), "`{text}` is not in:\n{}{}", self.out, self.err);
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = finish(command, PATIENCE);
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ended { ok: status.success(), out, err }
}

/// A command in an environment without launchers and settings.
pub(crate) fn scrubbed(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    scrub(&mut command);
    command
}

/// The launcher that belongs to this build; `None` where there is none.
pub(crate) fn launcher() -> Option<Command> {
    let launcher = std::env::var_os("MPIEXEC_FOR_TESTS").filter(|name| !name.is_empty());
    if launcher.is_none() {
        println!("skipped: MPIEXEC_FOR_TESTS names no launcher");
    }
    launcher.map(scrubbed)
}

/// A folder for the files of one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("cargo gives tests a folder");
    folder
}
