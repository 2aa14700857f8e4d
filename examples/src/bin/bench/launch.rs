//! Starts programs, with or without a launcher, and reads their output.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ultramarine::{Error, Result};
use ultramarine_subprocess::{Ended, run_with_errors_shown};

/// The variable that names the launcher of the MPI of this build, as for the tests.
const LAUNCHER: &str = "MPIEXEC_FOR_TESTS";

/// The longest time for a program. After it, the program is ended.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// The means of a benchmark.
pub(crate) struct Bench {
    mpiexec: String,
    own: PathBuf,
    pub(crate) quick: bool,
    /// The time for `cores`.
    pub(crate) minutes: u32,
    pub(crate) python: Option<PathBuf>,
    /// A folder for charts, which exists.
    pub(crate) plots: PathBuf,
}

impl Bench {
    pub(crate) fn new(
        quick: bool,
        minutes: u32,
        python: Option<PathBuf>,
        plots: PathBuf,
    ) -> io::Result<Self> {
        let mpiexec = std::env::var(LAUNCHER).unwrap_or_else(|_| "mpiexec".to_owned());
        Ok(Bench { mpiexec, own: std::env::current_exe()?, quick, minutes, python, plots })
    }

    /// The number of rounds in which the contenders run in turn.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        if self.quick { 2 } else { usual }
    }

    /// Another program of this build, with these flags.
    pub(crate) fn program(&self, name: &str, flags: &str) -> Command {
        let mut command = Command::new(self.own.with_file_name(name));
        command.args(flags.split_whitespace());
        command
    }

    /// One job of a benchmark, with its flags, its scenario, and the flags of that; see
    /// [`crate::child`].
    pub(crate) fn child(&self, flags: &str) -> Command {
        let mut command = Command::new(&self.own);
        command.arg("child").args(flags.split_whitespace());
        command
    }

    /// This number of processes of a program.
    pub(crate) fn on(&self, processes: u32, program: &Command) -> Command {
        self.with_flags(&[], processes, program)
    }

    /// The same, with further flags of the launcher.
    pub(crate) fn with_flags(&self, flags: &[&str], processes: u32, program: &Command) -> Command {
        let mut command = Command::new(&self.mpiexec);
        command.arg("-n").arg(processes.to_string()).args(flags);
        command.arg(program.get_program()).args(program.get_args());
        command
    }

    /// This number of processes of the Python to compare with, if there is one.
    pub(crate) fn script(&self, words: &[&str], processes: u32) -> Option<Command> {
        let mut script = Command::new(self.python.as_ref()?);
        Some(self.on(processes, script.args(words)))
    }

    /// Runs a job in each round; returns its outputs.
    pub(crate) fn repeat<T: DeserializeOwned>(
        &self,
        rounds: usize,
        mut job: Command,
    ) -> Result<Vec<T>> {
        (0..self.rounds(rounds)).map(|_| run(&mut job)?.json()).collect()
    }

    /// The same by [`run_quietly`].
    pub(crate) fn repeat_quietly<T: DeserializeOwned>(
        &self,
        rounds: usize,
        mut job: Command,
    ) -> Result<Vec<T>> {
        (0..self.rounds(rounds)).map(|_| run_quietly(&mut job)?.json()).collect()
    }

    /// Runs these programs in turn, in each round; returns the outputs of each. All have the same
    /// result: the one that is `known`, if any is.
    pub(crate) fn in_turn<const N: usize>(
        &self,
        rounds: usize,
        mut programs: [Command; N],
        known: impl Into<Option<Value>>,
    ) -> Result<[Vec<Printed>; N]> {
        let (mut found, mut known) = ([const { Vec::new() }; N], known.into());
        for _ in 0..self.rounds(rounds) {
            for (program, found) in programs.iter_mut().zip(&mut found) {
                found.push(run(program)?.printed(&mut known)?);
            }
        }
        Ok(found)
    }
}

/// What programs print at their end: the examples with `--json`, and those to compare with.
#[derive(Deserialize)]
pub(crate) struct Printed {
    result: Value,
    /// The time of the computation.
    pub(crate) seconds: f64,
    /// The time of the program with its launcher.
    #[serde(skip)]
    pub(crate) whole: f64,
    /// Of programs that say it: the time until all PEs could begin.
    #[serde(default)]
    pub(crate) start_up_seconds: f64,
    /// Of searches: the number of nodes whose children were generated.
    #[serde(default)]
    pub(crate) expanded: u64,
    /// The number of PEs that have died; programs without the runtime have none to tell.
    #[serde(default)]
    pub(crate) dead: u32,
    /// The number of tasks that the survivors started.
    #[serde(default)]
    pub(crate) tasks: u64,
    /// The number of tasks that were run again.
    #[serde(default)]
    pub(crate) replicas: u64,
}

