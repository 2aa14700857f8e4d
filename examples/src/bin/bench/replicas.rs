//! The number of tasks that run again when processes die: Queens 14 under the chaos monkey, by the
//! lazy and by the eager skeleton (HdpH-RS table 6.5, where placing each of 65,234 tasks at random
//! made 40,696 replicas).

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::Deserialize;

const ROUNDS: usize = 10;
const PES: u32 = 10;
const RESULT: u64 = 365_596;
/// The number of boards that are divided or counted: the tasks of the paper.
const TASKS: f64 = 65_234.0;

#[derive(Deserialize)]
struct Printed {
    result: u64,
    seconds: f64,
    dead: u32,
    /// The number of tasks that the survivors started.
    tasks: u64,
    replicas: u64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for (name, skeleton, percent) in
        [("lazy", "par-divide-and-conquer", 1.0), ("eager", "push-divide-and-conquer", 10.0)]
    {
        let measured = under_chaos(bench, skeleton);
        let Some(jobs) = report.accept(name, measured) else { return };
        let dead = jobs.iter().map(|job| f64::from(job.dead)).collect::<Sample>();
        report.figure(&format!("{name}: PEs that died, of {PES}"), &dead, Unit::COUNT);
        let replicas = jobs.iter().map(|job| job.replicas as f64).collect::<Sample>();
        report.figure(&format!("{name}: replicas"), &replicas, Unit::COUNT);
        let share = jobs.iter().map(|job| 100.0 * job.replicas as f64 / job.tasks as f64);
        let what = format!("{name}: replicas, of the tasks that did not stay with their parent");
        report.figure(&what, &share.collect(), Unit::PERCENT);
        let worst = Sample::one(100.0 * replicas.max() / TASKS);
        let what = format!("{name}: replicas in the worst job, of {TASKS} tasks");
        report.goal(&what, &worst, Unit::PERCENT, Goal::AtMost(percent));
    }
}

/// Runs jobs in which any PE but the root may die within the usual time of the job.
fn under_chaos(bench: &Bench, skeleton: &str) -> Result<Vec<Printed>, LaunchError> {
    let run = |flags: &[String]| {
        let mut queens = bench.launcher.sibling("queens");
        queens.args(["--board", "14", "--threshold", "5", "--skeleton", skeleton]);
        queens.args(["--supervised", "--json", "--threads", "1"]).args(flags);
        let printed: Printed =
            launch::run_quietly(&mut bench.launcher.launched(PES, &queens))?.json()?;
        if printed.result == RESULT {
            return Ok(printed);
        }
        let reason = format!("{} came out instead of {RESULT}", printed.result);
        Err(LaunchError::Output { program: "queens".to_owned(), reason })
    };
    let usual = run(&[])?.seconds;
    (1..=bench.rounds(ROUNDS))
        .map(|seed| run(&[format!("--chaos-monkey={seed}"), format!("--chaos-within={usual}s")]))
        .collect()
}
