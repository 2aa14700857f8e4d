//! `cargo xtask test`: every step one after the other, whatever becomes of those before, and a
//! failure at the end if any failed.

use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;

use crate::mpi::Mpi;
use crate::process::Result;
use crate::report::{self, Outcome, Row};
use crate::setup::{self, Wanted};
use crate::step::{Step, Work};
use crate::tidy;

/// Prints the steps in the order they run in.
pub(crate) fn list() {
    for step in Step::value_variants() {
        println!("{:14}{}", step.name(), step.summary());
    }
}

/// Runs the steps in `only`, or all if it is empty.
pub(crate) fn run(only: &[Step]) -> ExitCode {
    let all = Step::value_variants().iter().copied();
    let steps: Vec<_> = all.filter(|step| only.is_empty() || only.contains(step)).collect();

    let mut rows = Vec::new();
    let mut mpis = Ok(Vec::new());
    if steps.iter().any(|step| step.needs_setup()) {
        let summary = "What the build needs is installed";
        rows.push(timed("setup", summary, || {
            mpis = setup::ensure(Wanted::EveryMpi);
            mpis.as_ref().map(|_| (Outcome::Ok, Vec::new())).map_err(Clone::clone)
        }));
    }
    for step in steps {
        rows.push(timed(&step.name(), &step.summary(), || match &mpis {
            Err(_) if step.needs_setup() => {
                Ok((Outcome::Skipped("setup failed".into()), Vec::new()))
            }
            Ok(mpis) => run_step(step, mpis),
            Err(_) => run_step(step, &[]),
        }));
    }

    println!("\n{}", report::table(&rows).trim_end());
    if rows.iter().any(|row| row.outcome == Outcome::Failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// How a step ended, with the closing lines of the test runner, if it ran one.
type Ending = (Outcome, Vec<String>);

fn run_step(step: Step, mpis: &[Mpi]) -> Result<Ending> {
    match step.work(mpis) {
        Work::Run(mut command) => {
            let (ok, closing) = report::run_and_listen(&mut command)?;
            Ok((if ok { Outcome::Ok } else { Outcome::Failed }, closing))
        }
        Work::Tidy => tidy::run().map(|()| (Outcome::Ok, Vec::new())),
        Work::Skip(why) => Ok((Outcome::Skipped(why), Vec::new())),
    }
}

/// Runs one step between its heading and its footing; a failure to run it is a failed step.
fn timed(step: &str, summary: &str, work: impl FnOnce() -> Result<Ending>) -> Row {
    report::heading(step, summary);
    let start = Instant::now();
    let (outcome, closing) = work().unwrap_or_else(|failure| {
        eprintln!("{failure}");
        (Outcome::Failed, Vec::new())
    });
    let row = Row { step: step.to_owned(), took: start.elapsed(), outcome, closing };
    report::footing(&row);
    row
}
