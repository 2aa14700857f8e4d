//! The sum of totients on two cores, by two PEs of one thread and by one PE of two; against a
//! sequential program, rayon, and a plain MPI program that deals the tasks out in turn.

use crate::launch::Bench;
use crate::{Goal, Report, Sample, Unit};
use serde_json::Value;
use ultramarine::Result;

const ROUNDS: usize = 5;
/// Of what differs by less than a percent.
const CLOSE_ROUNDS: usize = 20;
/// Of all programs that are compared.
const CORES: f64 = 2.0;
const RESULT: u64 = 121_590_396;
const WORK: &str = "--upto 20000 --tasks 400";

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let ours = |flags: &str| bench.program("sum_euler", &format!("{WORK} --json {flags}"));
    let names = ["sequential", "2 PEs x 1 thread", "1 PE x 2 threads", "rayon, 2 threads"];
    let programs = [
        ours("--threads 1 --skeleton sequential"),
        bench.on(2, &ours("--threads 1")),
        ours("--threads 2"),
        ours("--threads 2 --skeleton rayon"),
    ];
    let found = bench.in_turn(ROUNDS, programs, Value::from(RESULT))?;
    for (name, printed) in names.iter().zip(&found) {
        report.figure(name, &Sample::of(printed, |printed| printed.seconds), Unit::SECONDS);
        let around = Sample::of(printed, |printed| printed.whole - printed.seconds);
        report.figure(&format!("{name}: the process around it"), &around, Unit::SECONDS);
    }
    let [sequential, processes, threads, rayon] =
        found.map(|printed| Sample::of(&printed, |printed| printed.seconds));
    let efficiency = |parallel: &Sample| sequential.with(parallel, |s, p| 100.0 * s / (CORES * p));
    let goal = Goal::AtLeast(97.0);
    report.goal("efficiency, 2 PEs x 1 thread", &efficiency(&processes), Unit::PERCENT, goal);
    report.goal("efficiency, 1 PE x 2 threads", &efficiency(&threads), Unit::PERCENT, goal);
    report.figure("efficiency, rayon", &efficiency(&rayon), Unit::PERCENT);
    let close = [
        bench.on(2, &bench.program("sum_euler_mpi", WORK)),
        bench.on(2, &ours("--threads 1")),
        bench.on(2, &ours("--threads 1 --supervised")),
    ];
    let [mpi, processes, supervised] = bench
        .in_turn(CLOSE_ROUNDS, close, Value::from(RESULT))?
        .map(|printed| Sample::of(&printed, |printed| printed.seconds));
    report.figure("MPI by hand, 2 ranks", &mpi, Unit::SECONDS);
    for (what, ours) in [("time", processes), ("supervised, time", supervised)] {
        let what = format!("{what} over MPI by hand");
        report.goal(&what, &ours.over(&mpi), Unit::TIMES, Goal::AtMost(1.005));
    }
    Ok(())
}
