//! What a checkpoint in the memory of a partner costs, by the size of a PE's state, beside a copy
//! of as many bytes.
//!
//! All supersteps compute the same, and a checkpoint makes one or two of them longer. So its cost
//! is the time of those until the next one, less that of as many usual ones.
//!
//! A PE has memory for two checkpoints, one of which is made while the other counts. So the first
//! two, whose memory is new, are shown apart, beside the first copy of a job, whose memory is new,
//! too.

use super::{PES, ROUNDS};
use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Instant;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, bsp};

const MEGABYTES: [usize; 3] = [1, 10, LARGEST];
const LARGEST: usize = 100;
/// Supersteps from one checkpoint to the next, and the number of checkpoints.
const EVERY: NonZeroU64 = NonZeroU64::new(10).expect("it is not 0");
const CHECKPOINTS: u64 = 7;
const COPIES: usize = 5;

/// Takes checkpoints of a state of this size.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    bytes: usize,
    /// Copies only.
    #[arg(long)]
    copies: bool,
}

/// Seconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Times {
    /// What the checkpoints cost, in their order.
    checkpoints: Sample,
    /// Copies of the state to a task of the other PE, in their order.
    copies: Sample,
}

/// It has a large state, and does a little with it.
#[derive(Serialize, Deserialize)]
struct Large {
    numbers: Vec<f64>,
    /// When the supersteps began.
    #[serde(skip)]
    begun: Vec<Instant>,
}

impl Program for Large {
    type Argument = usize;
    type Stage = ();
    type Message = ();
    /// The seconds that the supersteps took.
    type Output = Vec<f64>;

    fn new(_: &Start, bytes: &usize) -> Self {
        Large { numbers: vec![1.0; bytes / 8], begun: Vec::new() }
    }

    fn step(&mut self, (): (), comm: &mut Comm<Self>) -> Next<Self> {
        self.begun.push(Instant::now());
        if comm.superstep() < (CHECKPOINTS + 1) * EVERY.get() - 1 {
            self.numbers.iter_mut().for_each(|number| *number = (*number + 1.0).sqrt());
            return Next::Stage(());
        }
        let took = |pair: &[Instant]| (pair[1] - pair[0]).as_secs_f64();
        Next::End(self.begun.windows(2).map(took).collect())
    }
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Times> {
        needs_pes(cx, PES)?;
        if self.copies {
            return Ok(Times { checkpoints: Sample::new(), copies: self.copy(cx).await? });
        }
        let outputs = bsp::<Large>(self.bytes).checkpoint_every(EVERY).run(cx).await?;
        // States are encoded once the step before has been taken, and belong to its time.
        let intervals = outputs[0][EVERY.get() as usize - 1..].chunks_exact(EVERY.get() as usize);
        let cost = |interval: &[f64]| {
            let usual = Sample::of(interval, |seconds| *seconds).median();
            interval.iter().map(|seconds| seconds - usual).sum()
        };
        let checkpoints = intervals.map(cost).collect();
        Ok(Times { checkpoints, copies: self.copy(cx).await? })
    }

    async fn copy(&self, cx: &Context) -> Result<Sample> {
        let mut copies = Sample::new();
        for _ in 0..COPIES {
            let numbers = vec![1.0; self.bytes / 8];
            let start = Instant::now();
            let keep = async |_: Context, numbers: Vec<f64>| numbers.len();
            cx.spawn_at(Pe::new(1), keep, numbers).await?;
            copies.push(start.elapsed().as_secs_f64());
        }
        Ok(copies)
    }
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for megabytes in MEGABYTES {
        let bytes = megabytes * 1_000_000;
        let job = |flags| format!("--threads 1 checkpoint --bytes {bytes} {flags}");
        let [mut job, mut copies] =
            ["", "--copies"].map(|flags| bench.on(PES, &bench.child(&job(flags))));
        let mut mpi = bench.on(PES, &bench.program("mpi_bulk", &bytes.to_string()));
        let (mut found, mut first_copy, mut mpi_copy) = (vec![], Sample::new(), Sample::new());
        for _ in 0..bench.rounds(ROUNDS) {
            found.push(launch::run(&mut job)?.json::<Times>()?);
            let copies = launch::run(&mut copies)?.json::<Times>()?.copies;
            first_copy.push(copies.values().next().unwrap_or(f64::NAN) * 1e3);
            // Gigabytes a second, by size.
            let rates: BTreeMap<usize, f64> = launch::run(&mut mpi)?.json()?;
            mpi_copy.push(bytes as f64 / 1e6 / rates[&bytes]);
        }
        let millis = |of: &dyn Fn(&Times) -> f64| Sample::of(&found, |times| of(times) * 1e3);
        let nth = |n: usize| millis(&|times| times.checkpoints.values().nth(n).unwrap_or(f64::NAN));
        let later = |times: &Times| times.checkpoints.values().skip(2).collect::<Sample>().median();
        let (later, copy) = (millis(&later), millis(&|times| times.copies.median()));
        let of = format!("{megabytes} MB a PE");
        report.figure(&format!("the first checkpoint of {of}"), &nth(0), Unit::MILLIS);
        report.figure(&format!("the second checkpoint of {of}"), &nth(1), Unit::MILLIS);
        report.figure(&format!("a later checkpoint of {of}"), &later, Unit::MILLIS);
        let what = format!("the first copy of {megabytes} MB to another PE");
        report.figure(&what, &first_copy, Unit::MILLIS);
        report.figure(&format!("a copy of {megabytes} MB to another PE"), &copy, Unit::MILLIS);
        report.figure("… by MPI, into memory used before", &mpi_copy, Unit::MILLIS);
        let what = format!("the first checkpoint of {of}, over the first copy");
        report.goal(&what, &nth(0).over(&first_copy), Unit::TIMES, None);
        let goal = (megabytes == LARGEST).then_some(Goal::AtMost(2.0));
        let what = format!("a later checkpoint of {of}, over a copy");
        report.goal(&what, &later.over(&copy), Unit::TIMES, goal);
    }
    Ok(())
}
