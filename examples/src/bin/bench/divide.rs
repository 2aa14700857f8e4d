//! Divide and conquer without a threshold, so that it only divides: the program `fibonacci`,
//! against `rayon::join` and `chili` in turn in the same process, and on two PEs.

use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::num::NonZero;
use std::process::Command;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};
use ultramarine_examples::Solvers;
use ultramarine_examples::programs::fibonacci::{Problem, sequential, solvers, with_rayon};

const ROUNDS: usize = 7;
const N: u32 = 34;
const RESULT: u64 = 5_702_887;
/// The number of divisions: one less than the number of leaves, which is F(N + 1).
const DIVISIONS: f64 = 9_227_464.0;

/// Nanoseconds per division, one figure for each round.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Measurements {
    plain: Sample,
    join: Sample,
    chili: Sample,
    fork: Sample,
    par: Sample,
    supervised: Sample,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for threads in [1, 2] {
        let named = |what: &str| format!("1 PE x {threads}: {what}");
        let alone = bench.child(&format!("--pes 1 --threads {threads} divide"));
        let found = run(bench, alone)?;
        report.figure(&named("a plain recursion, a division"), &found.plain, Unit::NANOS);
        report.figure(&named("rayon::join"), &found.join, Unit::NANOS);
        report.figure(&named("chili"), &found.chili, Unit::NANOS);
        report.figure(&named("fork_divide_and_conquer"), &found.fork, Unit::NANOS);
        let (what, over) = (named("fork over rayon::join"), found.fork.over(&found.join));
        report.goal(&what, &over, Unit::TIMES, Goal::AtMost(1.5));
        for (what, par) in [("par", &found.par), ("supervised", &found.supervised)] {
            report.figure(&named(what), par, Unit::NANOS);
            let over = |twin: &str| named(&format!("{what} over {twin}"));
            let chili = par.over(&found.chili);
            report.goal(&over("chili"), &chili, Unit::TIMES, Goal::AtMost(1.3));
            let rayon = par.over(&found.join);
            report.goal(&over("rayon::join"), &rayon, Unit::TIMES, Goal::AtMost(0.6));
        }
    }
    let two_threads = || -> Result<f64> {
        let job = bench.child("--pes 1 --threads 2 divide --only-par");
        Ok(run(bench, job)?.par.median())
    };
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
    let [mut one, mut two, mut threads, mut apart] = [const { Sample::new() }; 4];
    // In turn, so that faster and slower moments of the machine affect all alike.
    for _ in 0..bench.rounds(ROUNDS) {
        one.push(on(1)?);
        two.push(on(2)?);
        threads.push(two_threads()?);
        apart.push(two_jobs()?);
    }
    report.figure("2 PEs x 1: par", &two, Unit::NANOS);
    let over = two.over(&threads);
    report.goal("2 PEs over 2 threads", &over, Unit::TIMES, Goal::AtMost(1.2));
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

fn with_chili(scope: &mut chili::Scope<'_>, problem: Problem) -> u64 {
    if problem.is_trivial() {
        return sequential(problem);
    }
    let [one_less, two_less] = problem.parts();
    let (a, b) =
        scope.join(|scope| with_chili(scope, one_less), |scope| with_chili(scope, two_less));
    a + b
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        let mut found = Measurements::default();
        let Solvers { algorithm, stolen_within: radius, .. } = solvers();
        let problem = || black_box(Problem::new(N, 0));
        let threads = NonZero::new(cx.threads());
        let chili = chili::ThreadPool::with_config(chili::Config {
            thread_count: threads,
            ..Default::default()
        });
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
                lap(sequential(problem()), &mut found.plain)?;
                lap(with_rayon(problem()), &mut found.join)?;
                lap(with_chili(&mut chili.scope(), problem()), &mut found.chili)?;
                lap(fork_divide_and_conquer(algorithm, problem()), &mut found.fork)?;
            }
            let result = par_divide_and_conquer(cx, radius, algorithm, problem()).await?;
            lap(result, &mut found.par)?;
            let cx = cx.supervised();
            let result = par_divide_and_conquer(&cx, radius, algorithm, problem()).await?;
            lap(result, &mut found.supervised)?;
        }
        Ok(found)
    }
}
