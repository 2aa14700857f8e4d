//! Arrays on their way from one PE to another and back, in each way in which tasks send values to
//! each other; beside the same bytes by `MPI_Send` and `MPI_Recv`. A figure is half the time of a
//! round.

use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Portable, Result};

const ROUNDS: usize = 5;
const THERE: Pe = Pe::new(1);

/// In bytes, each with the goal: the most times as long as by MPI.
const SIZES: [(usize, Option<f64>); 5] =
    [(8, None), (4096, None), (64 << 10, Some(2.0)), (800_000, Some(1.5)), (8_000_000, Some(1.5))];

/// A batch takes a second at most.
const PATIENCE: Duration = Duration::from_mins(1);

/// A figure is the median of this number of batches, after one that warms up.
const BATCHES: usize = 51;

/// What is sent, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug, ValueEnum)]
enum Way {
    /// A `Vec<f64>` to a mailbox.
    Mailbox,
    /// A tuple with one to a mailbox.
    Tuple,
    /// A structure with one to a mailbox.
    Structure,
    /// A structure with three to a mailbox.
    Three,
    /// The argument of a message.
    Tell,
    /// The shared value of a message.
    TellWith,
}

#[derive(Serialize, Deserialize)]
struct Block {
    row: u32,
    name: String,
    values: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Rows {
    begins: Vec<f64>,
    columns: Vec<f64>,
    values: Vec<f64>,
}

/// Half a round, in microseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Half {
    way: Way,
    bytes: usize,
    micros: f64,
}

fn rounds(bytes: usize) -> u32 {
    (4_000_000 / bytes).clamp(2, 200) as u32
}

/// Measures all ways with all sizes.
pub(crate) async fn job(cx: &Context) -> Result<Vec<Half>> {
    needs_pes(cx, 2)?;
    let mut found = Vec::new();
    for (bytes, _) in SIZES {
        let values = vec![0.5; bytes / 8];
        let part = || vec![0.5; bytes / 24];
        for &way in Way::value_variants() {
            let micros = match way {
                Way::Mailbox => by_mail(cx, bytes, values.clone()).await?,
                Way::Tuple => by_mail(cx, bytes, (7_u32, values.clone())).await?,
                Way::Structure => {
                    let (name, values) = ("block".to_owned(), values.clone());
                    by_mail(cx, bytes, Block { row: 1, name, values }).await?
                }
                Way::Three => {
                    let [begins, columns, values] = [part(), part(), part()];
                    by_mail(cx, bytes, Rows { begins, columns, values }).await?
                }
                Way::Tell | Way::TellWith => by_message(cx, bytes, values.clone(), way).await?,
            };
            found.push(Half { way, bytes, micros });
        }
    }
    Ok(found)
}

/// Sends a value there and back, from one mailbox to the other.
async fn by_mail<T: Portable>(cx: &Context, bytes: usize, mut value: T) -> Result<f64> {
    let (key, rounds) = (cx.new_key(), rounds(bytes));
    let answer = async |cx: Context, (key, turns): (Key, usize)| {
        let mail = cx.mailbox::<T>(key);
        for _ in 0..turns {
            mail.send(Pe::ROOT, mail.receive(Pe::ROOT).await?)?;
        }
        Ok::<_, TaskError>(())
    };
    let turns = (BATCHES + 1) * rounds as usize;
    let answers = cx.spawn_at(THERE, answer, (key, turns));
    let mail = cx.mailbox::<T>(key);
    let mut batches = Batches::default();
    while batches.go_on(rounds) {
        for _ in 0..rounds {
            mail.send(THERE, value)?;
            value = mail.receive(THERE).await?;
        }
    }
    answers.await??;
    Ok(batches.median())
}

/// The same by messages: each is answered by the function that it calls.
async fn by_message(cx: &Context, bytes: usize, values: Vec<f64>, way: Way) -> Result<f64> {
    let (key, rounds) = (cx.new_key(), rounds(bytes));
    let mail = cx.mailbox::<()>(key);
    let mut batches = Batches::default();
    while batches.go_on(rounds) {
        // The last message leaves its value; the next batch begins with another.
        let (values, turns) = (values.clone(), 2 * rounds);
        match way {
            Way::Tell => pass_on(cx, (key, turns, values)),
            _ => pass_on_with(cx, (key, turns), Ok(Arc::new(values))),
        }
        cx.timeout(PATIENCE, mail.receive(cx.pe())).await??;
    }
    Ok(batches.median())
}

/// Sends the values on, as long as there are turns left, and then says so.
fn pass_on(cx: &Context, (key, left, values): (Key, u32, Vec<f64>)) {
    let other = Pe::new(1 - cx.pe().number());
    let _ = match left {
        0 => cx.mailbox(key).send(cx.pe(), ()),
        _ => cx.tell_fn(other, pass_on, (key, left - 1, values)),
    };
}

fn pass_on_with(
    cx: &Context,
    (key, left): (Key, u32),
    values: std::result::Result<Arc<Vec<f64>>, TaskError>,
) {
    let other = Pe::new(1 - cx.pe().number());
    let _ = match (left, values) {
        (1.., Ok(values)) => cx.tell_with(other, pass_on_with, (key, left - 1), values),
        _ => cx.mailbox(key).send(cx.pe(), ()),
    };
}

/// The times of batches of rounds.
#[derive(Default)]
struct Batches {
    began: Option<Instant>,
    halves: Vec<f64>,
}

impl Batches {
    /// A batch is over, unless this is the beginning. Whether there is to be another.
    fn go_on(&mut self, rounds: u32) -> bool {
        let taken = self.began.map(|began| began.elapsed().as_secs_f64());
        self.halves.extend(taken.map(|seconds| seconds * 1e6 / f64::from(2 * rounds)));
        self.began = Some(Instant::now());
        self.halves.len() <= BATCHES
    }

    /// Without the first, in microseconds.
    fn median(&self) -> f64 {
        self.halves.iter().skip(1).copied().collect::<Sample>().median()
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes = SIZES.map(|(bytes, _)| bytes.to_string()).join(" ");
    let mut mpi = bench.on(2, &bench.program("mpi_ping_pong", &sizes));
    let mut job = bench.on(2, &bench.child("--threads 1 mail"));
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        ours.push(launch::run(&mut job)?.json::<Vec<Half>>()?);
        theirs.push(launch::run(&mut mpi)?.json::<BTreeMap<usize, f64>>()?);
    }
    for (bytes, limit) in SIZES {
        let mpi = Sample::of(&theirs, |micros| micros[&bytes]);
        report.figure(&format!("{bytes} B: MPI_Send and MPI_Recv"), &mpi, Unit::MICROS);
        for &way in Way::value_variants() {
            let of = |found: &Vec<Half>| {
                let half = found.iter().find(|half| (half.way, half.bytes) == (way, bytes));
                half.map_or(f64::NAN, |half| half.micros)
            };
            let what = format!("{bytes} B: {}", format!("{way:?}").to_lowercase());
            let micros = Sample::of(&ours, of);
            report.figure(&what, &micros, Unit::MICROS);
            let goal = limit.map(Goal::AtMost);
            report.goal(&format!("{what}, over MPI"), &micros.over(&mpi), Unit::TIMES, goal);
        }
    }
    Ok(())
}
