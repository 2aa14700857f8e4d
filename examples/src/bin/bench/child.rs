//! The jobs of the benchmarks: `bench child [JOB FLAGS] SCENARIO …`. A job runs like any program,
//! with or without a launcher, and its root prints one line of JSON.

use crate::{
    bulk, cancel, detection, divide, idle, memory, noop, reaction, recovery, spawn, startup, steal,
    succession, supervision, trips,
};
use clap::Subcommand;
use serde::Serialize;
use std::sync::Arc;
use ultramarine::{Context, Options, Result};

/// One job.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    Spawn(spawn::Job),
    Noop(noop::Job),
    Steal(steal::Job),
    Bulk(bulk::Job),
    Trips(trips::Job),
    Reaction(reaction::Job),
    Cancel(cancel::Job),
    Idle(idle::Job),
    Startup(startup::Job),
    Memory(memory::Job),
    Supervision(supervision::Job),
    Detection(detection::Job),
    Succession(succession::Job),
    Crowd(detection::CrowdJob),
    Divide(divide::Job),
    Sleep(recovery::Job),
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let Arguments { options, scenario } = self;
        let Scenario::Succession(_) = scenario else {
            return options.run(async move |cx| scenario.run(&cx).await);
        };
        let scenario = Arc::new(scenario);
        options.run_restartable(move |cx| {
            let scenario = Arc::clone(&scenario);
            async move { scenario.run(&cx).await }
        })
    }
}

impl Scenario {
    async fn run(&self, cx: &Context) -> Result<()> {
        match self {
            Scenario::Spawn(job) => print(&job.run(cx).await?),
            Scenario::Noop(job) => print(&job.run(cx).await?),
            Scenario::Steal(job) => print(&job.run(cx).await?),
            Scenario::Bulk(job) => print(&job.run(cx).await?),
            Scenario::Trips(job) => print(&job.run(cx).await?),
            Scenario::Reaction(job) => print(&job.run(cx).await?),
            Scenario::Cancel(job) => print(&job.run(cx).await?),
            Scenario::Idle(job) => print(&job.run(cx).await?),
            Scenario::Startup(job) => print(&job.run(cx).await?),
            Scenario::Memory(job) => print(&job.run(cx).await?),
            Scenario::Supervision(job) => print(&job.run(cx).await?),
            Scenario::Detection(job) => print(&job.run(cx).await?),
            Scenario::Succession(job) => print(&job.run(cx).await?),
            Scenario::Crowd(job) => print(&job.run(cx).await?),
            Scenario::Divide(job) => print(&job.run(cx).await?),
            Scenario::Sleep(job) => print(&job.run(cx).await?),
        }
    }
}

fn print(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}
