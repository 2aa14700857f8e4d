//! The jobs of the benchmarks: `bench child [JOB FLAGS] SCENARIO …`. A job runs like any program,
//! with or without a launcher, and its root prints one line of JSON.

use crate::{
    bsp, bulk, cancel, cores, detection, divide, gather, idle, mail, memo, memory, noop, reaction,
    recovery, spawn, startup, steal, succession, supervision, table, taskset, trips,
};
use clap::Subcommand;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use ultramarine::prelude::*;
use ultramarine::{Error, Options, Portable, Result, Stateless};

/// One job.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    scenario: Scenario,
}

/// Declares the scenarios, each with its job: a function, or flags with one.
macro_rules! scenarios {
    ($($plain:ident => $run:path),*; $($name:ident($job:path)),*) => {
        #[derive(Subcommand)]
        enum Scenario {
            $($plain,)*
            $($name($job),)*
        }

        impl Scenario {
            async fn run(&self, cx: &Context) -> Result<()> {
                match self {
                    $(Scenario::$plain => print(&$run(cx).await?),)*
                    $(Scenario::$name(job) => print(&job.run(cx).await?),)*
                }
            }
        }
    };
}

scenarios! {
    Noop => noop::job,
    Placed => noop::placed_job,
    Bulk => bulk::job,
    Gather => gather::job,
    Mail => mail::job,
    Reaction => reaction::job,
    Idle => idle::job,
    Memory => memory::job,
    Succession => succession::job;
    Barrier(bsp::barrier::Job),
    Checkpoint(bsp::checkpoint::Job),
    Spawn(spawn::Job),
    Steal(steal::Job),
    Memo(memo::Job),
    Table(table::Job),
    Trips(trips::Job),
    Ring(cores::ring::Job),
    Cancel(cancel::Job),
    Startup(startup::Job),
    Supervision(supervision::Job),
    Detection(detection::Job),
    Crowd(detection::CrowdJob),
    Divide(divide::Job),
    Sleep(recovery::Job),
    SetAlone(taskset::Alone),
    SetStolen(taskset::Stolen),
    SetLeft(taskset::Left)
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let Arguments { options, scenario } = self;
        let Scenario::Succession = scenario else {
            return options.run(async move |cx| scenario.run(&cx).await);
        };
        let scenario = Arc::new(scenario);
        options.run_restartable(move |cx| {
            let scenario = Arc::clone(&scenario);
            async move { scenario.run(&cx).await }
        })
    }
}

fn print(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}

/// Refuses to run on another number of PEs.
pub(crate) fn needs_pes(cx: &Context, pes: u32) -> Result<()> {
    if cx.pes() == pes { Ok(()) } else { Err(Error::other(format!("this job needs {pes} PEs"))) }
}

/// Runs a task on each PE, all at once; returns their results in the order of the PEs.
pub(crate) async fn on_each_pe<F, T>(cx: &Context, task: F) -> Result<Vec<T::Output>>
where
    F: Fn(Context, ()) -> T + Stateless,
    T: Future<Output: Portable> + Send + 'static,
{
    let asked: Vec<_> = (0..cx.pes()).map(|pe| cx.spawn_at(Pe::new(pe), task, ())).collect();
    let mut answers = Vec::with_capacity(asked.len());
    for answer in asked {
        answers.push(answer.await?);
    }
    Ok(answers)
}

/// The time since 1970. The PEs of one host agree on it.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Computes for this time.
pub(crate) fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
