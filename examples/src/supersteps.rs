//! What bulk-synchronous programs share: their flags.

use crate::journal::other_builds;
use crate::{Job, print, ranged};
use clap::ValueEnum;
use rustix::process::{Signal, getpid, kill_process};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;
use ultramarine::Result;
use ultramarine::prelude::{Context, OtherBuilds, Pe};
use ultramarine::skeletons::bsp::{Program, Progress, bsp};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether a PE is to kill itself.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How a bulk-synchronous program is run.
#[derive(Clone, clap::Args)]
pub struct SuperstepFlags {
    /// The number of ranks: the result is the same, bit for bit, on any number of PEs.
    #[arg(long, value_name = "P", default_value_t = 8)]
    #[arg(value_parser = ranged::<u32>(1..=100_000))]
    pub ranks: u32,
    /// The number of supersteps between two checkpoints. Without this the interval is the best one
    /// for what a checkpoint costs and how often hosts fail (`ULTRAMARINE_HOST_MTBF`).
    #[arg(long, value_name = "K")]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    checkpoint_every: Option<u64>,
    /// Put checkpoints into this directory, too, and go on from there.
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// What becomes of checkpoints there that another build of the program has written: they are
    /// refused; or used, with a warning; or all is computed anew.
    #[arg(
        long,
        value_name = "CHOICE",
        requires = "checkpoint_dir",
        value_parser = other_builds(),
        default_value = "refuse"
    )]
    checkpoint_build: OtherBuilds,
    /// Leave ranks on their PEs, also if these are unevenly busy.
    #[arg(long)]
    no_balance: bool,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Ranks)]
    pub skeleton: Skeleton,
    /// For the benchmarks: the second PE kills itself when this superstep has begun.
    #[arg(long, value_name = "SUPERSTEP", hide = true)]
    kill_in: Option<u64>,
    /// The root does so instead.
    #[arg(long, hide = true, requires = "kill_in")]
    kill_root: bool,
}

/// See [`SuperstepFlags`].
#[derive(Clone, Copy, ValueEnum)]
pub enum Skeleton {
    /// By ranks.
    Ranks,
    /// All on one thread of the root.
    Sequential,
}

impl SuperstepFlags {
    /// Runs a program; returns the outputs of its ranks. There are at most as many ranks as `parts`
    /// of the work.
    ///
    /// # Errors
    ///
    /// The run has failed.
    pub async fn run<P: Program>(
        &self,
        job: &Job,
        argument: P::Argument,
        parts: usize,
    ) -> Result<Vec<P::Output>> {
        let ranks = u32::try_from(parts).map_or(self.ranks, |parts| self.ranks.min(parts));
        let mut run = bsp::<P>(argument).ranks(ranks).balance(!self.no_balance);
        if let Some(every) = self.checkpoint_every.and_then(NonZeroU64::new) {
            run = run.checkpoint_every(every);
        }
        if let Some(directory) = &self.checkpoint_dir {
            run = run.checkpoint_dir(directory).other_builds(self.checkpoint_build);
        }
        if let Some(superstep) = self.kill_in.filter(|_| job.cx.attempt() == 1) {
            let pe = if self.kill_root { job.cx.root() } else { Pe::new(1) };
            let (cx, mut victim) = (job.cx.clone(), Some(pe));
            run = run.progress(LOOK_EVERY, move |progress| {
                if progress.superstep >= superstep
                    && let Some(pe) = victim.take()
                {
                    // The program's output says when it was.
                    let _ = print(format_args!("killed in superstep {}\n", progress.superstep));
                    drop(cx.spawn_at(pe, die, ()));
                }
            });
        } else if job.flags.progress {
            run = run.progress(
                PROGRESS_EVERY,
                |Progress { superstep, per_superstep, note, .. }| {
                    let note = note.as_ref().map_or_else(String::new, |note| format!(", {note}"));
                    eprintln!("superstep {superstep}, {per_superstep:.1?} each{note}");
                },
            );
        }
        Ok(run.run(&job.cx).await?)
    }
}

async fn die(_: Context, (): ()) {
    if let Err(error) = kill_process(getpid(), Signal::KILL) {
        eprintln!("this process cannot kill itself: {error}");
    }
}
