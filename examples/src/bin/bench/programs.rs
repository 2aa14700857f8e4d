//! Whole programs against hand-written ones: the sweep and the stencil against plain MPI, the
//! others against rayon.

use crate::Bench;
use crate::launch::{self, Finished, LaunchError};
use crate::proc::Peaks;
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::Deserialize;
use std::process::Command;
use std::time::Duration;

const ROUNDS: usize = 5;
/// The number of PEs of launched programs.
const PES: u32 = 2;
/// The sizes in megabytes of the sweep's table, and of one that takes hardly any memory.
const TABLE: u32 = 50;
const SMALL_TABLE: u32 = 1;
/// The steps of the stencil.
const STEPS: &str = "10000";
/// The interval at which the memory of processes is read.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Deserialize)]
struct Printed {
    result: serde_json::Value,
    seconds: f64,
}

#[derive(Deserialize)]
struct Swept {
    result: i64,
    seconds: f64,
    start_up_seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    measure_sweep(bench, report);
    measure_stencil(bench, report);
    let knapsack = ["--items", "100", "--seed", "27"];
    against_rayon(bench, report, "knapsack", "par-maximise", &knapsack);
    let quadrature = ["--function", "peak", "--tolerance", "1e-8"];
    against_rayon(bench, report, "quadrature", "par-divide-and-conquer", &quadrature);
    measure_cholesky(bench, report);
}

fn measure_sweep(bench: &Bench, report: &mut Report) {
    let start = |program: &str, table: u32, more: &[&str]| {
        let mut command = bench.launcher.sibling(program);
        command.args(["--points", "500", "--table-mb", &table.to_string()]).args(more);
        let file = command.get_program().to_owned();
        (bench.launcher.launched(PES, &command), file)
    };
    let ours = |table| start("sweep", table, &["--threads", "1", "--json"]);
    let mut rows = Vec::new();
    for _ in 0..bench.rounds(ROUNDS) {
        let round = || -> Result<_, Box<dyn std::error::Error>> {
            let (swept, peak) = watched(ours(TABLE))?;
            let (mpi, _) = watched(start("sweep_mpi", TABLE, &[]))?;
            let (_, without) = watched(ours(SMALL_TABLE))?;
            if swept.result != mpi.result {
                return Err(format!("{} came out, but {} by MPI", swept.result, mpi.result).into());
            }
            let bytes = f64::from(TABLE - SMALL_TABLE) * 1e6;
            Ok((swept, mpi, (peak as f64 - without as f64) / bytes))
        };
        let Some(row) = report.accept("sweep", round()) else { return };
        rows.push(row);
    }
    let sample =
        |value: fn(&(Swept, Swept, f64)) -> f64| rows.iter().map(value).collect::<Sample>();
    let (start_up, mpi) =
        (sample(|row| row.0.start_up_seconds), sample(|row| row.1.start_up_seconds));
    report.figure("sweep, 2 PEs: until all have the table", &start_up, Unit::SECONDS);
    report.figure("MPI by hand, 2 ranks: until all have the table", &mpi, Unit::SECONDS);
    let beyond = start_up.with(&mpi, |ours, mpi| ours - mpi);
    report.goal("sweep: the start beyond that by hand", &beyond, Unit::SECONDS, Goal::AtMost(0.2));
    let goal = Goal::AtMost(f64::from(PES + 1));
    report.goal("sweep: tables in memory at the peak", &sample(|row| row.2), Unit::TIMES, goal);
    let times = sample(|row| row.0.seconds / row.1.seconds);
    report.goal("sweep: time over MPI by hand", &times, Unit::TIMES, Goal::AtMost(1.02));
}

