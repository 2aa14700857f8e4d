//! Branch and bound in the order of one worker: cliques and knapsacks on two PEs, against the
//! sequential programs.

use crate::launch::{Bench, Printed};
use crate::{Goal, Report, Sample, Unit};
use ultramarine::Result;

const ROUNDS: usize = 5;
const PES: u32 = 2;

/// Vertices, density in percent, and seed of each graph.
const GRAPHS: [(u32, u32, u32); 10] = [
    (200, 70, 1),
    (200, 75, 2),
    (250, 70, 3),
    (300, 60, 4),
    (150, 85, 5),
    (220, 75, 6),
    (400, 50, 7),
    (180, 80, 8),
    (250, 72, 9),
    (350, 60, 10),
];

/// The seed of each knapsack, of 100 items.
const KNAPSACKS: [u32; 10] = [2, 8, 9, 19, 20, 27, 29, 35, 40, 45];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let graph = |(vertices, density, seed)| {
        format!("--vertices {vertices} --density {density} --seed {seed}")
    };
    against_sequential(bench, report, "maxclique", GRAPHS.map(graph))?;
    against_sequential(bench, report, "knapsack", KNAPSACKS.map(|seed| format!("--seed {seed}")))
}

fn against_sequential<const N: usize>(
    bench: &Bench,
    report: &mut Report,
    program: &str,
    instances: [String; N],
) -> Result<()> {
    let (mut speeds, mut most) = (Sample::new(), 0.0_f64);
    for instance in instances {
        let with =
            |flags: &str| bench.program(program, &format!("{instance} --threads 1 --json {flags}"));
        let contenders = [bench.on(1, &with("--skeleton sequential")), bench.on(PES, &with(""))];
        let [sequential, ours] = bench.in_turn(ROUNDS, contenders, None)?;
        let seconds = |all: &_| Sample::of::<Printed>(all, |printed| printed.seconds);
        let expanded = |all: &_| Sample::of::<Printed>(all, |printed| printed.expanded as f64);
        let speed = seconds(&sequential).over(&seconds(&ours));
        let nodes = expanded(&ours).over(&expanded(&sequential));
        let name = format!("{program} {instance}");
        report.figure(&format!("{name}: faster than one worker"), &speed, Unit::TIMES);
        report.figure(&format!("{name}: nodes over its nodes"), &nodes, Unit::TIMES);
        speeds.push(speed.median());
        most = most.max(nodes.max());
    }
    let what = format!("{program}, {N} instances: faster than one worker");
    report.goal(&what, &speeds, Unit::TIMES, Goal::AtLeast(1.8));
    let what = format!("{program}, {N} instances: the most nodes over its nodes");
    report.goal(&what, &Sample::one(most), Unit::TIMES, Goal::AtMost(1.08));
    Ok(())
}
