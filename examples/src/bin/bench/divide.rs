//! Divide and conquer without a threshold, so that it only divides: Fibonacci numbers by the naive
//! recursion, against `rayon::join` in turn in the same process, and on two PEs.

use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
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
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Measurements {
    join: Sample,
    fork: Sample,
    par: Sample,
    supervised: Sample,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for threads in [1, 2] {
        let named = |what: &str| format!("1 PE x {threads}: {what}");
        let alone = bench.child(&format!("--pes 1 --threads {threads} divide"));
        let found = run(bench, alone)?;
        report.figure(&named("rayon::join, a division"), &found.join, Unit::NANOS);
        report.figure(&named("fork_divide_and_conquer"), &found.fork, Unit::NANOS);
        let (what, over) = (named("fork over rayon::join"), found.fork.over(&found.join));
        report.goal(&what, &over, Unit::TIMES, Goal::AtMost(1.5));
        let goal = (threads == 1).then_some(Goal::AtMost(40.0));
        report.goal(&named("par_divide_and_conquer"), &found.par, Unit::NANOS, goal);
        report.figure(&named("supervised"), &found.supervised, Unit::NANOS);
    }
    let on = |pes: u32| -> Result<f64> {
        let job = bench.child("--threads 1 divide --only-par");
        Ok(run(bench, bench.on(pes, &job))?.par.median())
    };
    // Two independent jobs show how much the second core adds.
    let two_jobs = || -> Result<f64> {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| on(1));
            let own = on(1)?;
            Ok(own.midpoint(other.join().expect("it reports failures")?))
        })
    };
    let [mut one, mut two, mut apart] = [const { Sample::new() }; 3];
    // In turn, so that faster and slower moments of the machine affect all alike.
    for _ in 0..bench.rounds(ROUNDS) {
        one.push(on(1)?);
        two.push(on(2)?);
        apart.push(two_jobs()?);
    }
    let what = "2 PEs x 1: par_divide_and_conquer";
    report.goal(what, &two, Unit::NANOS, Goal::AtMost(21.0));
    report.goal("2 PEs are faster than 1", &one.over(&two), Unit::TIMES, Goal::AtLeast(1.8));
    let most = one.with(&apart, |one, apart| 2.0 * one / apart);
    report.figure("2 jobs of 1 PE at once divide faster than 1", &most, Unit::TIMES);
    Ok(())
}

fn run(bench: &Bench, mut job: Command) -> Result<Measurements> {
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
        let mut found = Measurements::default();
        let anywhere = |_: &u64| Distance::ONE;
        // The first round warms up.
        for round in 0..=self.rounds {
            let mut start = Instant::now();
            let mut lap = |result: u64, laps: &mut Sample| {
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
