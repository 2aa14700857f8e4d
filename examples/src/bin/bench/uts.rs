//! Unbalanced Tree Search on a bushy tree of 102 million nodes and on a deep, thin one of 111
//! million: one PE, two, and two supervised, against a plain sequential loop.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::Deserialize;
use std::process::Command;

const ROUNDS: usize = 5;

/// A tree, by the flags of the reference program.
struct TreeFlags {
    name: &'static str,
    flags: &'static [&'static str],
    nodes: u64,
    /// The goal for two PEs: this percentage of twice the sequential nodes per second.
    share_min: f64,
}

const TREES: [TreeFlags; 2] = [
    TreeFlags {
        name: "T1L",
        flags: &["-t", "1", "-a", "3", "-d", "13", "-b", "4", "-r", "29"],
        nodes: 102_181_082,
        share_min: 90.0,
    },
    TreeFlags {
        name: "T3L",
        flags: &["-t", "0", "-b", "2000", "-q", "0.200014", "-m", "5", "-r", "7"],
        nodes: 111_345_631,
        share_min: 95.0,
    },
];

#[derive(Deserialize)]
struct Printed {
    result: u64,
    seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    TREES.iter().for_each(|tree| measure_on(tree, bench, report));
}

fn measure_on(tree: &TreeFlags, bench: &Bench, report: &mut Report) {
    let ours = |flags: &[&str]| {
        let mut command = bench.launcher.sibling("uts");
        command.args(tree.flags).args(["--json", "--threads", "1"]).args(flags);
        command
    };
    let on = |pes: u32, flags: &[&str]| bench.launcher.launched(pes, &ours(flags));
    let mut contenders = [
        ("sequential", ours(&["--skeleton", "sequential"])),
        ("1 PE", on(1, &[])),
        ("2 PEs", on(2, &[])),
        ("2 PEs, supervised", on(2, &["--supervised"])),
    ];
    let named = |what: &str| format!("{}: {what}", tree.name);
    let mut seconds = contenders.each_ref().map(|_| Vec::new());
    for _ in 0..bench.rounds(ROUNDS) {
        for ((name, command), seconds) in contenders.iter_mut().zip(&mut seconds) {
            let measured = report.accept(&named(name), run(command, tree.nodes));
            let Some(measured) = measured else { return };
            seconds.push(measured);
        }
    }
    let samples = seconds.map(|seconds| seconds.into_iter().collect::<Sample>());
    for ((name, _), sample) in contenders.iter().zip(&samples) {
        report.figure(&named(name), sample, Unit::SECONDS);
    }
    let [sequential, one, two, supervised] = &samples;
    let what = named("2 PEs are faster than 1");
    report.goal(&what, &one.over(two), Unit::TIMES, Goal::AtLeast(1.9));
    let share = sequential.with(two, |sequential, two| 100.0 * sequential / (2.0 * two));
    let what = named("2 PEs, of twice the sequential nodes per second");
    report.goal(&what, &share, Unit::PERCENT, Goal::AtLeast(tree.share_min));
    let more = two.with(supervised, |two, supervised| 100.0 * (supervised / two - 1.0));
    report.goal(&named("supervision takes"), &more, Unit::PERCENT, Goal::AtMost(3.0));
}

fn run(command: &mut Command, nodes: u64) -> Result<f64, LaunchError> {
    let Printed { result, seconds } = launch::run(command)?.json()?;
    if result != nodes {
        let reason = format!("{result} nodes came out instead of {nodes}");
        return Err(LaunchError::Output { program: "uts".to_owned(), reason });
    }
    Ok(seconds)
}
