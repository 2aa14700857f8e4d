//! Whole programs against hand-written ones: the sweep and bulk-synchronous programs against plain
//! MPI, the others against rayon.

use crate::launch::{self, Bench, Printed};
use crate::proc::Peaks;
use crate::{Goal, Report, Sample, Unit};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use ultramarine::{Error, Result};

const ROUNDS: usize = 5;
/// The number of PEs of launched programs.
const PES: u32 = 2;
/// The sizes in megabytes of the sweep's table, and of one that takes hardly any memory.
const TABLE: u32 = 50;
const SMALL_TABLE: u32 = 1;
const CHOLESKY: &str = "--size 4096 --json";
/// The interval at which the memory of processes is read.
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    measure_sweep(bench, report)?;
    let stencil = ("stencil", "--rows 512 --columns 1024 --steps 5000");
    against_mpi(bench, report, stencil, 1.1)?;
    against_mpi(bench, report, ("k_medoids", "--random 20000 --k 64"), 1.05)?;
    against_mpi(bench, report, ("pi", "--intervals 1000000000"), 1.05)?;
    let knapsack = "--items 100 --seed 27";
    against_rayon(bench, report, ("knapsack", knapsack), "par-maximise")?;
    let quadrature = "--function peak --tolerance 1e-8";
    against_rayon(bench, report, ("quadrature", quadrature), "par-divide-and-conquer")?;
    measure_cholesky(bench, report)
}

fn measure_sweep(bench: &Bench, report: &mut Report) -> Result<()> {
    let run = |name: &str, table: u32, flags: &str, known: &mut Option<Value>| {
        let flags = format!("--points 500 --table-mb {table} {flags}");
        watched(bench, &bench.program(name, &flags), known)
    };
    let ours = "--threads 1 --json";
    let mut rows = Vec::new();
    for _ in 0..bench.rounds(ROUNDS) {
        let mut known = None;
        let (swept, peak) = run("sweep", TABLE, ours, &mut known)?;
        let (mpi, _) = run("sweep_mpi", TABLE, "", &mut known)?;
        let (_, without) = run("sweep", SMALL_TABLE, ours, &mut None)?;
        let bytes = f64::from(TABLE - SMALL_TABLE) * 1e6;
        rows.push((swept, mpi, (peak as f64 - without as f64) / bytes));
    }
    let start_up = Sample::of(&rows, |(swept, ..)| swept.start_up_seconds);
    let mpi = Sample::of(&rows, |(_, mpi, _)| mpi.start_up_seconds);
    report.figure("sweep, 2 PEs: until all have the table", &start_up, Unit::SECONDS);
    report.figure("MPI by hand, 2 ranks: until all have the table", &mpi, Unit::SECONDS);
    let beyond = start_up.with(&mpi, |ours, mpi| ours - mpi);
    report.goal("sweep: the start beyond that by hand", &beyond, Unit::SECONDS, Goal::AtMost(0.2));
    let (tables, goal) = (Sample::of(&rows, |row| row.2), Goal::AtMost(f64::from(PES + 1)));
    report.goal("sweep: tables in memory at the peak", &tables, Unit::TIMES, goal);
    let times = Sample::of(&rows, |(swept, mpi, _)| swept.seconds / mpi.seconds);
    report.goal("sweep: time over MPI by hand", &times, Unit::TIMES, Goal::AtMost(1.02));
    Ok(())
}

/// Runs a program under its launcher; returns its output and the sum of its processes' peak memory.
fn watched(bench: &Bench, program: &Command, known: &mut Option<Value>) -> Result<(Printed, u64)> {
    let mut peaks = Peaks::of(program.get_program().as_ref())?;
    let mut launched = bench.on(PES, program);
    let finished = std::thread::scope(|scope| {
        let job = scope.spawn(|| launch::run(&mut launched));
        while !job.is_finished() {
            peaks.look()?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok::<_, Error>(job.join().expect("it reports failures"))
    });
    Ok((finished??.printed(known)?, peaks.sum()))
}

/// Measures two PEs of a bulk-synchronous program against plain MPI.
fn against_mpi(
    bench: &Bench,
    report: &mut Report,
    (program, flags): (&str, &str),
    at_most: f64,
) -> Result<()> {
    let ours = bench.program(program, &format!("{flags} --ranks 2 --threads 1 --json"));
    let contenders = [
        ("MPI by hand", bench.on(PES, &bench.program(&format!("{program}_mpi"), flags))),
        ("2 PEs", bench.on(PES, &ours)),
    ];
    let [mpi, ours] = report.contest(bench, ROUNDS, program, contenders, None)?;
    let what = format!("{program}: time over MPI by hand");
    report.goal(&what, &ours.over(&mpi), Unit::TIMES, Goal::AtMost(at_most));
    Ok(())
}

/// Measures a graph of tiles on two PEs, against one and against rayon on two cores.
fn measure_cholesky(bench: &Bench, report: &mut Report) -> Result<()> {
    let graph = bench.program("cholesky", &format!("{CHOLESKY} --threads 1 --drop-used"));
    let rayon = format!("{CHOLESKY} --threads 2 --skeleton rayon");
    let contenders = [
        ("one PE", bench.on(1, &graph)),
        ("2 PEs", bench.on(PES, &graph)),
        ("rayon, 2 threads", bench.program("cholesky", &rayon)),
    ];
    let [one, two, rayon] = report.contest(bench, ROUNDS, "cholesky", contenders, None)?;
    let what = "cholesky: time of one PE over that of two";
    report.goal(what, &one.over(&two), Unit::TIMES, Goal::AtLeast(1.85));
    let what = "cholesky, 2 PEs: time over rayon";
    report.goal(what, &two.over(&rayon), Unit::TIMES, Goal::AtMost(1.11));
    Ok(())
}

/// Measures one PE of two threads against rayon's two threads and the sequential program.
fn against_rayon(
    bench: &Bench,
    report: &mut Report,
    (program, flags): (&str, &str),
    skeleton: &str,
) -> Result<()> {
    let flags = format!("{flags} --threads 2 --json --skeleton");
    let with = |name| (name, bench.program(program, &format!("{flags} {name}")));
    let contenders = ["sequential", "rayon", skeleton].map(with);
    let [_, rayon, ours] = report.contest(bench, ROUNDS, program, contenders, None)?;
    let what = format!("{program}, 2 threads: time over rayon");
    report.goal(&what, &ours.over(&rayon), Unit::TIMES, Goal::AtMost(1.1));
    Ok(())
}
