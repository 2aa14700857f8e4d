//! The number of tasks that run again when processes die: Queens 14 under the chaos monkey, by the
//! lazy and by the eager skeleton (HdpH-RS table 6.5, where placing each of 65,234 tasks at random
//! made 40,696 replicas).

use crate::launch::{self, Bench, Printed};
use crate::{Goal, Report, Sample, Unit};
use serde_json::Value;
use ultramarine::Result;

const ROUNDS: usize = 10;
const PES: u32 = 10;
const RESULT: u64 = 365_596;
/// The number of boards that are divided or counted: the tasks of the paper.
const TASKS: f64 = 65_234.0;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for (name, skeleton, percent) in
        [("lazy", "par-divide-and-conquer", 1.0), ("eager", "push-divide-and-conquer", 10.0)]
    {
        let jobs = under_chaos(bench, skeleton)?;
        let named = |what: &str| format!("{name}: {what}");
        let dead = Sample::of(&jobs, |job| f64::from(job.dead));
        report.figure(&named(&format!("PEs that died, of {PES}")), &dead, Unit::COUNT);
        let replicas = Sample::of(&jobs, |job| job.replicas as f64);
        report.figure(&named("replicas"), &replicas, Unit::COUNT);
        let share = Sample::of(&jobs, |job| 100.0 * job.replicas as f64 / job.tasks as f64);
        let what = named("replicas, of the tasks that did not stay with their parent");
        report.figure(&what, &share, Unit::PERCENT);
        let worst = Sample::one(100.0 * replicas.max() / TASKS);
        let what = named(&format!("replicas in the worst job, of {TASKS} tasks"));
        report.goal(&what, &worst, Unit::PERCENT, Goal::AtMost(percent));
    }
    Ok(())
}

/// Runs jobs in which any PE but the root may die within the usual time of the job.
fn under_chaos(bench: &Bench, skeleton: &str) -> Result<Vec<Printed>> {
    let run = |more: &str| {
        let flags = format!("--board 14 --threshold 5 --skeleton {skeleton} {more}");
        let queens = bench.program("queens", &format!("{flags} --supervised --json --threads 1"));
        launch::run_quietly(&mut bench.on(PES, &queens))?.printed(&mut Some(Value::from(RESULT)))
    };
    let usual = run("")?.seconds;
    (1..=bench.rounds(ROUNDS))
        .map(|seed| run(&format!("--chaos-monkey={seed} --chaos-within={usual}s")))
        .collect()
}
