//! Programs in supersteps beside plain MPI: the least superstep beside `MPI_Barrier`, conjugate
//! gradients with and without checkpoints, and what a checkpoint costs beside a copy.

use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, bsp};

const ROUNDS: usize = 5;
const PES: u32 = 2;
/// Supersteps of a batch, whose time counts, and of all.
const BATCH: u64 = 2000;
const SUPERSTEPS: u64 = 22 * BATCH;
const SOLVED: &str = "--laplacian 700 --iterations 400";
/// The length of a rank's state where checkpoints are measured, in bytes, and how many there are.
const STATE_BYTES: usize = 100_000_000;
const STEPS: u64 = 20;
const SAVES: u64 = 4;

/// What is measured, in microseconds a superstep, and in seconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Times {
    micros: f64,
    /// Supersteps with a large state, without and with checkpoints.
    plain: f64,
    saved: f64,
    /// A copy of that state to the other PE.
    copy: f64,
}

/// It does nothing, but for noting the time.
#[derive(Serialize, Deserialize)]
struct Empty {
    #[serde(skip)]
    since: Option<Instant>,
    micros: Vec<f64>,
}

impl Program for Empty {
    type Argument = ();
    type Stage = ();
    type Message = ();
    type Output = f64;

    fn new(_: &Start, (): &()) -> Self {
        Empty { since: None, micros: Vec::new() }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        if comm.superstep().is_multiple_of(BATCH) {
            let since = self.since.replace(Instant::now());
            let seconds = since.map(|since| since.elapsed().as_secs_f64());
            self.micros.extend(seconds.map(|seconds| seconds * 1e6 / BATCH as f64));
        }
        if comm.superstep() < SUPERSTEPS {
            return Next::Stage(());
        }
        self.micros.sort_by(f64::total_cmp);
        Next::End(self.micros[self.micros.len() / 2])
    }
}

/// It has a large state, and does a little with it.
#[derive(Serialize, Deserialize)]
struct Large(Vec<f64>);

impl Program for Large {
    type Argument = u64;
    type Stage = ();
    type Message = ();
    type Output = ();

    fn new(_: &Start, _: &u64) -> Self {
        Large(vec![1.0; STATE_BYTES / 8])
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        self.0.iter_mut().for_each(|number| *number = (*number + 1.0).sqrt());
        if comm.superstep() == STEPS { Next::End(()) } else { Next::Stage(()) }
    }
}

pub(crate) async fn job(cx: &Context) -> Result<Times> {
    needs_pes(cx, PES)?;
    let micros = bsp::<Empty>(()).run(cx).await?[0];
    let start = Instant::now();
    bsp::<Large>(0).run(cx).await?;
    let plain = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let every = NonZeroU64::new(STEPS / SAVES).expect("it is not 0");
    bsp::<Large>(1).checkpoint_every(every).run(cx).await?;
    let saved = start.elapsed().as_secs_f64();
    let mut copy = Sample::new();
    for _ in 0..5 {
        let numbers = vec![1.0; STATE_BYTES / 8];
        let start = Instant::now();
        let keep = async |_: Context, numbers: Vec<f64>| numbers.len();
        cx.spawn_at(Pe::new(1), keep, numbers).await?;
        copy.push(start.elapsed().as_secs_f64());
    }
    Ok(Times { micros, plain, saved, copy: copy.median() })
}

#[derive(Deserialize)]
struct Barrier {
    micros: f64,
}

#[derive(Deserialize)]
struct Solved {
    seconds: f64,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut barrier = bench.on(PES, &bench.program("mpi_barrier", ""));
    let mut job = bench.on(PES, &bench.child("--threads 1 bsp"));
    let (mut barriers, mut found) = (Sample::new(), vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        barriers.push(launch::run(&mut barrier)?.json::<Barrier>()?.micros);
        found.push(launch::run(&mut job)?.json::<Times>()?);
    }
    let micros = Sample::of(&found, |times| times.micros);
    report.figure("MPI_Barrier", &barriers, Unit::MICROS);
    report.figure("a superstep in which nothing is done", &micros, Unit::MICROS);
    let beyond = micros.with(&barriers, |ours, barrier| ours - 3.0 * barrier);
    let goal = Some(Goal::AtMost(2.0));
    report.goal("beyond three times MPI_Barrier", &beyond, Unit::MICROS, goal);
    let cost = Sample::of(&found, |times| (times.saved - times.plain) / SAVES as f64);
    let copy = Sample::of(&found, |times| times.copy);
    report.figure("a checkpoint of 100 MB a PE", &cost, Unit::SECONDS);
    report.figure("a copy of 100 MB to another PE", &copy, Unit::SECONDS);
    let goal = Some(Goal::AtMost(2.0));
    report.goal("a checkpoint, over a copy", &cost.over(&copy), Unit::TIMES, goal);

    let mut twin = bench.on(PES, &bench.program("conjugate_gradient_mpi", SOLVED));
    let ours = |rest: &str| {
        let flags = format!("{SOLVED} --ranks 2 --threads 1 --json {rest}");
        bench.on(PES, &bench.program("conjugate_gradient", &flags))
    };
    let (mut plain, mut saved) = (ours(""), ours("--checkpoint-every 120"));
    let [mut theirs, mut without, mut with] = [(); 3].map(|()| Sample::new());
    for _ in 0..bench.rounds(ROUNDS) {
        theirs.push(launch::run(&mut twin)?.json::<Solved>()?.seconds);
        without.push(launch::run(&mut plain)?.json::<Solved>()?.seconds);
        with.push(launch::run(&mut saved)?.json::<Solved>()?.seconds);
    }
    report.figure("conjugate gradients, MPI by hand", &theirs, Unit::SECONDS);
    report.figure("conjugate gradients, 2 PEs", &without, Unit::SECONDS);
    report.figure("… with ten checkpoints", &with, Unit::SECONDS);
    let goal = Some(Goal::AtMost(1.05));
    report.goal("2 PEs, over MPI by hand", &without.over(&theirs), Unit::TIMES, goal);
    report.figure("with checkpoints, over MPI by hand", &with.over(&theirs), Unit::TIMES);
    Ok(())
}
