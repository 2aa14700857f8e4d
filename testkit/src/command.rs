//! Running a program as its user does, to its end, which must come in time.

use crate::PATIENCE;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use ultramarine_subprocess::Ended as Finished;

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Whether it reported success.
    pub is_success: bool,
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to its standard output.
    pub out: String,
    /// What it wrote to its standard error.
    pub err: String,
}

impl Ended {
    /// Its standard output, if it succeeded.
    #[track_caller]
    pub fn succeeded(&self) -> &str {
        assert!(self.is_success, "{}{}", self.out, self.err);
        &self.out
    }

    /// The JSON object on the last line of its standard output, if it succeeded.
    #[track_caller]
    pub fn report(&self) -> Value {
        let last = self.succeeded().lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last:?}\n{}", self.err))
    }

    /// It succeeded, and its program says at its end that all is well.
    #[track_caller]
    pub fn is_well(&self) {
        assert!(self.succeeded().contains("all is well"), "{}\n{}", self.out, self.err);
    }

    /// What a command said on the single line of its standard error, having refused its input.
    #[track_caller]
    pub fn refuses(&self) -> String {
        assert_eq!(self.code, Some(1), "{}{}", self.out, self.err);
        assert_eq!(self.err.lines().count(), 1, "one line is enough:\n{}", self.err);
        self.err.strip_prefix("Error: ").expect("it is called an error").trim_end().to_owned()
    }

    /// It failed, and its standard error has this text.
    #[track_caller]
    pub fn fails_with(&self, text: &str) {
        assert!(!self.is_success, "it should fail: {}{}", self.out, self.err);
        // Launchers and terminals may break lines where they like.
        let said = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(text), "`{text}` is not in:\n{}{}", self.out, self.err);
    }
}

/// A program with these flags, in an environment without launchers and settings.
pub fn alone(program: impl AsRef<OsStr>, flags: &str) -> Command {
    let mut command = Command::new(program);
    command.args(flags.split_whitespace());
    scrub(&mut command);
    command
}

/// Takes out what other launchers and a user's settings would say to the processes.
pub fn scrub(command: &mut Command) {
    command.env_remove("MPIEXEC");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["ULTRAMARINE_", "PMI_", "PMIX_", "SLURM_", "OMPI_COMM_WORLD_"];
        if foreign.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// The command, with its environment, behind these words: started by another program.
pub fn behind<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>, command: &Command) -> Command {
    let mut words = words.into_iter();
    let mut outer = Command::new(words.next().expect("a program is named"));
    outer.args(words).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Runs a command to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Ended {
    finish(command, PATIENCE)
}

/// Runs a command to its end, which must come within `limit`.
#[track_caller]
pub fn finish(command: &mut Command, limit: Duration) -> Ended {
    let ended = ultramarine_subprocess::run(command, limit);
    let Finished { status, out, err, .. } = ended.unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let Some(status) = status else { panic!("{command:?} hangs:\n{out}{err}") };
    Ended { is_success: status.success(), code: status.code(), out, err }
}

/// Runs a command until a line of its standard error contains `text`, and returns the line.
#[track_caller]
pub fn run_until(command: &mut Command, text: &'static str) -> String {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Started::new(command);
    let err = BufReader::new(child.0.stderr.take().expect("it is piped"));
    let (said, line) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = err.lines().map_while(Result::ok).filter(|line| line.contains(text));
        lines.for_each(|line| drop(said.send(line)));
    });
    line.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{command:?}, `{text}`: {e}"))
}

/// A process that is killed if the test gives up.
struct Started(Child);

impl Started {
    #[track_caller]
    fn new(command: &mut Command) -> Self {
        Started(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sh(script: &str) -> Command {
        let mut command = alone("sh", "-c");
        command.arg(script);
        command
    }

    #[test]
    fn both_streams_and_the_code_are_kept() {
        let ended = run(&mut sh("echo out; echo 'this   is' >&2; echo 'wrong' >&2; exit 3"));
        assert_eq!((ended.is_success, ended.code, ended.out.as_str()), (false, Some(3), "out\n"));
        ended.fails_with("this is wrong");
        let report = run(&mut sh("echo hello; echo '{\"n\": 1}'")).report();
        assert_eq!(report["n"], 1);
    }

    #[test]
    #[should_panic(expected = "hangs:\nall was well")]
    fn a_command_that_hangs_fails_the_test_with_what_it_has_said() {
        finish(&mut sh("echo all was well; exec sleep 60"), Duration::from_millis(500));
    }

    #[test]
    fn a_command_is_left_at_the_line_that_is_waited_for() {
        let start = Instant::now();
        assert_eq!(
            run_until(&mut sh("echo no >&2; echo yes 1 >&2; exec sleep 60"), "yes"),
            "yes 1"
        );
        assert!(start.elapsed() < PATIENCE);
    }
}
