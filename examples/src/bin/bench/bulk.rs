//! Large values between two PEs of one thread each, over each lane; beside the same bytes by
//! `MPI_Send` and `MPI_Recv`, and by mpi4py.
//!
//! The time of a value is that from the request until its arrival, or from its departure until the
//! answer. Values are made in advance, except for those called `fresh`: these are allocated and
//! filled within the time.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use crate::steal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
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
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug, clap::ValueEnum,
)]
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

const TRANSFERS: [Transfer; 6] = [
    Transfer::Result,
    Transfer::Argument,
    Transfer::Octets,
    Transfer::Inside,
    Transfer::Plain,
    Transfer::Fresh,
];

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

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let mut twin = bench.launcher.launched(2, &with_sizes(bench.launcher.sibling("mpi_bulk")));
    let mut python = bench.python.as_deref().map(|python| {
        let mut script = Command::new(python);
        script.arg(SCRIPT);
        bench.launcher.launched(2, &with_sizes(script))
    });
    let (mut ours, mut theirs, mut scripts) = (vec![vec![]; LANE_SETUPS.len()], vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        for (setup, found) in LANE_SETUPS.iter().zip(&mut ours) {
            let Some(rows) = report.accept(setup.name, setup.run(bench)) else { return };
            found.push(rows);
        }
        let rates = launch::run(&mut twin).and_then(|done| done.json::<RatesBySize>());
        let Some(rates) = report.accept("MPI_Send and MPI_Recv", rates) else { return };
        theirs.push(rates);
        if let Some(command) = &mut python {
            match report.accept("mpi4py", launch::run(command).and_then(|done| done.json())) {
                Some(rates) => scripts.push(rates),
                None => python = None,
            }
        }
    }
    let of =
        |rates: &[RatesBySize], bytes| rates.iter().map(|rates| rates[&bytes]).collect::<Sample>();
    for bytes in SIZES {
        let named = |who: &str| format!("{}: {who}", shown(bytes));
        let mpi = of(&theirs, bytes);
        report.figure(&named("MPI_Send and MPI_Recv"), &mpi, Unit::GIGABYTES_PER_SECOND);
        if python.is_some() {
            let rates = of(&scripts, bytes);
            report.figure(&named("mpi4py, numpy"), &rates, Unit::GIGABYTES_PER_SECOND);
        }
        for (setup, found) in LANE_SETUPS.iter().zip(&ours) {
            setup.report(report, bytes, found, &mpi);
        }
    }
    steal::measure_beside_bulk(bench, report);
}

fn with_sizes(mut command: Command) -> Command {
    command.args(SIZES.map(|bytes| bytes.to_string()));
    command
}

fn shown(bytes: usize) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

impl LaneSetup {
    fn run(&self, bench: &Bench) -> std::result::Result<Vec<TransferRate>, LaunchError> {
        let mut job = bench.launcher.child();
        job.args(["--threads", "1", "bulk"]);
        if self.by_launcher {
            job = bench.launcher.launched(2, &job);
        }
        job.envs(self.variables.iter().copied());
        launch::run(&mut job)?.json()
    }

    fn report(&self, report: &mut Report, bytes: usize, found: &[Vec<TransferRate>], mpi: &Sample) {
        for transfer in TRANSFERS {
            let rate = |rows: &Vec<TransferRate>| {
                rows.iter()
                    .find(|row| row.transfer == transfer && row.bytes == bytes)
                    .map(|row| row.rate)
            };
            let rates: Sample = found.iter().filter_map(rate).collect();
            let name = format!("{transfer:?}").to_lowercase();
            let what = format!("{}: {}, {name}", shown(bytes), self.name);
            let goal = self.goals.iter().find(|goal| bytes == LARGE && goal.0 == transfer);
            let unit = Unit::GIGABYTES_PER_SECOND;
            match goal {
                Some((_, goal)) => report.goal(&what, &rates, unit, Goal::AtLeast(*goal)),
                None => report.figure(&what, &rates, unit),
            }
            if self.name == "mpi"
                && bytes == LARGE
                && [Transfer::Result, Transfer::Argument].contains(&transfer)
            {
                let share = rates.with(mpi, |ours, theirs| 100.0 * ours / theirs);
                let what = format!("{what}, of MPI's");
                report.goal(&what, &share, Unit::PERCENT, Goal::AtLeast(40.0));
            }
        }
    }
}

/// Transfers values of all sizes between the root and the other PE, in all ways.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// Only this size, in bytes.
    #[arg(long)]
    bytes: Option<usize>,
    /// Only this way.
    #[arg(long)]
    transfer: Option<Transfer>,
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
static NEXT: Mutex<Option<Value>> = Mutex::new(None);

enum Value {
    Numbers(Vec<f64>),
    Octets(Vec<u8>),
}

fn numbers(bytes: usize) -> Vec<f64> {
    (0..bytes / size_of::<f64>()).map(|n| n as f64).collect()
}

/// Makes the value that the next task on this PE returns.
fn make((transfer, bytes): (Transfer, usize)) {
    let made = match transfer {
        Transfer::Octets => Value::Octets(vec![7; bytes]),
        _ => Value::Numbers(numbers(bytes)),
    };
    *NEXT.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
}

fn made_numbers() -> Vec<f64> {
    match NEXT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(Value::Numbers(numbers)) => numbers,
        _ => Vec::new(),
    }
}

fn made_octets() -> Vec<u8> {
    match NEXT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(Value::Octets(octets)) => octets,
        _ => Vec::new(),
    }
}

fn made_structure() -> Structure {
    Structure { name: "values".to_owned(), values: made_numbers() }
}

fn made_plain_structure() -> PlainStructure {
    PlainStructure { name: "values".to_owned(), values: made_numbers() }
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
            let task = cx.spawn_at(THERE, async |_, ()| made_octets(), ());
            black_box(task.await?).len()
        }
        Transfer::Inside => {
            let task = cx.spawn_at(THERE, async |_, ()| made_structure(), ());
            size_of_val(&*black_box(task.await?.values))
        }
        Transfer::Plain => {
            let task = cx.spawn_at(THERE, async |_, ()| made_plain_structure(), ());
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

impl Job {
    pub(crate) async fn run(&self, cx: &Context) -> Result<Vec<TransferRate>> {
        if cx.pes() != 2 {
            return Err(Error::other("this job needs two PEs"));
        }
        let mut rows = Vec::new();
        for bytes in SIZES.into_iter().filter(|bytes| self.bytes.is_none_or(|only| only == *bytes))
        {
            for transfer in TRANSFERS
                .into_iter()
                .filter(|transfer| self.transfer.is_none_or(|only| only == *transfer))
            {
                once(cx, transfer, bytes).await?;
                let (start, mut rates) = (Instant::now(), Vec::new());
                while rates.len() < REPEATS_MIN || start.elapsed() < LASTING {
                    rates.push(bytes as f64 / 1e9 / once(cx, transfer, bytes).await?);
                }
                let rate = rates.into_iter().collect::<Sample>().median();
                rows.push(TransferRate { transfer, bytes, rate });
            }
        }
        Ok(rows)
    }
}
