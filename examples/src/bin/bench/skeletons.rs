//! The four lines of SymGridPar2 figures 10 and 11: two computations with tasks of different
//! length, by plain work stealing, by round-robin placement, and on two levels, on 1, 2, 4, … PEs
//! up to the number of cores.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::Report;
use crate::sample::Sample;
use serde::Deserialize;
use std::fmt::Write as _;
use std::iter::successors;
use std::process::Command;

const ROUNDS: usize = 3;
const SKELETONS: [&str; 4] = ["par-map", "push-map", "par-map-2level", "par-map-2level-relaxed"];

/// A computation and its result.
struct Computation {
    program: &'static str,
    flags: [&'static str; 4],
    result: i64,
}

const COMPUTATIONS: [Computation; 2] = [
    Computation {
        program: "sum_euler",
        flags: ["--upto", "15000", "--tasks", "400"],
        result: 68_394_316,
    },
    Computation {
        program: "liouville",
        flags: ["--upto", "100000000", "--tasks", "300"],
        result: -3884,
    },
];

#[derive(Deserialize)]
struct Printed {
    result: i64,
    seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for work in &COMPUTATIONS {
        let measured = work.measure(bench);
        let Some(table) = report.accept(work.program, measured) else { return };
        report.text(&format!("{} {}:", work.program, work.flags.join(" ")));
        report.text(&table);
    }
}

impl Computation {
    fn measure(&self, bench: &Bench) -> Result<String, LaunchError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let pes: Vec<u32> =
            successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= cores).collect();
        let mut sequential = Vec::new();
        let mut lines = SKELETONS.map(|_| vec![Vec::new(); pes.len()]);
        for _ in 0..bench.rounds(ROUNDS) {
            sequential.push(self.run(self.command(bench, "sequential"))?);
            for (skeleton, line) in SKELETONS.iter().zip(&mut lines) {
                for (pes, seconds) in pes.iter().zip(line) {
                    let command = self.command(bench, skeleton);
                    seconds.push(self.run(bench.launcher.launched(*pes, &command))?);
                }
            }
        }
        Ok(table(&sequential.into_iter().collect(), &pes, &lines))
    }

    fn command(&self, bench: &Bench, skeleton: &str) -> Command {
        let mut command = bench.launcher.sibling(self.program);
        command.args(["--json", "--threads", "1", "--skeleton", skeleton]).args(self.flags);
        command
    }

    fn run(&self, mut command: Command) -> Result<f64, LaunchError> {
        let Printed { result, seconds } = launch::run(&mut command)?.json()?;
        if result != self.result {
            let reason = format!("{result} came out instead of {}", self.result);
            return Err(LaunchError::Output { program: self.program.to_owned(), reason });
        }
        Ok(seconds)
    }
}

/// A table of median seconds, and of the efficiency compared with the sequential program.
fn table(sequential: &Sample, pes: &[u32], lines: &[Vec<Vec<f64>>]) -> String {
    let mut text = format!("{:<24}{:>8.3} s", "sequential", sequential.median());
    // Writing into a string cannot fail.
    let _ = write!(text, "\n{:<24}", "PEs");
    let _ = pes.iter().try_for_each(|pes| write!(text, "{pes:>18}"));
    for (skeleton, line) in SKELETONS.iter().zip(lines) {
        let _ = write!(text, "\n{skeleton:<24}");
        for (pes, seconds) in pes.iter().zip(line) {
            let seconds: Sample = seconds.iter().copied().collect();
            let efficiency = sequential.with(&seconds, |s, p| 100.0 * s / (p * f64::from(*pes)));
            let (seconds, percent) = (seconds.median(), efficiency.median());
            let _ = write!(text, "{seconds:>8.3} s {percent:>5.1} %");
        }
    }
    text
}
