//! Divide and conquer without a threshold, so that it only divides: Fibonacci numbers by the naive
//! recursion, against `rayon::join` in turn in the same process, and on two PEs.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 7;
const N: u64 = 32;
const RESULT: u64 = 2_178_309;
/// The number of divisions: one less than the number of leaves, which is F(N + 1).
const DIVISIONS: f64 = 3_524_577.0;

/// Nanoseconds per division, one figure for each round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    join: Vec<f64>,
    fork: Vec<f64>,
    par: Vec<f64>,
    supervised: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
    for threads in ["1", "2"] {
        let named = |what: &str| format!("1 PE x {threads}: {what}");
        let mut alone = bench.launcher.child();
        alone.args(["--pes", "1", "--threads", threads, "divide"]);
        let Some(found) = report.accept(&named("F(32)"), run(bench, alone)) else { return };
        let (join, fork) = (sample(&found.join), sample(&found.fork));
        report.figure(&named("rayon::join, a division"), &join, Unit::NANOS);
        report.figure(&named("fork_divide_and_conquer"), &fork, Unit::NANOS);
        let what = named("fork over rayon::join");
        report.goal(&what, &fork.over(&join), Unit::TIMES, Goal::AtMost(1.5));
        let par = sample(&found.par);
        if threads == "1" {
            let what = named("par_divide_and_conquer");
            report.goal(&what, &par, Unit::NANOS, Goal::AtMost(40.0));
        } else {
            report.figure(&named("par_divide_and_conquer"), &par, Unit::NANOS);
        }
        report.figure(&named("supervised"), &sample(&found.supervised), Unit::NANOS);
    }
    let on = |pes: u32| {
        let mut job = bench.launcher.child();
        job.args(["--threads", "1", "divide", "--only-par"]);
        Ok(sample(&run(bench, bench.launcher.launched(pes, &job))?.par).median())
    };
    // Two independent jobs show how much the second core adds.
    let two_jobs = || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| on(1));
            let own = on(1)?;
            Ok(own.midpoint(other.join().expect("it reports failures")?))
        })
    };
    // In turn, so that faster and slower moments of the machine affect all alike.
    let rounds = (0..bench.rounds(ROUNDS))
        .map(|_| Ok((on(1)?, (on(2)?, two_jobs()?))))
        .collect::<Result<Vec<_>, LaunchError>>();
    let Some(rounds) = report.accept("1 and 2 PEs", rounds) else { return };
    let (one, (two, apart)): (Vec<_>, (Vec<_>, Vec<_>)) = rounds.into_iter().unzip();
    let (one, two, apart) = (sample(&one), sample(&two), sample(&apart));
    let what = "2 PEs x 1: par_divide_and_conquer";
    report.goal(what, &two, Unit::NANOS, Goal::AtMost(21.0));
    report.goal("2 PEs are faster than 1", &one.over(&two), Unit::TIMES, Goal::AtLeast(1.8));
    let most = one.with(&apart, |one, apart| 2.0 * one / apart);
    report.figure("2 jobs of 1 PE at once divide faster than 1", &most, Unit::TIMES);
}

fn run(bench: &Bench, mut job: Command) -> Result<Measurements, LaunchError> {
    job.arg("--rounds").arg(bench.rounds(ROUNDS).to_string());
    launch::run(&mut job)?.json()
}

#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    rounds: usize,
    /// Leave out the measurements of a single PE. During these, other PEs would rest, and look for
    /// work only seldom.
    #[arg(long)]
    only_par: bool,
}

fn join(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one_less, two_less) = rayon::join(|| join(n - 1), || join(n - 2));
    one_less + two_less
}

fn fibonacci() -> impl Algorithm<Problem = u64, Solution = u64> {
    DivideAndConquer::new(
        |n: &u64| *n < 2,
        |n| n,
        |n| [n - 1, n - 2],
        |_, [one_less, two_less]| one_less + two_less,
    )
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let mut found =
            Measurements { join: vec![], fork: vec![], par: vec![], supervised: vec![] };
        let anywhere = |_: &u64| Distance::ONE;
        // The first round warms up.
        for round in 0..=self.rounds {
            let mut start = Instant::now();
            let mut lap = |result: u64, laps: &mut Vec<f64>| {
                let nanos = start.elapsed().as_nanos() as f64 / DIVISIONS;
                if round > 0 {
                    laps.push(nanos);
                }
                start = Instant::now();
                if result == RESULT {
                    Ok(())
                } else {
                    Err(Error::other(format!("F({N}) = {result}")))
                }
            };
            if !self.only_par {
                lap(join(black_box(N)), &mut found.join)?;
                lap(fork_divide_and_conquer(fibonacci(), black_box(N)), &mut found.fork)?;
            }
            lap(par_divide_and_conquer(cx, anywhere, fibonacci(), N).await?, &mut found.par)?;
            let supervised = cx.supervised();
            let result = par_divide_and_conquer(&supervised, anywhere, fibonacci(), N).await?;
            lap(result, &mut found.supervised)?;
        }
        Ok(found)
    }
}
