//! Each PE sends to the next one, all at once: empty tasks, or arrays that come back.

use serde::Serialize;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;

/// Of each PE, after a tenth of them to warm up.
const TASKS: u64 = 200_000;
const TRIPS: u64 = 40;
const NUMBERS: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Job {
    /// Send arrays instead of empty tasks.
    #[arg(long)]
    bulk: bool,
}

#[derive(Serialize)]
pub(crate) struct Found {
    /// Tasks, or 10^9 bytes, per second, of all PEs together.
    rate: f64,
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Found> {
        let gigabytes = 2.0 * size_of::<[f64; NUMBERS]>() as f64 / 1e9;
        let (count, each) = if self.bulk { (TRIPS, gigabytes) } else { (TASKS, 1.0) };
        on_all(cx, self.bulk, count / 10).await?;
        let start = Instant::now();
        on_all(cx, self.bulk, count).await?;
        let all = f64::from(cx.pes()) * count as f64 * each;
        Ok(Found { rate: all / start.elapsed().as_secs_f64() })
    }
}

async fn on_all(cx: &Context, bulk: bool, count: u64) -> Result<()> {
    let started: Vec<_> =
        (0..cx.pes()).map(|pe| cx.spawn_at(Pe::new(pe), send, (bulk, count))).collect();
    for sent in started {
        sent.await??;
    }
    Ok(())
}

async fn send(cx: Context, (bulk, count): (bool, u64)) -> std::result::Result<(), TaskError> {
    let next = Pe::new((cx.pe().number() + 1) % cx.pes());
    if bulk {
        let mut numbers = vec![1.0; NUMBERS];
        for _ in 0..count {
            numbers = cx.spawn_at(next, async |_, numbers: Vec<f64>| numbers, numbers).await?;
        }
        return Ok(());
    }
    let placed: Vec<_> = (0..count).map(|n| cx.spawn_at(next, async |_, _: u64| (), n)).collect();
    for task in placed {
        task.await?;
    }
    Ok(())
}
