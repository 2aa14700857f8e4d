//! A job one of whose tasks does what no one expects of a task. The others must not mind: `cargo
//! xtask chaos` runs it for that.

use crate::{JobFlags, MapFlags, MapRun, Report, TASKS_MAX};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Sum squares, while a task on the last PE does something odd.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    /// The number of tasks that compute.
    #[arg(long, value_name = "K", default_value_t = 300, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=TASKS_MAX))]
    tasks: u32,
    /// What the task does, if anything. The last PE may end by it, so there must be others.
    #[arg(long)]
    deed: Option<Deed>,
    #[command(flatten)]
    map: MapFlags,
    #[command(flatten)]
    job: JobFlags,
}

#[derive(Clone, Copy, ValueEnum, Serialize, Deserialize)]
enum Deed {
    /// It becomes another program.
    Exec,
    /// It calls `exit`.
    Exit,
    /// It calls `abort`, and leaves processes that it has started.
    Abort,
    /// It fills its stack.
    Overflow,
    /// It panics.
    Panic,
    /// It keeps standard output for ever.
    Output,
}

/// How long a computing task takes.
const TASK: Duration = Duration::from_millis(5);

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, odd_tasks)
}

async fn odd_tasks(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { tasks, deed, map, job } = arguments;
    let last = Pe::new(cx.pes() - 1);
    if deed.is_some() && last == cx.pe() {
        return Err(Error::other("a --deed needs a second PE (--pes 2)"));
    }
    // It must not be done again elsewhere.
    let done = deed.map(|deed| cx.spawn_at(last, commit, deed));
    let cx = job.begin(cx)?;
    let mut run = MapRun::begin(&map, &cx).await?;
    let start = Instant::now();
    let total = job.progress.then(|| map.skeleton.tasks(&cx, tasks as usize));
    let squares = job.progress(&cx, total, run.map(&cx, square, (0..tasks).collect())).await?;
    let sum: u64 = squares.iter().sum();
    let report = Report::gather(&cx, "odd_tasks", (map.skeleton, &job), start, sum).await?;
    run.finish(&report)?;
    // Whatever became of it.
    drop(done);
    report.print(&job)
}

fn square(n: u32) -> u64 {
    thread::sleep(TASK);
    u64::from(n) * u64::from(n)
}

async fn commit(_: Context, deed: Deed) {
    let sleep = || {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    match deed {
        Deed::Exec => panic!("it cannot become another program: {}", sleep().exec()),
        Deed::Exit => std::process::exit(3),
        Deed::Abort => {
            let started = [(); 3].map(|()| sleep().spawn());
            assert!(started.iter().all(std::result::Result::is_ok), "they start: {started:?}");
            std::process::abort()
        }
        Deed::Overflow => assert!(depth(u64::MAX) > 0, "it does not come back"),
        Deed::Panic => panic!("on purpose"),
        Deed::Output => {
            thread::spawn(|| {
                let _kept = std::io::stdout().lock();
                loop {
                    thread::park();
                }
            });
        }
    }
}

/// Calls itself `left` times.
fn depth(left: u64) -> u64 {
    let frame = black_box([left; 64]);
    if left == 0 { 0 } else { 1 + depth(frame[63] - 1).min(black_box(frame)[0]) }
}
