//! `cargo xtask test`: one step after the other, also after one that fails; a failure at the end if
//! any failed.

use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;

use crate::mpi::Mpi;
use crate::process::Result;
use crate::report::{self, Heard, Row, StepOutcome};
use crate::setup::{self, Wanted};
use crate::smoke;
use crate::step::{Step, Work};
use crate::tidy;

/// Which steps to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run what takes minutes only: format, rules, lints, tests that launch nothing, and one job
    ///
    /// That is for every commit: under three minutes on two cores when all has been built before.
    /// It needs one MPI, and takes MPICH where there are several.
    #[arg(long, conflicts_with = "only")]
    quick: bool,
    /// Run these steps only
    #[arg(long, value_name = "STEP", num_args = 1.., value_enum)]
    only: Vec<Step>,
    /// List the steps and run none
    #[arg(long)]
    list: bool,
}

impl Arguments {
    fn steps(&self) -> Vec<Step> {
        let all = Step::value_variants().iter().copied();
        match &self.only[..] {
            [] if self.quick => Step::quick(),
            [] => Step::whole(),
            only => all.filter(|step| only.contains(step)).collect(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let steps = arguments.steps();
    if arguments.list {
        list(&steps);
        return ExitCode::SUCCESS;
    }
    run_steps(steps, if arguments.quick { Wanted::OneMpi } else { Wanted::EveryMpi })
}

/// Prints the steps in the order they run in.
fn list(steps: &[Step]) {
    for step in steps {
        println!("{:14}{}", step.name(), step.summary());
    }
}

fn run_steps(steps: Vec<Step>, wanted: Wanted) -> ExitCode {
    let mut rows = Vec::new();
    let mut mpis = Ok(Vec::new());
    if steps.iter().any(|step| step.needs_setup()) {
        let summary = "What the build needs is installed";
        rows.push(timed("setup", summary, || {
            mpis = setup::ensure(wanted);
            mpis.as_ref().map(|_| (StepOutcome::Ok, Heard::default())).map_err(Clone::clone)
        }));
    }
    for step in steps {
        rows.push(timed(&step.name(), &step.summary(), || match &mpis {
            Err(_) if step.needs_setup() => {
                Ok((StepOutcome::Skipped("setup failed".into()), Heard::default()))
            }
            Ok(mpis) => run_step(step, mpis),
            Err(_) => run_step(step, &[]),
        }));
    }

    println!("\n{}", report::table(&rows).trim_end());
    if rows.iter().any(|row| row.outcome == StepOutcome::Failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// How a step ended, with what was heard of the test runner, if it ran one.
type Ending = (StepOutcome, Heard);

fn run_step(step: Step, mpis: &[Mpi]) -> Result<Ending> {
    match step.work(mpis) {
        Work::Run(mut command) => {
            let (ok, heard) = report::run_and_listen(&mut command)?;
            Ok((if ok { StepOutcome::Ok } else { StepOutcome::Failed }, heard))
        }
        Work::Tidy => tidy::run().map(|()| (StepOutcome::Ok, Heard::default())),
        Work::Smoke(mpi) => smoke::run(&mpi).map(|()| (StepOutcome::Ok, Heard::default())),
        Work::Skip(why) => Ok((StepOutcome::Skipped(why), Heard::default())),
    }
}

/// Runs one step between its heading and its footing; a failure to run it is a failed step.
fn timed(step: &str, summary: &str, work: impl FnOnce() -> Result<Ending>) -> Row {
    report::heading(step, summary);
    let start = Instant::now();
    let (outcome, heard) = work().unwrap_or_else(|failure| {
        eprintln!("{failure}");
        let closing = vec![failure.to_string()];
        (StepOutcome::Failed, Heard { closing, ..Heard::default() })
    });
    let Heard { closing, slowest, .. } = heard;
    let row = Row { step: step.to_owned(), took: start.elapsed(), outcome, closing };
    report::footing(&row, &slowest);
    row
}
