//! Task sets in shared memory: a task of one worker, beside other schedulers; a steal by another
//! process, beside one by messages; the queue of a dead worker; and whole programs.

mod alone;
mod between;
mod parts;

pub(crate) use alone::Job as Alone;
pub(crate) use between::{Left, Stolen};

use crate::launch::Bench;
use crate::{Goal, Report, Unit};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use ultramarine::taskset::{Arena, Options};
use ultramarine::{Result, build};

const ROUNDS: usize = 5;

/// What all tasks here do, which the function that runs them knows.
const CODE: [u8; 16] = [1; 16];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    alone::measure(bench, report)?;
    parts::measure(bench, report);
    between::measure(bench, report)?;
    programs(bench, report)
}

/// A folder for arenas: in memory, where there is room.
fn folder() -> Result<TempDir> {
    Ok(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?)
}

/// The arena of a job with this number.
fn open(file: &Path, job: u64) -> Result<Arena> {
    Ok(Arena::open(file, &Options::new(job, build::of_this_program()?))?)
}

/// A program, its flags for a work, and the result.
struct Work {
    name: &'static str,
    program: &'static str,
    flags: &'static str,
    result: u64,
    /// The goal for two processes with an arena: this percentage of the speed of two threads.
    share_min: Option<f64>,
}

const LARGE: [Work; 3] = [
    Work {
        name: "UTS T1L",
        program: "uts",
        flags: "-t 1 -a 3 -d 13 -b 4 -r 29",
        result: 102_181_082,
        share_min: None,
    },
    Work {
        name: "UTS T3L",
        program: "uts",
        flags: "-t 0 -b 2000 -q 0.200014 -m 5 -r 7",
        result: 111_345_631,
        share_min: Some(98.0),
    },
    // A task costs more than fifty of these calls, so without a threshold a set makes no sense.
    Work {
        name: "F(45) down to F(25)",
        program: "fibonacci",
        flags: "--n 45 --threshold 25",
        result: 1_134_903_170,
        share_min: None,
    },
];

/// For `--quick`.
const SMALL: [Work; 3] = [
    Work { name: "UTS T1", flags: "-t 1 -a 3 -d 10 -b 4 -r 19", result: 4_130_071, ..LARGE[0] },
    Work {
        name: "UTS T3",
        flags: "-t 0 -b 2000 -q 0.124875 -m 8 -r 42",
        result: 4_112_897,
        ..LARGE[1]
    },
    Work {
        name: "F(38) down to F(25)",
        flags: "--n 38 --threshold 25",
        result: 39_088_169,
        ..LARGE[2]
    },
];

fn programs(bench: &Bench, report: &mut Report) -> Result<()> {
    let folder = folder()?;
    let arena = folder.path().join("arena");
    for work in if bench.quick { SMALL } else { LARGE } {
        let with =
            |more: &str| bench.program(work.program, &format!("{} --json {more}", work.flags));
        let in_arena = |flags: &str| {
            let mut command = with(flags);
            command.arg("--arena").arg(&arena);
            command
        };
        let contenders = [
            ("1 process x 2 threads", with("--threads 2")),
            ("2 processes", bench.on(2, &with("--threads 1"))),
            ("2 processes, arena", anew(&arena, &bench.on(2, &in_arena("--threads 1")))),
            ("1 process x 2 threads, arena", anew(&arena, &in_arena("--threads 2"))),
        ];
        let result = Value::from(work.result);
        let seconds = report.contest(bench, ROUNDS, work.name, contenders, result)?;
        let [threads, messages, processes, _] = &seconds;
        let share = |other| threads.with(other, |threads, other| 100.0 * threads / other);
        let what = format!("{}: 2 processes, of the speed of 2 threads", work.name);
        report.figure(&what, &share(messages), Unit::PERCENT);
        let goal = work.share_min.map(Goal::AtLeast);
        report.goal(&format!("{what}, arena"), &share(processes), Unit::PERCENT, goal);
    }
    Ok(())
}

/// The command, after the arena is removed: it does all of the work each time.
fn anew(arena: &Path, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "rm -f \"$0\" && exec \"$@\""]).arg(arena);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}
