//! Large values between two PEs of one thread each, over each lane; beside the same bytes by
//! `MPI_Send` and `MPI_Recv`, and by mpi4py.
//!
//! What counts is the time from asking for a value until it is there, or from giving one until the
//! answer to it. Values are made before, but for those that are called fresh: each of these is
//! allocated and filled within the time.

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

/// The length that the goals are for.
const LARGE: usize = 8 << 20;
/// In bytes.
const SIZES: [usize; 7] =
    [1 << 10, 16 << 10, 64 << 10, 512 << 10, LARGE, 64 << 20, (256 << 20) - 4096];
/// A size is repeated for so long, but at least so often.
const LASTING: Duration = Duration::from_millis(200);
const REPEATS_MIN: usize = 3;
const THERE: Pe = Pe::new(1);

/// A way for a value to travel.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug, clap::ValueEnum,
)]
enum Way {
    /// A `Vec<f64>`, as the result of a task.
    Result,
    /// The same as its argument.
    Argument,
    /// A `Vec<u8>`, as the result of a task.
    Octets,
    /// A `Vec<f64>` within a structure, as the result of a task.
    Inside,
    /// The same, where the structure says that it is plain data.
    Plain,
    /// The results of tasks, one after the other, each a `Vec<f64>` of its own making.
    Fresh,
}

const WAYS: [Way; 6] =
    [Way::Result, Way::Argument, Way::Octets, Way::Inside, Way::Plain, Way::Fresh];

/// How PEs are connected.
struct Road {
    name: &'static str,
    /// Whether each PE is a process of its own.
    by_launcher: bool,
    variables: &'static [(&'static str, &'static str)],
    goals: &'static [(Way, f64)],
}

const ROADS: [Road; 3] = [
    Road {
        name: "mpi",
        by_launcher: true,
        variables: &[],
        goals: &[
            (Way::Result, 2.0),
            (Way::Argument, 2.0),
            (Way::Octets, 2.0),
            (Way::Inside, 0.7),
            (Way::Fresh, 1.2),
        ],
    },
    Road {
        name: "tcp",
        by_launcher: true,
        variables: &[("ULTRAMARINE_LANE", "tcp")],
        goals: &[(Way::Result, 1.2), (Way::Argument, 1.2)],
    },
    Road {
        name: "memory",
        by_launcher: false,
        variables: &[("ULTRAMARINE_PES", "2")],
        goals: &[(Way::Result, 4.0), (Way::Argument, 4.0)],
    },
];

/// Gigabytes (10^9 bytes) per second of one size, the median.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    way: Way,
    bytes: usize,
    rate: f64,
}