/// The output of a program, and its time with its launcher.
pub(crate) struct Finished {
    program: String,
    output: String,
    pub(crate) seconds: f64,
}

impl Finished {
    /// The last line that is a JSON object, or a list of them.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let mut lines = self.output.lines().rev();
        let line = lines.find(|line| line.starts_with('{') || line.starts_with("[{"));
        let line = line.ok_or_else(|| self.bad("there is no such line"))?;
        serde_json::from_str(line).map_err(|error| self.bad(&error.to_string()))
    }

    /// What a program prints, with the result that is known, or that becomes known by it.
    pub(crate) fn printed(&self, known: &mut Option<Value>) -> Result<Printed> {
        let printed = Printed { whole: self.seconds, ..self.json()? };
        let known = known.get_or_insert_with(|| printed.result.clone());
        if printed.result != *known {
            return Err(self.bad(&format!("{} came out instead of {known}", printed.result)));
        }
        Ok(printed)
    }

    /// The number in the first line that begins with this text.
    pub(crate) fn number_after(&self, text: &str) -> Option<f64> {
        self.output.lines().find_map(|line| line.strip_prefix(text)?.parse().ok())
    }

    fn bad(&self, reason: &str) -> Error {
        Error::other(format!("{} printed no JSON as expected: {reason}", self.program))
    }
}

/// Runs the program to its end.
pub(crate) fn run(command: &mut Command) -> Result<Finished> {
    let ended = run_with_errors_shown(command, TIME_LIMIT);
    finished(command, ended)
}

/// [`run`], but shows the program's standard error only if it fails: a job whose processes are
/// killed writes much there.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Finished> {
    let ended = ultramarine_subprocess::run(command, TIME_LIMIT);
    if let Ok(ended) = &ended
        && !ended.succeeded()
    {
        eprint!("{}", ended.err);
    }
    finished(command, ended)
}

fn finished(command: &Command, ended: io::Result<Ended>) -> Result<Finished> {
    let program = shown(command);
    let failed = |reason| Err(Error::other(format!("{program} {reason}")));
    match ended {
        Err(error) => Err(Error::other(format!("cannot start {program}: {error}"))),
        Ok(Ended { status: None, .. }) => failed(format!("had not ended after {TIME_LIMIT:?}")),
        Ok(Ended { status: Some(status), .. }) if !status.success() => {
            failed(format!("failed ({status})"))
        }
        Ok(Ended { out, took, .. }) => {
            Ok(Finished { program, output: out, seconds: took.as_secs_f64() })
        }
    }
}

/// The command as a user would type it, without folders.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let name = |word: &std::ffi::OsStr| {
        Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned()
    };
    format!("`{}`", words.map(name).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_named() {
        let sleep = ultramarine_subprocess::run(Command::new("sleep").arg("9"), Duration::ZERO);
        let error = finished(Command::new("sleep").arg("9"), sleep).err().expect("it is late");
        assert_eq!(error.to_string(), "`sleep 9` had not ended after 120s");
    }

    #[test]
    fn the_last_json_line_counts() {
        let print = "echo '{\"a\": 1}'; echo '{\"a\": 2}'; echo done";
        let finished = run(Command::new("sh").args(["-c", print])).expect("sh is everywhere");
        let found: std::collections::BTreeMap<String, u64> = finished.json().expect("is JSON");
        assert_eq!(found["a"], 2);
    }

    #[test]
    fn a_quiet_program_prints_as_any_other() {
        let print = "echo noise >&2; echo '{\"a\": 3}'";
        let finished = run_quietly(Command::new("sh").args(["-c", print])).expect("sh is there");
        let found: std::collections::BTreeMap<String, u64> = finished.json().expect("is JSON");
        assert_eq!(found["a"], 3);
        run_quietly(Command::new("sh").args(["-c", "exit 3"])).err().expect("it fails");
    }

    #[test]
    fn a_program_that_fails_is_named() {
        let failed = run(Command::new("sh").args(["-c", "exit 3"])).err().expect("it fails");
        assert_eq!(failed.to_string(), "`sh -c exit 3` failed (exit status: 3)");
    }
}
