//! Large values between two PEs of one thread each, over each lane; beside the same bytes by
//! `MPI_Send` and `MPI_Recv`, and by mpi4py.
//!
//! The time of a value is that from the request until its arrival, or from its departure until the
//! answer. Values are made in advance, except for those called `fresh`: these are allocated and
//! filled within the time.

use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit, steal};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

const ROUNDS: usize = 5;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/mpi4py_bulk.py");

/// The size for which the goals are.
const LARGE: usize = 8 << 20;
/// In bytes.
const SIZES: [usize; 7] =
    [1 << 10, 16 << 10, 64 << 10, 512 << 10, LARGE, 64 << 20, (256 << 20) - 4096];
/// Each size is repeated for this time, but at least this often.
const LASTING: Duration = Duration::from_millis(200);
const REPEATS_MIN: usize = 3;
const THERE: Pe = Pe::new(1);

/// A way to transfer a value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug, ValueEnum)]
enum Transfer {
    /// A `Vec<f64>`, as the result of a task.
    Result,
    /// A `Vec<f64>`, as the argument of a task.
    Argument,
    /// A `Vec<u8>`, as the result of a task.
    Octets,
    /// A `Vec<f64>` within a structure, as the result of a task.
    Inside,
    /// The same, with the field marked as plain data.
    Plain,
    /// A new `Vec<f64>` each time, as the result of a task.
    Fresh,
}

/// A lane between PEs, and how a job gets it.
struct LaneSetup {
    name: &'static str,
    /// Whether each PE is a process.
    by_launcher: bool,
    variables: &'static [(&'static str, &'static str)],
    goals: &'static [(Transfer, f64)],
}

const LANE_SETUPS: [LaneSetup; 3] = [
    LaneSetup {
        name: "mpi",
        by_launcher: true,
        variables: &[],
        goals: &[
            (Transfer::Result, 2.0),
            (Transfer::Argument, 2.0),
            (Transfer::Octets, 2.0),
            (Transfer::Inside, 0.7),
            (Transfer::Fresh, 1.2),
        ],
    },
    LaneSetup {
        name: "tcp",
        by_launcher: true,
        variables: &[("ULTRAMARINE_LANE", "tcp")],
        goals: &[(Transfer::Result, 1.2), (Transfer::Argument, 1.2)],
    },
    LaneSetup {
        name: "memory",
        by_launcher: false,
        variables: &[("ULTRAMARINE_PES", "2")],
        goals: &[(Transfer::Result, 4.0), (Transfer::Argument, 4.0)],
    },
];

/// The median rate of one size, in gigabytes (10^9 bytes) per second.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TransferRate {
    transfer: Transfer,
    bytes: usize,
    rate: f64,
}

/// The output of the programs to compare with: gigabytes per second by bytes.
type RatesBySize = BTreeMap<usize, f64>;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes = SIZES.map(|bytes| bytes.to_string());
    let mut mpi = bench.on(2, &bench.program("mpi_bulk", &sizes.join(" ")));
    let words: Vec<_> = std::iter::once(SCRIPT).chain(sizes.iter().map(String::as_str)).collect();
    let mut python = bench.script(&words, 2);
    let (mut ours, mut theirs, mut scripts) = (vec![vec![]; LANE_SETUPS.len()], vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        for (setup, found) in LANE_SETUPS.iter().zip(&mut ours) {
            found.push(setup.run(bench)?);
        }
        theirs.push(launch::run(&mut mpi)?.json::<RatesBySize>()?);
        scripts.extend(report.other::<RatesBySize>("mpi4py", &mut python));
    }
    let unit = Unit::GIGABYTES_PER_SECOND;
    for bytes in SIZES {
        let mpi = Sample::of(&theirs, |rates| rates[&bytes]);
        report.figure(&format!("{}: MPI_Send and MPI_Recv", shown(bytes)), &mpi, unit);
        if python.is_some() {
            let rates = Sample::of(&scripts, |rates| rates[&bytes]);
            report.figure(&format!("{}: mpi4py, numpy", shown(bytes)), &rates, unit);
        }
        for (setup, found) in LANE_SETUPS.iter().zip(&ours) {
            setup.report(report, bytes, found, &mpi);
        }
    }
    steal::measure_beside_bulk(bench, report)
}

fn shown(bytes: usize) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

impl LaneSetup {
    fn run(&self, bench: &Bench) -> Result<Vec<TransferRate>> {
        let mut job = bench.child("--threads 1 bulk");
        if self.by_launcher {
            job = bench.on(2, &job);
        }
        job.envs(self.variables.iter().copied());
        launch::run(&mut job)?.json()
    }

