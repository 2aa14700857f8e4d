//! Starts programs, with or without a launcher, and reads their output.

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The variable that names the launcher of the MPI of this build, as for the tests.
const LAUNCHER: &str = "MPIEXEC_FOR_TESTS";

/// The longest time for a program. After it, the program is ended.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// The time that a launcher gets to end its processes.
const GRACE: Duration = Duration::from_secs(3);

/// Why a program has no usable output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} had not ended after {limit:?}")]
    TimeLimit { program: String, limit: Duration },
    #[error("{program} failed ({status})")]
    Failed { program: String, status: std::process::ExitStatus },
    #[error("{program} printed no JSON as expected: {reason}")]
    Output { program: String, reason: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub(crate) type Result<T, E = LaunchError> = std::result::Result<T, E>;

/// The means of a benchmark.
pub(crate) struct Bench {
    mpiexec: String,
    own: PathBuf,
    pub(crate) quick: bool,
    pub(crate) python: Option<PathBuf>,
    /// A folder for charts, which exists.
    pub(crate) plots: PathBuf,
}

impl Bench {
    pub(crate) fn new(quick: bool, python: Option<PathBuf>, plots: PathBuf) -> io::Result<Self> {
        let mpiexec = std::env::var(LAUNCHER).unwrap_or_else(|_| "mpiexec".to_owned());
        Ok(Bench { mpiexec, own: std::env::current_exe()?, quick, python, plots })
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
        let mut command = Command::new(&self.mpiexec);
        command.arg("-n").arg(processes.to_string());
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
        let line = line.ok_or_else(|| self.bad("there is no such line".to_owned()))?;
        serde_json::from_str(line).map_err(|error| self.bad(error.to_string()))
    }

    /// What a program prints, with the result that is known, or that becomes known by it.
    pub(crate) fn printed(&self, known: &mut Option<Value>) -> Result<Printed> {
        let printed = Printed { whole: self.seconds, ..self.json()? };
        let known = known.get_or_insert_with(|| printed.result.clone());
        if printed.result != *known {
            return Err(self.bad(format!("{} came out instead of {known}", printed.result)));
        }
        Ok(printed)
    }

    fn bad(&self, reason: String) -> LaunchError {
        LaunchError::Output { program: self.program.clone(), reason }
    }
}

/// Runs the program to its end.
pub(crate) fn run(command: &mut Command) -> Result<Finished> {
    run_within(command, TIME_LIMIT)
}

/// [`run`], but shows the program's standard error only if it fails: a job whose processes are
/// killed writes much there.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Finished> {
    let (mut reader, writer) =
        io::pipe().map_err(|source| LaunchError::Start { program: shown(command), source })?;
    let (sender, said) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // Output up to a read error counts. The send fails if the time limit has passed.
        let _ = reader.read_to_end(&mut text);
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    command.stderr(writer);
    let finished = run(command);
    // The pipe ends when no process holds its other side. A process that never ends may hold it.
    command.stderr(Stdio::null());
    if finished.is_err() {
        eprint!("{}", said.recv_timeout(GRACE).unwrap_or_default());
    }
    finished
}

fn run_within(command: &mut Command, limit: Duration) -> Result<Finished> {
    let program = shown(command);
    let io = |source| LaunchError::Start { program: program.clone(), source };
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(io)?;
    let (sender, ended) = mpsc::channel();
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut output = String::new();
            let read = stdout.read_to_string(&mut output).map(|_| output);
            // This fails if the time limit has passed.
            let _ = sender.send(read);
        });
    }
    let Ok(output) = ended.recv_timeout(limit) else {
        end(&mut child);
        return Err(LaunchError::TimeLimit { program, limit });
    };
    let output = output.map_err(io)?;
    let status = child.wait().map_err(io)?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(LaunchError::Failed { program, status });
    }
    Ok(Finished { program, output, seconds })
}

/// Ends a program that takes too long, gently, so that a launcher also ends its processes.
fn end(child: &mut Child) {
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // This fails if the program has ended already.
    let _ = child.kill();
    let _ = child.wait();
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
    fn a_program_that_does_not_end_is_ended() {
        let ended = run_within(Command::new("sleep").arg("1000"), Duration::from_millis(50));
        let error = ended.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("`sleep 1000` had not ended after 50ms"));
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
        let failed = run(Command::new("sh").args(["-c", "exit 3"])).err();
        assert!(matches!(failed, Some(LaunchError::Failed { .. })), "{failed:?}");
    }
}
