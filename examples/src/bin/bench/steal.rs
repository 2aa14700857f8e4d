//! The time that a thief waits for a task. The job has two PEs of one thread; the root always has
//! short tasks, and gives them out one at a time.
//!
//! The thief gets them in memory, as PEs of one host do, or by messages (`steal_in_memory` is
//! false): both in turn, in one run.
//!
//! There are two clocks. The runtime's clock runs from the first look at the victim's memory, or
//! from sending a FISH, to having the task.
//! The thief's clock runs from the end of one stolen task to the start of the next, so it includes
//! sending the result and taking the next task from the queue.

use crate::child::{needs_pes, spin};
use crate::launch::{self, Bench};
use crate::sample::seconds_at;
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Histogram, Result};

const ROUNDS: usize = 3;
/// Lengths of the victim's tasks, in microseconds. The goal is for the first length, because a
/// victim answers between two tasks.
const TASK_MICROS: [u64; 3] = [1, 10, 100];
/// A job ends after this number of stolen tasks.
const STEALS: u64 = 100_000;
/// A job ends after this time at the latest.
const TIME: Duration = Duration::from_secs(4);
/// Each wave spawns tasks for this time.
const WAVE: Duration = Duration::from_millis(50);
/// The length of the histogram's longest bar, in characters.
const BAR: u64 = 40;

#[derive(Serialize, Deserialize)]
pub(crate) struct Measurements {
    stolen: u64,
    /// From the first look, or from sending a FISH, to having the task.
    schedule: Histogram,
    /// From the end of a stolen task to the start of the next.
    gap: Histogram,
}

impl Measurements {
    /// From the end of a stolen task to the start of the next, in seconds: this part takes no
    /// longer.
    pub(crate) fn task_to_task(&self, part: f64) -> f64 {
        seconds_at(&self.gap, part)
    }
}

/// How the thief gets tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Memory,
    Messages,
}

impl Way {
    const ALL: [Self; 2] = [Self::Memory, Self::Messages];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Messages => "by messages",
        }
    }
}

/// One of the two clocks.
type Clock = fn(&Measurements) -> &Histogram;

/// About the size of a FISH or a small SCHEDULE, in bytes.
const MESSAGE_BYTES: usize = 64;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut ping_pong = bench.on(2, &bench.program("mpi_ping_pong", &MESSAGE_BYTES.to_string()));
    for micros in TASK_MICROS {
        let (mut found, mut pings) = ([vec![], vec![]], Sample::new());
        for _ in 0..bench.rounds(ROUNDS) {
            for (way, found) in Way::ALL.into_iter().zip(&mut found) {
                found.push(run(bench, micros, way, "")?);
            }
            let micros = launch::run(&mut ping_pong)?.json::<BTreeMap<usize, f64>>()?;
            micros.values().for_each(|micros| pings.push(*micros));
        }
        report.figure("MPI's half round trip, 64 bytes", &pings, Unit::MICROS);
        for (way, found) in Way::ALL.into_iter().zip(&found) {
            report_way(report, micros, way, found, &pings);
        }
        let [memory, messages] =
            found.map(|found| Sample::of(&found, |found| found.task_to_task(0.5)));
        let what = format!("tasks of {micros} µs: task to task, p50, by messages over in memory");
        report.figure(&what, &messages.over(&memory), Unit::TIMES);
    }
    Ok(())
}

fn report_way(
    report: &mut Report,
    micros: u64,
    way: Way,
    found: &[Measurements],
    half_round_trips: &Sample,
) {
    let named = |what: &str| format!("tasks of {micros} µs, {}: {what}", way.name());
    let stolen = Sample::of(found, |found| found.stolen as f64);
    report.figure(&named("stolen"), &stolen, Unit::COUNT);
    let is_shortest = micros == TASK_MICROS[0];
    let first = match way {
        Way::Memory => "first look to task",
        Way::Messages => "FISH to SCHEDULE",
    };
    let clocks: [(&str, Clock); 2] =
        [(first, |found| &found.schedule), ("task to task", |found| &found.gap)];
    for (clock, of) in clocks {
        let quantile = |part| Sample::of(found, |found| 1e6 * seconds_at(of(found), part));
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let goal = (is_shortest && name == "p50").then_some(Goal::AtMost(10.0));
            let what = named(&format!("{clock}, {name}"));
            report.goal(&what, &quantile(part), Unit::MICROS, goal);
        }
        if way == Way::Messages {
            let what = named(&format!("{clock}, p50 in half round trips (mark: 4)"));
            report.figure(&what, &quantile(0.5).over(half_round_trips), Unit::TIMES);
        }
        if is_shortest {
            let mut all = Histogram::default();
            found.iter().for_each(|found| all.merge(of(found)));
            report.text(&drawn(&all));
        }
    }
}