    fn report(&self, report: &mut Report, bytes: usize, found: &[Vec<TransferRate>], mpi: &Sample) {
        for &transfer in Transfer::value_variants() {
            let is_it = |row: &&TransferRate| row.transfer == transfer && row.bytes == bytes;
            let rate = |rows: &Vec<TransferRate>| rows.iter().find(is_it).map(|row| row.rate);
            let rates: Sample = found.iter().filter_map(rate).collect();
            let name = format!("{transfer:?}").to_lowercase();
            let what = format!("{}: {}, {name}", shown(bytes), self.name);
            let goal = self.goals.iter().find(|goal| bytes == LARGE && goal.0 == transfer);
            let goal = goal.map(|(_, goal)| Goal::AtLeast(*goal));
            report.goal(&what, &rates, Unit::GIGABYTES_PER_SECOND, goal);
            let is_compared = matches!(transfer, Transfer::Result | Transfer::Argument);
            if self.name == "mpi" && bytes == LARGE && is_compared {
                let share = rates.with(mpi, |ours, theirs| 100.0 * ours / theirs);
                let what = format!("{what}, of MPI's");
                report.goal(&what, &share, Unit::PERCENT, Goal::AtLeast(40.0));
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Structure {
    name: String,
    values: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct PlainStructure {
    name: String,
    #[serde(with = "ultramarine::plain")]
    values: Vec<f64>,
}

/// The value that the next task on this PE returns.
static NUMBERS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static OCTETS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn numbers(bytes: usize) -> Vec<f64> {
    (0..bytes / size_of::<f64>()).map(|n| n as f64).collect()
}

/// Makes the value that the next task on this PE returns.
fn make((transfer, bytes): (Transfer, usize)) {
    match transfer {
        Transfer::Octets => *locked(&OCTETS) = vec![7; bytes],
        _ => *locked(&NUMBERS) = numbers(bytes),
    }
}

fn made_numbers() -> Vec<f64> {
    take(&mut *locked(&NUMBERS))
}

/// The seconds that the transfer of one value takes.
async fn once(cx: &Context, transfer: Transfer, bytes: usize) -> Result<f64> {
    if matches!(transfer, Transfer::Result | Transfer::Octets | Transfer::Inside | Transfer::Plain)
    {
        cx.spawn_at(THERE, async |_, made| make(made), (transfer, bytes)).await?;
    }
    let argument = if transfer == Transfer::Argument { numbers(bytes) } else { Vec::new() };
    let start = Instant::now();
    let arrived = match transfer {
        Transfer::Result => {
            let task = cx.spawn_at(THERE, async |_, ()| made_numbers(), ());
            size_of_val(&*black_box(task.await?))
        }
        Transfer::Octets => {
            let task = cx.spawn_at(THERE, async |_, ()| take(&mut *locked(&OCTETS)), ());
            black_box(task.await?).len()
        }
        Transfer::Inside => {
            let made =
                async |_, ()| Structure { name: "values".to_owned(), values: made_numbers() };
            let task = cx.spawn_at(THERE, made, ());
            size_of_val(&*black_box(task.await?.values))
        }
        Transfer::Plain => {
            let made =
                async |_, ()| PlainStructure { name: "values".to_owned(), values: made_numbers() };
            let task = cx.spawn_at(THERE, made, ());
            size_of_val(&*black_box(task.await?.values))
        }
        Transfer::Fresh => {
            let task = cx.spawn_at(THERE, async |_, bytes| numbers(bytes), bytes);
            size_of_val(&*black_box(task.await?))
        }
        Transfer::Argument => {
            let length = async |_, numbers: Vec<f64>| size_of_val(&*black_box(numbers));
            cx.spawn_at(THERE, length, argument).await?
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    if arrived == bytes / 8 * 8 {
        Ok(seconds)
    } else {
        Err(Error::other(format!("{arrived} of {bytes} bytes have arrived")))
    }
}

/// Transfers values of all sizes between the root and the other PE, in all ways.
pub(crate) async fn job(cx: &Context) -> Result<Vec<TransferRate>> {
    needs_pes(cx, 2)?;
    let mut rows = Vec::new();
    for bytes in SIZES {
        for &transfer in Transfer::value_variants() {
            once(cx, transfer, bytes).await?;
            let (start, mut rates) = (Instant::now(), Sample::new());
            while rates.len() < REPEATS_MIN || start.elapsed() < LASTING {
                rates.push(bytes as f64 / 1e9 / once(cx, transfer, bytes).await?);
            }
            rows.push(TransferRate { transfer, bytes, rate: rates.median() });
        }
    }
    Ok(rows)
}
