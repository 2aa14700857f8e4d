//! What the tests of the examples share: running a program as its user does, alone or under the
//! launcher that `MPIEXEC_FOR_TESTS` names.
#![allow(dead_code, reason = "each test program uses a part of it")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that a program may run; reached only when the test fails.
const PATIENCE: Duration = Duration::from_secs(50);

/// Skeletons that spread the work over all PEs.
pub(crate) const SKELETONS: [&str; 9] = [
    "par-map",
    "par-map-chunked",
    "par-map-sliced",
    "push-map",
    "push-map-chunked",
    "push-map-sliced",
    "par-map-local",
    "par-map-2level",
    "par-map-2level-relaxed",
];

/// Skeletons that keep the work on the root.
pub(crate) const SKELETONS_OF_ROOT: [&str; 3] = ["fork-map", "rayon", "sequential"];

/// Ways to divide and conquer.
pub(crate) const DIVISIONS: [&str; 5] = [
    "par-divide-and-conquer",
    "push-divide-and-conquer",
    "fork-divide-and-conquer",
    "rayon",
    "sequential",
];

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The JSON object on the last line.
    pub(crate) fn report(&self) -> Value {
        assert!(self.ok, "{}{}", self.out, self.err);
        let last = self.out.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last:?}\n{}", self.err))
    }

    /// The program failed, and said why.
    pub(crate) fn fails_with(&self, text: &str) {
        assert!(!self.ok, "it should fail: {}{}", self.out, self.err);
        // Launchers and terminals may break lines where they like.
        let said = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(text), "`{text}` is not in:\n{}{}", self.out, self.err);
    }
}

/// Kills the program if the test gives up.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(piped.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    let reader = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).expect("a pipe can be read");
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = reader(Box::new(child.0.stdout.take().expect("piped")));
    let err = reader(Box::new(child.0.stderr.take().expect("piped")));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.0.try_wait().expect("it is a child of ours") {
            break status;
        }
        assert!(start.elapsed() < PATIENCE, "{command:?} hangs");
        std::thread::sleep(Duration::from_millis(5));
    };
    let [out, err] = [out, err].map(|reader| reader.join().expect("it reads to the end"));
    Ended { ok: status.success(), out, err }
}

/// Runs a program until a line of its standard error contains this, and returns the line.
pub(crate) fn run_until(command: &mut Command, text: &'static str) -> String {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Guard(piped.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    let err = BufReader::new(child.0.stderr.take().expect("piped"));
    let (said, line) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = err.lines().map_while(Result::ok).filter(|line| line.contains(text));
        lines.for_each(|line| drop(said.send(line)));
    });
    line.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{command:?}, `{text}`: {e}"))
}

/// A program with these flags, in an environment without launchers and settings.
pub(crate) fn alone(program: &str, flags: &str) -> Command {
    let mut command = Command::new(program);
    command.args(flags.split_whitespace());
    scrub(&mut command);
    command
}

fn scrub(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let foreign = ["ULTRAMARINE_", "PMI_", "SLURM_", "OMPI_COMM_WORLD_"];
        if foreign.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

/// The launcher that belongs to this build, starting this many ranks of a program.
pub(crate) fn launched(program: &str, ranks: u32, flags: &str) -> Option<Command> {
    let mut command = launcher()?;
    command.args(["-n", &ranks.to_string(), program]).args(flags.split_whitespace());
    Some(command)
}

/// The launcher that belongs to this build.
pub(crate) fn launcher() -> Option<Command> {
    let Some(launcher) = std::env::var_os("MPIEXEC_FOR_TESTS").filter(|l| !l.is_empty()) else {
        println!("skipped: MPIEXEC_FOR_TESTS names no launcher");
        return None;
    };
    let mut command = Command::new(launcher);
    scrub(&mut command);
    command.env("ULTRAMARINE_THREADS", "1");
    Some(command)
}

/// A folder for the files of one test of the file that this is part of.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("cargo gives tests a folder");
    folder
}