/// Measures how much longer a thief waits while large values take the same path.
pub(crate) fn measure_beside_bulk(bench: &Bench, report: &mut Report) -> Result<()> {
    let [mut alone, mut beside] = [const { Sample::new() }; 2];
    for _ in 0..bench.rounds(ROUNDS) {
        for (flag, found) in [("", &mut alone), ("--beside-bulk", &mut beside)] {
            let run = run(bench, TASK_MICROS[0], Way::Messages, flag)?;
            found.push(1e6 * seconds_at(&run.schedule, 0.5));
        }
    }
    report.figure("FISH to SCHEDULE, p50, nothing beside", &alone, Unit::MICROS);
    report.figure("FISH to SCHEDULE, p50, values of 8 MiB beside", &beside, Unit::MICROS);
    let more = beside.with(&alone, |beside, alone| beside - alone);
    report.goal("what that is more", &more, Unit::MICROS, Goal::AtMost(20.0));
    Ok(())
}

/// A job of two PEs with tasks of this length.
pub(crate) fn run(bench: &Bench, micros: u64, way: Way, flag: &str) -> Result<Measurements> {
    let in_memory = way == Way::Memory;
    let set = format!("--set schedule_tasks_max=1 --set steal_in_memory={in_memory}");
    let flags = format!("--threads 1 {set} steal --micros {micros} {flag}");
    launch::run(&mut bench.on(2, &bench.child(&flags)))?.json()
}

/// The histogram as text, with a row for each power of two.
fn drawn(histogram: &Histogram) -> String {
    let mut powers = std::collections::BTreeMap::<u32, u64>::new();
    for (at, count) in histogram.rows() {
        *powers.entry((at.as_nanos() as u64).max(1).ilog2()).or_default() += count;
    }
    let largest = powers.values().max().copied().unwrap_or(1);
    let mut text = String::new();
    for (power, count) in powers {
        let micros = (1u64 << power) as f64 / 1e3;
        let bar = "#".repeat((count * BAR).div_ceil(largest) as usize);
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{micros:>10.2} µs and more {count:>8} {bar}");
    }
    text
}

/// Lets the second PE steal one task after another.
#[derive(clap::Args)]
pub(crate) struct Job {
    #[arg(long)]
    micros: u64,
    /// Meanwhile, send a value of 8 MiB to the second PE and back, again and again.
    #[arg(long)]
    beside_bulk: bool,
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Sends a large value to the second PE and back until the job is over. Returns the number of
/// trips.
async fn send_bulk(cx: Context, (): ()) -> u64 {
    let (mut sent, mut values) = (0, vec![1; 8 << 20]);
    while !IS_OVER.load(Ordering::Relaxed) {
        let task = cx.spawn_at(Pe::new(1), async |_, values: Vec<u8>| values, values);
        let Ok(returned) = task.await else { break };
        values = returned;
        sent += 1;
    }
    sent
}

/// The observations of this process as a thief.
static GAPS: Mutex<Option<Gaps>> = Mutex::new(None);

struct Gaps {
    last_end: Instant,
    histogram: Histogram,
}

/// Computes for this many microseconds.
fn short_task(micros: u64) {
    let start = Instant::now();
    spin(Duration::from_micros(micros));
    let end = Instant::now();
    match &mut *GAPS.lock().unwrap_or_else(PoisonError::into_inner) {
        none @ None => *none = Some(Gaps { last_end: end, histogram: Histogram::default() }),
        Some(gaps) => {
            gaps.histogram.record(start - gaps.last_end);
            gaps.last_end = end;
        }
    }
}

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Measurements> {
        needs_pes(cx, 2)?;
        let bulk = self.beside_bulk.then(|| cx.spawn(Distance::ZERO, send_bulk, ()));
        let wave = (WAVE.as_micros() as u64 / self.micros).clamp(1000, 20_000);
        let start = Instant::now();
        let (statistics, stolen) = loop {
            let spawn = |_| cx.spawn_fn(Distance::ONE, short_task, self.micros);
            for task in (0..wave).map(spawn).collect::<Vec<_>>() {
                task.await?;
            }
            let statistics = cx.statistics().await?;
            let stolen = statistics.by_distance.iter().map(|row| row.steals).sum();
            if stolen >= STEALS || start.elapsed() >= TIME {
                break (statistics, stolen);
            }
        };
        IS_OVER.store(true, Ordering::Relaxed);
        if let Some(bulk) = bulk
            && bulk.await? == 0
        {
            return Err(Error::other("no large value has gone"));
        }
        let gaps = async |_: Context, ()| {
            GAPS.lock().unwrap_or_else(PoisonError::into_inner).take().map(|gaps| gaps.histogram)
        };
        let gap = cx.spawn_at(Pe::new(1), gaps, ()).await?.unwrap_or_default();
        Ok(Measurements { stolen, schedule: statistics.steal_latency, gap })
    }
}
