//! Starting the test file itself under a launcher: its programs are tests that only this runs.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);

/// What a program printed and whether it succeeded, after running on this many processes. `None`
/// where no launcher belongs to this build.
pub(crate) fn launched(processes: u32, program: &str, lane: &str) -> Option<Output> {
    launched_with(processes, program, lane, &[])
}

/// The same, with variables for the processes.
pub(crate) fn launched_with(
    processes: u32,
    program: &str,
    lane: &str,
    variables: &[(&str, &OsStr)],
) -> Option<Output> {
    let Some(launcher) = std::env::var_os("MPIEXEC_FOR_TESTS").filter(|l| !l.is_empty()) else {
        println!("skipped: MPIEXEC_FOR_TESTS names no launcher");
        return None;
    };
    let mut command = Command::new(launcher);
    command.args(["-n", &processes.to_string()]).args(program_command(program));
    scrub(&mut command);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.envs(variables.iter().copied());
    Some(finish(&mut command, PATIENCE))
}

/// The words that run this file's program of this name.
pub(crate) fn program_command(program: &str) -> Vec<OsString> {
    let own = std::env::current_exe().expect("the test has a file");
    let program = format!("programs::{program}");
    let words = ["--ignored", "--exact", "--nocapture", "--test-threads=1", &program];
    std::iter::once(own.into()).chain(words.map(OsString::from)).collect()
}

/// Runs a command to its end, which has to come in time.
pub(crate) fn finish(command: &mut Command, patience: Duration) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if start.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = [out, err].map(|reader| reader.join().expect("it reads to the end"));
    Output { status, stdout, stderr }
}

/// Takes out what other launchers and a user's settings would say to the processes.
pub(crate) fn scrub(command: &mut Command) {
    command.env_remove("MPIEXEC");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["ULTRAMARINE_", "PMI_", "SLURM_", "OMPI_COMM_WORLD_"];
        if foreign.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// Reads a pipe to its end, so that it never fills up and holds its writer.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}