/// What the programs of others print: gigabytes per second, by bytes.
type Rates = BTreeMap<usize, f64>;

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let mut twin = bench.launcher.launched(2, &with_sizes(bench.launcher.sibling("mpi_bulk")));
    let mut python = bench.python.as_deref().map(|python| {
        let mut script = Command::new(python);
        script.arg(SCRIPT);
        bench.launcher.launched(2, &with_sizes(script))
    });
    let (mut ours, mut theirs, mut scripts) = (vec![vec![]; ROADS.len()], vec![], vec![]);
    for _ in 0..bench.rounds(ROUNDS) {
        for (road, found) in ROADS.iter().zip(&mut ours) {
            let Some(rows) = report.accept(road.name, road.run(bench)) else { return };
            found.push(rows);
        }
        let rates = launch::run(&mut twin).and_then(|done| done.json::<Rates>());
        let Some(rates) = report.accept("MPI_Send and MPI_Recv", rates) else { return };
        theirs.push(rates);
        if let Some(command) = &mut python {
            match report.accept("mpi4py", launch::run(command).and_then(|done| done.json())) {
                Some(rates) => scripts.push(rates),
                None => python = None,
            }
        }
    }
    let of = |rates: &[Rates], bytes| rates.iter().map(|rates| rates[&bytes]).collect::<Sample>();
    for bytes in SIZES {
        let named = |who: &str| format!("{}: {who}", shown(bytes));
        let mpi = of(&theirs, bytes);
        report.figure(&named("MPI_Send and MPI_Recv"), &mpi, Unit::GIGABYTES_PER_SECOND);
        if python.is_some() {
            let rates = of(&scripts, bytes);
            report.figure(&named("mpi4py, numpy"), &rates, Unit::GIGABYTES_PER_SECOND);
        }
        for (road, found) in ROADS.iter().zip(&ours) {
            road.report(report, bytes, found, &mpi);
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

impl Road {
    fn run(&self, bench: &Bench) -> std::result::Result<Vec<Row>, LaunchError> {
        let mut job = bench.launcher.child();
        job.args(["--threads", "1", "bulk"]);
        if self.by_launcher {
            job = bench.launcher.launched(2, &job);
        }
        job.envs(self.variables.iter().copied());
        launch::run(&mut job)?.json()
    }

    fn report(&self, report: &mut Report, bytes: usize, found: &[Vec<Row>], mpi: &Sample) {
        for way in WAYS {
            let rate = |rows: &Vec<Row>| {
                rows.iter().find(|row| row.way == way && row.bytes == bytes).map(|row| row.rate)
            };
            let rates: Sample = found.iter().filter_map(rate).collect();
            let name = format!("{way:?}").to_lowercase();
            let what = format!("{}: {}, {name}", shown(bytes), self.name);
            let goal = self.goals.iter().find(|goal| bytes == LARGE && goal.0 == way);
            let unit = Unit::GIGABYTES_PER_SECOND;
            match goal {
                Some((_, goal)) => report.goal(&what, &rates, unit, Goal::AtLeast(*goal)),
                None => report.figure(&what, &rates, unit),
            }
            if self.name == "mpi" && bytes == LARGE && [Way::Result, Way::Argument].contains(&way) {
                let share = rates.with(mpi, |ours, theirs| 100.0 * ours / theirs);
                let what = format!("{what}, of MPI's");
                report.goal(&what, &share, Unit::PERCENT, Goal::AtLeast(40.0));
            }
        }
    }
}

/// Moves values of all sizes in all ways between the root and the other PE.
#[derive(clap::Args)]
pub(crate) struct Job {
    /// Only this size, in bytes.
    #[arg(long)]
    bytes: Option<usize>,
    /// Only this way.
    #[arg(long)]
    way: Option<Way>,
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

/// What the next task on this PE is to return.
static NEXT: Mutex<Option<Made>> = Mutex::new(None);

enum Made {
    Numbers(Vec<f64>),
    Octets(Vec<u8>),
}

fn numbers(bytes: usize) -> Vec<f64> {
    (0..bytes / size_of::<f64>()).map(|n| n as f64).collect()
}

/// Makes what the next task on this PE returns.
fn make((way, bytes): (Way, usize)) {
    let made = match way {
        Way::Octets => Made::Octets(vec![7; bytes]),
        _ => Made::Numbers(numbers(bytes)),
    };
    *NEXT.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
}

fn made_numbers() -> Vec<f64> {
    match NEXT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(Made::Numbers(numbers)) => numbers,
        _ => Vec::new(),
    }
}

fn made_octets() -> Vec<u8> {
    match NEXT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(Made::Octets(octets)) => octets,
        _ => Vec::new(),
    }
}

fn made_structure() -> Structure {
    Structure { name: "values".to_owned(), values: made_numbers() }
}

fn made_plain_structure() -> PlainStructure {
    PlainStructure { name: "values".to_owned(), values: made_numbers() }
}

/// The seconds that one value takes.
async fn once(cx: &Context, way: Way, bytes: usize) -> Result<f64> {
    if matches!(way, Way::Result | Way::Octets | Way::Inside | Way::Plain) {
        cx.spawn_at(THERE, async |_, made| make(made), (way, bytes)).await?;
    }
    let argument = if way == Way::Argument { numbers(bytes) } else { Vec::new() };
    let start = Instant::now();
    let arrived = match way {
        Way::Result => {
            let task = cx.spawn_at(THERE, async |_, ()| made_numbers(), ());
            size_of_val(&*black_box(task.await?))
        }
        Way::Octets => {
            let task = cx.spawn_at(THERE, async |_, ()| made_octets(), ());
            black_box(task.await?).len()
        }
        Way::Inside => {
            let task = cx.spawn_at(THERE, async |_, ()| made_structure(), ());
            size_of_val(&*black_box(task.await?.values))
        }
        Way::Plain => {
            let task = cx.spawn_at(THERE, async |_, ()| made_plain_structure(), ());
            size_of_val(&*black_box(task.await?.values))
        }
        Way::Fresh => {
            let task = cx.spawn_at(THERE, async |_, bytes| numbers(bytes), bytes);
            size_of_val(&*black_box(task.await?))
        }
        Way::Argument => {
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
    pub(crate) async fn run(&self, cx: &Context) -> Result<Vec<Row>> {
        if cx.pes() != 2 {
            return Err(Error::other("this job needs two PEs"));
        }
        let mut rows = Vec::new();
        for bytes in SIZES.into_iter().filter(|bytes| self.bytes.is_none_or(|only| only == *bytes))
        {
            for way in WAYS.into_iter().filter(|way| self.way.is_none_or(|only| only == *way)) {
                once(cx, way, bytes).await?;
                let (start, mut rates) = (Instant::now(), Vec::new());
                while rates.len() < REPEATS_MIN || start.elapsed() < LASTING {
                    rates.push(bytes as f64 / 1e9 / once(cx, way, bytes).await?);
                }
                let rate = rates.into_iter().collect::<Sample>().median();
                rows.push(Row { way, bytes, rate });
            }
        }
        Ok(rows)
    }
}
