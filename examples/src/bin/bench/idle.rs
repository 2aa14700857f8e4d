//! The CPU use of a job that has nothing to do.

use crate::child::on_each_pe;
use crate::launch::Bench;
use crate::{Goal, Report, Sample, Unit, proc};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use ultramarine::Result;
use ultramarine::prelude::*;

const ROUNDS: usize = 3;
const LASTING: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// The CPU use of each PE.
    percent: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for pes in [2, 4] {
        let job = bench.on(pes, &bench.child("--threads 1 idle"));
        let found: Vec<Measurements> = bench.repeat(ROUNDS, job)?;
        let all: Sample = found.into_iter().flat_map(|found| found.percent).collect();
        let what = format!("CPU per PE, {pes} PEs");
        report.goal(&what, &all, Unit::PERCENT, Goal::AtMost(2.0));
    }
    Ok(())
}

/// Waits for a timer.
pub(crate) async fn job(cx: &Context) -> Result<Measurements> {
    // Wait until the work of the start is done.
    cx.sleep(Duration::from_millis(200)).await;
    let (start, before) = (Instant::now(), cpu_times(cx).await?);
    cx.sleep(LASTING).await;
    let (seconds, after) = (start.elapsed().as_secs_f64(), cpu_times(cx).await?);
    let percent = before.iter().zip(&after).map(|(b, a)| 100.0 * (a - b) / seconds);
    Ok(Measurements { percent: percent.collect() })
}

/// The CPU time of each PE so far, in seconds.
async fn cpu_times(cx: &Context) -> Result<Vec<f64>> {
    on_each_pe(cx, async |_, ()| proc::cpu_time().as_secs_f64()).await
}
