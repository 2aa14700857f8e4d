//! The four lines of SymGridPar2 figures 10 and 11: two computations with tasks of different
//! length, by plain work stealing, by round-robin placement, and on two levels, on 1, 2, 4, … PEs
//! up to the number of cores.

use crate::launch::{self, Bench};
use crate::{Report, Sample, cores};
use serde_json::Value;
use std::fmt::Write as _;
use std::iter::successors;
use std::process::Command;
use ultramarine::Result;

const ROUNDS: usize = 3;
const SKELETONS: [&str; 4] = ["par-map", "push-map", "par-map-2level", "par-map-2level-relaxed"];

/// The programs that compute, their flags, and their results.
const COMPUTATIONS: [(&str, &str, i64); 2] = [
    ("sum_euler", "--upto 15000 --tasks 400", 68_394_316),
    ("liouville", "--upto 100000000 --tasks 300", -3884),
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let pes: Vec<u32> =
        successors(Some(1), |n| Some(n * 2)).take_while(|n| *n as usize <= cores()).collect();
    for (program, flags, result) in COMPUTATIONS {
        let with = |skeleton: &str| {
            bench.program(program, &format!("--json --threads 1 --skeleton {skeleton} {flags}"))
        };
        let mut sequential = Sample::new();
        let mut lines = SKELETONS.map(|_| vec![Sample::new(); pes.len()]);
        for _ in 0..bench.rounds(ROUNDS) {
            sequential.push(seconds(with("sequential"), result)?);
            for (skeleton, line) in SKELETONS.iter().zip(&mut lines) {
                for (pes, sample) in pes.iter().zip(line) {
                    sample.push(seconds(bench.on(*pes, &with(skeleton)), result)?);
                }
            }
        }
        report.text(&format!("{program} {flags}:"));
        report.text(&table(&sequential, &pes, &lines));
    }
    Ok(())
}

fn seconds(mut program: Command, result: i64) -> Result<f64> {
    Ok(launch::run(&mut program)?.printed(&mut Some(Value::from(result)))?.seconds)
}

/// A table of median seconds, and of the efficiency compared with the sequential program.
fn table(sequential: &Sample, pes: &[u32], lines: &[Vec<Sample>]) -> String {
    let mut text = format!("{:<24}{:>8.3} s", "sequential", sequential.median());
    // Writing into a string cannot fail.
    let _ = write!(text, "\n{:<24}", "PEs");
    let _ = pes.iter().try_for_each(|pes| write!(text, "{pes:>18}"));
    for (skeleton, line) in SKELETONS.iter().zip(lines) {
        let _ = write!(text, "\n{skeleton:<24}");
        for (pes, seconds) in pes.iter().zip(line) {
            let efficiency = sequential.with(seconds, |s, p| 100.0 * s / (p * f64::from(*pes)));
            let (seconds, percent) = (seconds.median(), efficiency.median());
            let _ = write!(text, "{seconds:>8.3} s {percent:>5.1} %");
        }
    }
    text
}
