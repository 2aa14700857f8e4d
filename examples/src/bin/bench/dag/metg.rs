//! How small the nodes of a graph may be: Task Bench's patterns as a graph, by hand with MPI, and
//! by rayon, in turn.
//!
//! METG(50 %), the minimum effective task granularity, is the least time of a task, with all that
//! it costs, at which still half of the time is computing (Slaughter et al., *Task Bench*, SC20,
//! §IV). What computing takes is known from the fastest of all runs.

use super::{PATTERNS, Printed};
use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use std::collections::BTreeMap;
use std::process::Command;

const ROUNDS: usize = 3;
const PES: u32 = 2;
/// How often each task computes its 64 numbers, from long tasks to short ones.
const ITERATIONS: [u32; 11] = [16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16];
/// Long tasks need fewer steps.
fn steps(iterations: u32) -> u32 {
    (16_000_000 / iterations).clamp(1000, 20_000)
}

/// What computes the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum System {
    Dag,
    Mpi,
    Rayon,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let node = (0..bench.rounds(ROUNDS)).map(|_| node_micros(bench)).collect::<Result<_, _>>();
    let Some(node) = report.accept("1 PE x 1 thread", node) else { return };
    report.goal("a node with 3 inputs, on one PE", &node, Unit::MICROS, Goal::AtMost(2.0));
    for pattern in PATTERNS {
        let rounds = (0..bench.rounds(ROUNDS)).map(|_| metg(bench, pattern)).collect();
        let rounds: Result<Vec<BTreeMap<System, f64>>, LaunchError> = rounds;
        let Some(rounds) = report.accept(pattern, rounds) else { return };
        let of = |system| rounds.iter().map(|round| round[&system]).collect::<Sample>();
        let (own, mpi) = (of(System::Dag), of(System::Mpi));
        let named = |what: &str| format!("METG(50 %) of {pattern}: {what}");
        if pattern == "stencil_1d" {
            report.goal(&named("the graph"), &own, Unit::MICROS, Goal::AtMost(15.0));
            report.goal(&named("over MPI"), &own.over(&mpi), Unit::TIMES, Goal::AtMost(3.0));
        } else {
            report.figure(&named("the graph"), &own, Unit::MICROS);
        }
        report.figure(&named("MPI by hand"), &mpi, Unit::MICROS);
        report.figure(&named("rayon"), &of(System::Rayon), Unit::MICROS);
    }
}

fn node_micros(bench: &Bench) -> Result<f64, LaunchError> {
    let (width, steps) = (1000, 200);
    let mut command = bench.launcher.sibling("task_bench");
    command.args(["--json", "--pes", "1", "--threads", "1", "--pattern", "stencil_1d"]);
    command.args(["--width", &width.to_string(), "--steps", &steps.to_string()]);
    command.args(["--iterations", "0"]);
    let Printed { seconds, .. } = launch::run(&mut command)?.json()?;
    Ok(seconds * 1e6 / f64::from(width * steps))
}

/// METG(50 %) of each system, in µs.
fn metg(bench: &Bench, pattern: &str) -> Result<BTreeMap<System, f64>, LaunchError> {
    let mut times: BTreeMap<System, Vec<f64>> = BTreeMap::new();
    for iterations in ITERATIONS {
        let mut results = Vec::new();
        for system in [System::Dag, System::Mpi, System::Rayon] {
            let mut command = system.command(bench, pattern, iterations);
            let Printed { result, seconds, .. } = launch::run(&mut command)?.json()?;
            results.push(result);
            times.entry(system).or_default().push(seconds);
        }
        if results.iter().any(|result| *result != results[0]) {
            let reason = format!("the systems differ: {results:?}");
            return Err(LaunchError::Output { program: "task_bench".to_owned(), reason });
        }
    }
    // One core has a point of each step. A tree that has not grown yet makes little difference.
    let per_task = |seconds: f64, iterations| seconds * 1e6 / f64::from(steps(iterations));
    let alone = |(seconds, iterations): (&f64, &u32)| {
        per_task(*seconds, *iterations) / f64::from(*iterations)
    };
    let least = times.values().flat_map(|times| times.iter().zip(&ITERATIONS).map(alone));
    let least = least.fold(f64::INFINITY, f64::min);
    let smallest = |times: &Vec<f64>| {
        let tasks: Vec<(f64, f64)> = times
            .iter()
            .zip(&ITERATIONS)
            .map(|(seconds, iterations)| {
                let task = per_task(*seconds, *iterations);
                (task, least * f64::from(*iterations) / task)
            })
            .collect();
        crossing(&tasks, 0.5)
    };
    Ok(times.iter().map(|(system, times)| (*system, smallest(times))).collect())
}

/// Where the efficiency of tasks, the longest first, falls below a limit: the time of a task there,
/// between the two that were measured.
fn crossing(tasks: &[(f64, f64)], limit: f64) -> f64 {
    let below = tasks.iter().position(|(_, efficiency)| *efficiency < limit);
    match below {
        None => tasks[tasks.len() - 1].0,
        Some(0) => f64::INFINITY,
        Some(at) => {
            let ((long, above), (short, below)) = (tasks[at - 1], tasks[at]);
            short + (long - short) * (limit - below) / (above - below)
        }
    }
}

impl System {
    /// Two cores compute two points, step by step.
    fn command(self, bench: &Bench, pattern: &str, iterations: u32) -> Command {
        let program = if self == System::Mpi { "task_bench_mpi" } else { "task_bench" };
        let mut command = bench.launcher.sibling(program);
        command.args(["--pattern", pattern, "--width", &PES.to_string()]);
        command.args([
            "--steps",
            &steps(iterations).to_string(),
            "--iterations",
            &iterations.to_string(),
        ]);
        match self {
            System::Mpi => bench.launcher.launched(PES, &command),
            System::Dag => {
                command.args(["--json", "--threads", "1"]);
                bench.launcher.launched(PES, &command)
            }
            System::Rayon => {
                command.args(["--json", "--pes", "1", "--threads", &PES.to_string()]);
                command.args(["--skeleton", "rayon"]);
                command
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_lies_between_two_tasks() {
        let tasks = [(100.0, 0.9), (20.0, 0.6), (10.0, 0.4), (8.0, 0.1)];
        assert!((crossing(&tasks, 0.5) - 15.0).abs() < 1e-9);
        assert!((crossing(&tasks[..2], 0.5) - 20.0).abs() < 1e-9, "it never falls");
    }
}
