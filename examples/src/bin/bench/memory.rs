//! The memory of a waiting task, and whether tasks that were awaited leave memory behind.

use crate::launch::{self, Bench};
use crate::proc::resident_bytes;
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use ultramarine::Result;
use ultramarine::prelude::*;

/// Of a batch.
const TASKS: u64 = 1_000_000;
const BATCHES: usize = 10;
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Growth below this counts as none: the allocator and the system round to it.
const NOISE_MEBIBYTES: f64 = 1.0;

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// Bytes of a task with its future, without its argument.
    bytes_per_task: f64,
    /// Memory in use after each batch, in bytes.
    after_batches: Vec<u64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut job = bench.child("--pes 1 --threads 1 memory");
    let found: Measurements = launch::run(&mut job)?.json()?;
    let bytes = Sample::one(found.bytes_per_task);
    report.goal("a waiting task and its future", &bytes, Unit::BYTES, Goal::AtMost(200.0));
    let after: Vec<f64> = found.after_batches.iter().map(|b| *b as f64 / MEBIBYTE).collect();
    let shown: Vec<_> = after.iter().map(|mebibytes| format!("{mebibytes:.1}")).collect();
    report.text(&format!("in use after each million of tasks, in MiB: {}", shown.join(" ")));
    if let [_, first, .., last] = after[..] {
        let (growth, goal) = (Sample::one(last - first), Goal::AtMost(NOISE_MEBIBYTES));
        report.goal("growth, 2nd to last million", &growth, Unit::MEBIBYTES, goal);
    }
    Ok(())
}

/// Batches of tasks that wait until their spawner awaits them.
pub(crate) async fn job(cx: &Context) -> Result<Measurements> {
    let mut bytes = 0;
    let mut after_batches = vec![];
    for batch in 0..BATCHES {
        let before = resident_bytes()?;
        let spawn = |n| cx.spawn_fn(Distance::ONE, |n: u64| n + 1, n);
        // The only thread is busy here, so none of the tasks runs.
        let futures: Vec<_> = (0..TASKS).map(spawn).collect();
        if batch == 0 {
            bytes = resident_bytes()?.saturating_sub(before);
        }
        for future in futures {
            future.await?;
        }
        after_batches.push(resident_bytes()?);
    }
    let bytes_per_task = bytes as f64 / TASKS as f64 - size_of::<u64>() as f64;
    Ok(Measurements { bytes_per_task, after_batches })
}