/// Runs a program under its launcher; returns its output and the sum of its processes' peak memory.
fn watched(
    (mut command, program): (Command, std::ffi::OsString),
) -> Result<(Swept, u64), Box<dyn std::error::Error>> {
    let mut peaks = Peaks::of(program.as_ref())?;
    let finished = std::thread::scope(|scope| {
        let job = scope.spawn(|| launch::run(&mut command));
        while !job.is_finished() {
            peaks.look()?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok::<_, std::io::Error>(job.join().expect("it reports failures"))
    });
    Ok((finished??.json()?, peaks.sum()))
}

/// Measures two PEs that exchange rows of 4 KiB at each step.
fn measure_stencil(bench: &Bench, report: &mut Report) {
    let with = |program: &str, more: &[&str]| {
        let mut command = bench.launcher.sibling(program);
        command.args(["--rows", "512", "--columns", "512", "--steps", STEPS]).args(more);
        bench.launcher.launched(PES, &command)
    };
    let contenders = [
        ("MPI by hand", with("stencil_mpi", &[])),
        ("2 PEs", with("stencil", &["--threads", "1", "--json"])),
    ];
    let Some([mpi, ours]) = in_turn(bench, report, "stencil", contenders) else { return };
    report.goal("stencil: time over MPI by hand", &ours.over(&mpi), Unit::TIMES, Goal::AtMost(1.5));
}

/// Measures a graph of tiles on two PEs, against one and against rayon on two cores.
fn measure_cholesky(bench: &Bench, report: &mut Report) {
    let with = |flags: &[&str]| {
        let mut command = bench.launcher.sibling("cholesky");
        command.args(["--size", "4096", "--json"]).args(flags);
        command
    };
    let graph = with(&["--threads", "1", "--drop-used"]);
    let contenders = [
        ("one PE", bench.launcher.launched(1, &graph)),
        ("2 PEs", bench.launcher.launched(PES, &graph)),
        ("rayon, 2 threads", with(&["--threads", "2", "--skeleton", "rayon"])),
    ];
    let Some([one, two, rayon]) = in_turn(bench, report, "cholesky", contenders) else { return };
    let what = "cholesky: time of one PE over that of two";
    report.goal(what, &one.over(&two), Unit::TIMES, Goal::AtLeast(1.85));
    let what = "cholesky, 2 PEs: time over rayon";
    report.goal(what, &two.over(&rayon), Unit::TIMES, Goal::AtMost(1.11));
}

/// Measures one PE of two threads against rayon's two threads and the sequential program.
fn against_rayon(
    bench: &Bench,
    report: &mut Report,
    program: &'static str,
    skeleton: &'static str,
    flags: &[&str],
) {
    let with = |skeleton: &str| {
        let mut command = bench.launcher.sibling(program);
        command.args(flags).args(["--threads", "2", "--json", "--skeleton", skeleton]);
        command
    };
    let contenders = ["sequential", "rayon", skeleton].map(|name| (name, with(name)));
    let Some([_, rayon, ours]) = in_turn(bench, report, program, contenders) else { return };
    let what = format!("{program}, 2 threads: time over rayon");
    report.goal(&what, &ours.over(&rayon), Unit::TIMES, Goal::AtMost(1.1));
}

/// Runs these commands in turn; returns their times. All must have the same result.
fn in_turn<const N: usize>(
    bench: &Bench,
    report: &mut Report,
    program: &str,
    mut contenders: [(&str, Command); N],
) -> Option<[Sample; N]> {
    let mut result = None;
    let mut seconds = [const { Vec::new() }; N];
    for _ in 0..bench.rounds(ROUNDS) {
        for ((name, command), seconds) in contenders.iter_mut().zip(&mut seconds) {
            let printed = launch::run(command).and_then(|finished| same(&finished, &mut result));
            seconds.push(report.accept(&format!("{program}: {name}"), printed)?);
        }
    }
    let samples = seconds.map(|seconds| seconds.into_iter().collect::<Sample>());
    for ((name, _), sample) in contenders.iter().zip(&samples) {
        report.figure(&format!("{program}: {name}"), sample, Unit::SECONDS);
    }
    Some(samples)
}

/// The time of a program, if its result equals the first one.
fn same(finished: &Finished, first: &mut Option<serde_json::Value>) -> Result<f64, LaunchError> {
    let Printed { result, seconds } = finished.json()?;
    let first = first.get_or_insert_with(|| result.clone());
    if *first == result {
        return Ok(seconds);
    }
    let reason = format!("{result} came out, and {first} before");
    Err(LaunchError::Output { program: "the program".to_owned(), reason })
}
