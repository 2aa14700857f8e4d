//! Branch and bound in the order of one worker: cliques and knapsacks on two PEs, against the
//! sequential programs.

use crate::launch::{Bench, Printed};
use crate::{Goal, Report, Sample, Unit};
use std::fmt::Write as _;
use std::path::Path;
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

/// Graphs of the second DIMACS challenge that are made by a rule: name, length of words in bits,
/// bits that are set in each word (`None`: any number), and the least number of bits in which two
/// words differ that are joined. The vertices are all such words.
const FILES: [(&str, u32, Option<u32>, u32); 2] =
    [("johnson16-2-4", 16, Some(2), 4), ("hamming8-4", 8, None, 4)];

/// The seed of each knapsack, of 100 items.
const KNAPSACKS: [u32; 10] = [2, 8, 9, 19, 20, 27, 29, 35, 40, 45];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let drawn = GRAPHS.map(|(vertices, density, seed)| {
        as_named(format!("--vertices {vertices} --density {density} --seed {seed}"))
    });
    let mut graphs = Vec::from(drawn);
    for file in FILES {
        graphs.push((file.0.to_owned(), write_graph(folder.path(), file)?));
    }
    against_sequential(bench, report, "maxclique", graphs)?;
    let knapsacks = KNAPSACKS.map(|seed| as_named(format!("--seed {seed}")));
    against_sequential(bench, report, "knapsack", knapsacks.into())
}

/// An instance that is called what its flags are.
fn as_named(flags: String) -> (String, String) {
    (flags.clone(), flags)
}

/// Writes one of [`FILES`] into this folder. Returns the flags by which it is read.
fn write_graph(
    folder: &Path,
    (name, bits, set, apart): (&str, u32, Option<u32>, u32),
) -> Result<String> {
    let is_vertex = |word: &u32| set.is_none_or(|set| word.count_ones() == set);
    let vertices: Vec<u32> = (0..1 << bits).filter(is_vertex).collect();
    let (mut edges, mut lines) = (0, String::new());
    for (one, word) in vertices.iter().enumerate() {
        let joined = |other: &&u32| (word ^ **other).count_ones() >= apart;
        for (other, _) in vertices[..one].iter().enumerate().filter(|(_, other)| joined(other)) {
            edges += 1;
            // Writing to a string never fails.
            let _ = writeln!(lines, "e {} {}", one + 1, other + 1);
        }
    }
    let file = folder.join(format!("{name}.clq"));
    std::fs::write(&file, format!("p edge {} {edges}\n{lines}", vertices.len()))?;
    Ok(format!("--file {}", file.display()))
}

/// Measures a program with instances, each with what it is called and its flags.
fn against_sequential(
    bench: &Bench,
    report: &mut Report,
    program: &str,
    instances: Vec<(String, String)>,
) -> Result<()> {
    let (mut speeds, mut most, count) = (Sample::new(), 0.0_f64, instances.len());
    for (instance, given) in instances {
        let with =
            |flags: &str| bench.program(program, &format!("{given} --threads 1 --json {flags}"));
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
    let what = format!("{program}, {count} instances: faster than one worker");
    report.goal(&what, &speeds, Unit::TIMES, Goal::AtLeast(1.8));
    let what = format!("{program}, {count} instances: the most nodes over its nodes");
    report.goal(&what, &Sample::one(most), Unit::TIMES, Goal::AtMost(1.08));
    Ok(())
}
