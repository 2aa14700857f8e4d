//! A job one of whose tasks does what no one expects of a task. The others must not mind: `cargo
//! xtask chaos` runs it for that.

use crate::{Job, MapFlags, TASKS_MAX, ranged, run_program};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};

/// Sum squares, while a task on the last PE does something odd.
#[derive(Clone, clap::Args)]
struct Arguments {
    /// The number of tasks that compute.
    #[arg(long, value_name = "K", default_value_t = 300)]
    #[arg(value_parser = ranged::<u32>(1..=TASKS_MAX))]
    tasks: u32,
    /// What the task does, if anything. The last PE may end by it, so there must be others.
    #[arg(long)]
    deed: Option<Deed>,
    #[command(flatten)]
    map: MapFlags,
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
    run_program("odd_tasks", odd_tasks)
}

async fn odd_tasks(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { tasks, deed, map } = arguments;
    let cx = job.cx.unsupervised();
    let last = Pe::new(cx.pes() - 1);
    if deed.is_some() && last == cx.pe() {
        return Err(Error::other("a --deed needs a second PE (--pes 2)"));
    }
    // It must not be done again elsewhere.
    let done = deed.map(|deed| cx.spawn_at(last, commit, deed));
    let (squares, map) = map.run(&job, square, (0..tasks).collect()).await?;
    let report = map.report(&job, squares.iter().sum::<u64>()).await?;
    // Whatever became of it.
    drop(done);
    report.print()
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
