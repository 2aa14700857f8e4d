//! `cargo xtask simulate validate`: real jobs beside simulated ones.
//!
//! Programs run under MPI on 2, 4 and 8 PEs of one worker each, several times, and record their
//! task times and counters. Then the simulator replays the recordings, and prints both.
//!
//! Most programs are `naps`, whose tasks sleep: so that 8 PEs have what they need on 2 cores. Only
//! as many PEs as there are cores compute. For the same reason the network is measured in jobs of
//! no more PEs than cores: PEs that exchange messages without a pause need a core each, and else
//! measure how long they wait for one (on 2 cores a round trip took 2.7 µs between 2 PEs, and 208
//! between 8).

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;

use crate::mpi::Mpi;
use crate::process::{self, Failure, Result};
use crate::setup;

/// Compare real jobs with simulated ones: makespan, FISH, SCHEDULE, NOWORK, NOTIFY
#[derive(Parser)]
#[command(name = "cargo xtask simulate validate", bin_name = "cargo xtask simulate validate")]
#[command(after_help = AGAIN)]
struct Arguments {
    /// How often each job runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Print one JSON object a line instead of the table
    #[arg(long)]
    json: bool,
}

const AGAIN: &str = "With --measured FILE, nothing runs for real: recordings that are named are \
                     simulated again, with the network that `ultramarine topo --json` measured:\n  \
                     cargo xtask simulate validate RECORDING… --measured FILE…";

/// The numbers of PEs.
const PES: [u32; 3] = [2, 4, 8];

/// The skeletons that are compared, and whether their tasks are supervised.
const SKELETONS: [(&str, bool); 6] = [
    ("par-map", false),
    ("par-map", true),
    ("par-map-2level", false),
    ("par-map-2level-relaxed", false),
    ("par-map-2level-relaxed", true),
    ("push-map", false),
];

/// 5.5 ms a task on average; 250 tasks for each PE.
const NAPS: &str = "naps --shortest 1000 --longest 10000 --tasks";
const NAPS_PER_PE: u32 = 250;

/// It computes, about 13 ms a task on average.
const COMPUTING: &str = "sum_euler --upto 20000 --tasks 400";

/// What is built.
#[rustfmt::skip]
const BUILT: [&str; 19] = [
    "--release",
    "--package", "ultramarine-examples", "--bin", "naps", "--bin", "sum_euler",
    "--package", "ultramarine-cli", "--bin", "ultramarine",
    "--package", "ultramarine-probe", "--bin", "ultramarine-probe",
    "--package", "ultramarine-simulator", "--bin", "ultramarine-simulator",
];

/// Whether `cargo xtask simulate` with these arguments is to make recordings. With `--measured`
/// they are there already, and the simulator reads them.
pub(crate) fn is_meant(arguments: &[String]) -> bool {
    let names_files = |word: &String| word.split('=').next() == Some("--measured");
    arguments.first().is_some_and(|name| name == "validate") && !arguments.iter().any(names_files)
}

/// Builds, runs, simulates, prints.
///
/// # Errors
/// Something cannot be built, run or simulated. That figures deviate is no error.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let words = std::iter::once("validate").chain(arguments.iter().map(String::as_str));
    let arguments = Arguments::try_parse_from(words).unwrap_or_else(|error| error.exit());
    let mpi = setup::one_mpi()?;
    mpi.build(&BUILT)?;
    let jobs = Jobs { mpi: &mpi, folder: mpi.target_dir().join("validate") };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);

    let mut replay = jobs.program("ultramarine-simulator");
    replay.arg("validate");
    if arguments.json {
        replay.arg("--json");
    }
    let failed = |error| Failure(format!("cannot make {}: {error}", jobs.folder.display()));
    fs::create_dir_all(&jobs.folder).map_err(failed)?;
    for pes in PES {
        eprintln!("xtask: {pes} PEs: {} runs of each job", arguments.runs);
        if pes <= cores.max(PES[0]) {
            replay.arg("--measured").arg(jobs.measure(pes)?);
        }
        let naps = format!("{NAPS} {}", NAPS_PER_PE * pes);
        let computing = (pes <= cores).then_some(COMPUTING);
        for program in [&*naps].into_iter().chain(computing) {
            for (skeleton, is_supervised) in SKELETONS {
                for run in 0..arguments.runs {
                    replay.arg(jobs.record((program, skeleton, is_supervised), pes, run)?);
                }
            }
        }
    }
    process::status_of(&mut replay).map(process::exit_code)
}

/// The real jobs.
struct Jobs<'a> {
    mpi: &'a Mpi,
    /// Where their results go.
    folder: PathBuf,
}

impl Jobs<'_> {
    fn program(&self, name: &str) -> Command {
        Command::new(self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mpi.target_dir().join("release").join(name)
    }

    /// A job of PEs with one worker each. Its words begin with the program's name.
    fn job(&self, pes: u32, words: &str) -> Command {
        let mut command = Command::new(&self.mpi.mpiexec);
        self.mpi.apply_to(&mut command);
        let mut words = words.split_whitespace();
        let program = self.path(words.next().unwrap_or_default());
        command.args(["-n", &pes.to_string()]).arg(program).args(words);
        command.env("ULTRAMARINE_THREADS", "1").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Measures the network. Returns the file that has it.
    fn measure(&self, pes: u32) -> Result<PathBuf> {
        let mut command = self.job(pes, "ultramarine topo --json");
        let printed = process::output_or_failure(command.stdout(Stdio::piped()))?;
        let path = self.folder.join(format!("network-{pes}.json"));
        fs::write(&path, printed)
            .map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }

    /// Runs a job. Returns the file with its recording.
    fn record(&self, job: (&str, &str, bool), pes: u32, run: u32) -> Result<PathBuf> {
        let path = self.folder.join(recording(job, pes, run));
        let (program, skeleton, is_supervised) = job;
        let mut command = self.job(pes, program);
        command.args(["--skeleton", skeleton]).arg("--record").arg(&path);
        if is_supervised {
            command.arg("--supervised");
        }
        process::run(&mut command).map(|()| path)
    }
}

/// The name of the file of a recording.
fn recording((program, skeleton, is_supervised): (&str, &str, bool), pes: u32, run: u32) -> String {
    let program = program.split(' ').next().unwrap_or_default();
    let supervised = if is_supervised { "-supervised" } else { "" };
    format!("{program}-{skeleton}{supervised}-{pes}-{run}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_made_unless_they_are_named() {
        let is_meant = |words: &str| {
            super::is_meant(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        assert!(is_meant("validate") && is_meant("validate --runs 3"));
        assert!(!is_meant("validate a.json --measured n.json") && !is_meant("weak validate"));
        assert!(!is_meant("validate a.json --measured=n.json") && !is_meant(""));
    }

    #[test]
    fn each_run_has_a_file_of_its_own() {
        assert_eq!(recording((NAPS, "par-map", false), 8, 0), "naps-par-map-8-0.json");
        assert_eq!(
            recording((COMPUTING, "push-map", true), 2, 4),
            "sum_euler-push-map-supervised-2-4.json"
        );
    }
}
