//! How small the nodes of a graph may be: Task Bench's patterns as a graph, by hand with MPI, and
//! by rayon, in turn.
//!
//! METG(50 %), the minimum effective task granularity, is the least time of a task, with all that
//! it costs, at which still half of the time is computing (Slaughter et al., *Task Bench*, SC20,
//! §IV). What computing takes is known from the fastest of all runs.

use super::PATTERNS;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use std::process::Command;
use ultramarine::Result;

const ROUNDS: usize = 3;
const PES: u32 = 2;
/// How often each task computes its 64 numbers, from long tasks to short ones.
const ITERATIONS: [u32; 11] = [16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16];
/// Long tasks need fewer steps.
fn steps(iterations: u32) -> u32 {
    (16_000_000 / iterations).clamp(1000, 20_000)
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let node = node_micros(bench)?;
    report.goal("a node with 3 inputs, on one PE", &node, Unit::MICROS, Goal::AtMost(2.0));
    for pattern in PATTERNS {
        let [mut own, mut mpi, mut rayon] = [const { Sample::new() }; 3];
        for _ in 0..bench.rounds(ROUNDS) {
            let micros = metg(bench, pattern)?;
            [&mut own, &mut mpi, &mut rayon].into_iter().zip(micros).for_each(|(s, m)| s.push(m));
        }
        let named = |what: &str| format!("METG(50 %) of {pattern}: {what}");
        let has_goal = pattern == "stencil_1d";
        let goal = has_goal.then_some(Goal::AtMost(15.0));
        report.goal(&named("the graph"), &own, Unit::MICROS, goal);
        if has_goal {
            report.goal(&named("over MPI"), &own.over(&mpi), Unit::TIMES, Goal::AtMost(3.0));
        }
        report.figure(&named("MPI by hand"), &mpi, Unit::MICROS);
        report.figure(&named("rayon"), &rayon, Unit::MICROS);
    }
    Ok(())
}

fn node_micros(bench: &Bench) -> Result<Sample> {
    let (width, steps) = (1000, 200);
    let flags = "--json --pes 1 --threads 1 --pattern stencil_1d --iterations 0";
    let flags = format!("{flags} --width {width} --steps {steps}");
    let [found] = bench.in_turn(ROUNDS, [bench.program("task_bench", &flags)], None)?;
    Ok(Sample::of(&found, |printed| printed.seconds * 1e6 / f64::from(width * steps)))
}

/// METG(50 %) of the graph, of MPI by hand, and of rayon, in µs.
fn metg(bench: &Bench, pattern: &str) -> Result<[f64; 3]> {
    let mut micros = [const { Vec::new() }; 3];
    for iterations in ITERATIONS {
        let mut known = None;
        for (mut program, micros) in
            systems(bench, pattern, iterations).into_iter().zip(&mut micros)
        {
            // One core has a point of each step. A tree that has not grown yet makes little
            // difference.
            let seconds = launch::run(&mut program)?.printed(&mut known)?.seconds;
            micros.push(seconds * 1e6 / f64::from(steps(iterations)));
        }
    }
    let alone = |(micros, iterations): (&f64, &u32)| micros / f64::from(*iterations);
    let least = micros.iter().flat_map(|micros| micros.iter().zip(&ITERATIONS).map(alone));
    let least = least.fold(f64::INFINITY, f64::min);
    let with_efficiency =
        |(micros, iterations): (&f64, &u32)| (*micros, least * f64::from(*iterations) / micros);
    Ok(micros.map(|micros| {
        let tasks: Vec<_> = micros.iter().zip(&ITERATIONS).map(with_efficiency).collect();
        crossing(&tasks, 0.5)
    }))
}

/// What computes the grid: a graph, MPI by hand, and rayon. Two cores compute two points, step by
/// step.
fn systems(bench: &Bench, pattern: &str, iterations: u32) -> [Command; 3] {
    let steps = steps(iterations);
    let grid =
        format!("--pattern {pattern} --width {PES} --steps {steps} --iterations {iterations}");
    let with = |program, more: &str| bench.program(program, &format!("{grid} {more}"));
    [
        bench.on(PES, &with("task_bench", "--json --threads 1")),
        bench.on(PES, &with("task_bench_mpi", "")),
        with("task_bench", &format!("--json --pes 1 --threads {PES} --skeleton rayon")),
    ]
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
