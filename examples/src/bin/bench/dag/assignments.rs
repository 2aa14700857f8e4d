//! Which assignment of nodes to PEs is best: by levels, cyclic, or by the program, which knows the
//! pattern. A table with the time over MPI, and what is sent between the PEs.

use super::PATTERNS;
use crate::launch::{self, Bench};
use crate::{Report, Sample, Unit};
use serde::Deserialize;
use std::process::Command;
use ultramarine::Result;

const ROUNDS: usize = 5;
const PES: [u32; 2] = [2, 4];
const ASSIGNMENTS: [&str; 3] = ["levels", "cyclic", "placed"];
/// 64,000 nodes of some 10 µs.
const GRID: &str = "--width 64 --iterations 500";
const STEPS: u32 = 1000;
const MATRIX: &str = "--tile 128";
const SIZE: u32 = 3072;

/// A graph, as the program that computes it with these flags, and the flags for a graph that is too
/// small to matter.
struct Work {
    name: &'static str,
    program: &'static str,
    flags: String,
    size: String,
    small: &'static str,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    report.text(&line("graph", "PEs", ASSIGNMENTS.map(str::to_owned)));
    for work in works() {
        for pes in PES {
            report.text(&line(work.name, &pes.to_string(), row(bench, &work, pes)?));
        }
    }
    Ok(())
}

fn line(name: &str, pes: &str, cells: [String; 3]) -> String {
    let cells = cells.map(|cell| format!("{cell:<34}"));
    format!("  {name:<15}{pes:>4}  {}", cells.concat()).trim_end().to_owned()
}

fn works() -> Vec<Work> {
    let patterns = PATTERNS.into_iter().filter(|pattern| *pattern != "trivial");
    let grid = |name| Work {
        name,
        program: "task_bench",
        flags: format!("--pattern {name} {GRID}"),
        size: format!("--steps {STEPS}"),
        small: "--steps 1",
    };
    let cholesky = Work {
        name: "cholesky",
        program: "cholesky",
        flags: MATRIX.to_owned(),
        size: format!("--size {SIZE}"),
        small: "--size 128",
    };
    patterns.map(grid).chain([cholesky]).collect()
}

/// The cells of a graph on this number of PEs: time and megabytes for each assignment. All jobs
/// have the same result.
fn row(bench: &Bench, work: &Work, pes: u32) -> Result<[String; 3]> {
    let with = |assignment: &str, size: &str| {
        let flags = format!("{} --assignment {assignment} --threads 1 --json {size}", work.flags);
        bench.on(pes, &bench.program(work.program, &flags))
    };
    let jobs = ASSIGNMENTS.map(|assignment| with(assignment, &work.size));
    let mut found = bench.in_turn(ROUNDS, jobs, None)?.into_iter();
    Ok(ASSIGNMENTS.map(|assignment| {
        let seconds = Sample::of(found.next().iter().flatten(), |printed| printed.seconds);
        let sent = |size: &str| sent_bytes(&with(assignment, size));
        let sent = match (sent(&work.size), sent(work.small)) {
            (Ok(sent), Ok(without)) => format!("{:.1} MB", (sent - without) / 1e6),
            // There can be no network of its own.
            _ => "-".to_owned(),
        };
        format!("{}, {sent}", seconds.shown(Unit::SECONDS))
    }))
}

/// What [`COUNT`] prints.
#[derive(Deserialize)]
struct Counted {
    sent: f64,
}

/// Runs a job in a network that has only its loopback interface, and prints the bytes that went
/// over it, headers included.
const COUNT: &str = r#"ip link set lo up && "$0" "$@" >/dev/null &&
    awk '$1 == "lo:" { print "{\"sent\": " $2 "}" }' /proc/net/dev"#;

/// The bytes that the processes of a job send each other, if its messages go over TCP.
fn sent_bytes(job: &Command) -> Result<f64> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", COUNT]);
    command.arg(job.get_program()).args(job.get_args()).args(["--lane", "tcp"]);
    let Counted { sent } = launch::run_quietly(&mut command)?.json()?;
    Ok(sent)
}
