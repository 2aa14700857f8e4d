//! Unbalanced Tree Search on the tree T1L of 102 million nodes: one PE, two, and two supervised, against
//! a plain sequential loop.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::Deserialize;
use std::process::Command;

const ROUNDS: usize = 5;
/// The reference program's letters for T1L, and how many nodes it has.
const T1L: [&str; 10] = ["-t", "1", "-a", "3", "-d", "13", "-b", "4", "-r", "29"];
const NODES: u64 = 102_181_082;

#[derive(Deserialize)]
struct Printed {
    result: u64,
    seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let ours = |flags: &[&str]| {
        let mut command = bench.launcher.sibling("uts");
        command.args(T1L).args(["--json", "--threads", "1"]).args(flags);
        command
    };
    let on = |pes: u32, flags: &[&str]| bench.launcher.launched(pes, &ours(flags));
    let mut contenders = [
        ("sequential", ours(&["--skeleton", "sequential"])),
        ("1 PE", on(1, &[])),
        ("2 PEs", on(2, &[])),
        ("2 PEs, supervised", on(2, &["--supervised"])),
    ];
    let mut seconds = contenders.each_ref().map(|_| Vec::new());
    for _ in 0..bench.rounds(ROUNDS) {
        for ((name, command), seconds) in contenders.iter_mut().zip(&mut seconds) {
            let Some(measured) = report.accept(name, run(command)) else { return };
            seconds.push(measured);
        }
    }
    let samples = seconds.map(|seconds| seconds.into_iter().collect::<Sample>());
    for ((name, _), sample) in contenders.iter().zip(&samples) {
        report.figure(name, sample, Unit::SECONDS);
    }
    let [sequential, one, two, supervised] = &samples;
    report.goal("2 PEs are faster than 1", &one.over(two), Unit::TIMES, Goal::AtLeast(1.9));
    let share = sequential.with(two, |sequential, two| 100.0 * sequential / (2.0 * two));
    let what = "2 PEs, of twice the sequential nodes per second";
    report.goal(what, &share, Unit::PERCENT, Goal::AtLeast(90.0));
    let more = two.with(supervised, |two, supervised| 100.0 * (supervised / two - 1.0));
    report.goal("supervision takes", &more, Unit::PERCENT, Goal::AtMost(3.0));
}

fn run(command: &mut Command) -> Result<f64, LaunchError> {
    let Printed { result, seconds } = launch::run(command)?.json()?;
    if result != NODES {
        let reason = format!("{result} nodes came out instead of {NODES}");
        return Err(LaunchError::Output { program: "uts".to_owned(), reason });
    }
    Ok(seconds)
}
