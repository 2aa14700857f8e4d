//! The CPU use of a job that has nothing to do.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::proc;
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 3;
const SECONDS: u64 = 3;

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// The CPU use of each PE.
    percent: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    for pes in [2, 4] {
        let rounds = (0..bench.rounds(ROUNDS)).map(|_| run(bench, pes));
        let what = format!("CPU per PE, {pes} PEs");
        let Some(found) = report.accept(&what, rounds.collect::<Result<Vec<_>, _>>()) else {
            continue;
        };
        let all: Sample = found.into_iter().flat_map(|found| found.percent).collect();
        report.goal(&what, &all, Unit::PERCENT, Goal::AtMost(2.0));
    }
}

fn run(bench: &Bench, pes: u32) -> Result<Measurements, LaunchError> {
    let mut job = bench.launcher.child();
    job.args(["--threads", "1", "idle"]);
    launch::run(&mut bench.launcher.launched(pes, &job))?.json()
}

/// Waits for a timer.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        // Wait until the work of the start is done.
        cx.sleep(Duration::from_millis(200)).await;
        let (start, before) = (Instant::now(), cpu_times(cx).await?);
        cx.sleep(Duration::from_secs(self.seconds)).await;
        let (seconds, after) = (start.elapsed().as_secs_f64(), cpu_times(cx).await?);
        let percent = before.iter().zip(&after).map(|(b, a)| 100.0 * (a - b) / seconds);
        Ok(Measurements { percent: percent.collect() })
    }
}

/// The CPU time of each PE so far, in seconds.
async fn cpu_times(cx: &Context) -> Result<Vec<f64>> {
    let own = async |_: Context, ()| {
        proc::cpu_time().map(|time| time.as_secs_f64()).map_err(|error| error.to_string())
    };
    let asked: Vec<_> = (0..cx.pes()).map(|n| cx.spawn_at(Pe::new(n), own, ())).collect();
    let mut times = vec![];
    for answer in asked {
        times.push(answer.await?.map_err(Error::other)?);
    }
    Ok(times)
}
