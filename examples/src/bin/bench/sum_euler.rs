//! The sum of totients on two cores, by two PEs of one thread and by one PE of two; against a
//! sequential program, rayon, and a plain MPI program that deals the tasks out in turn.

use crate::Bench;
use crate::launch::{self, LaunchError};
use crate::report::{Goal, Report};
use crate::sample::{Sample, Unit};
use serde::Deserialize;
use std::process::Command;

const ROUNDS: usize = 5;
/// Of all programs that are compared.
const CORES: f64 = 2.0;
const RESULT: u64 = 121_590_396;

/// The output of each program.
#[derive(Deserialize)]
struct Printed {
    result: u64,
    seconds: f64,
}

struct Contender {
    name: &'static str,
    command: Command,
    /// The time of the computation, as printed by the program.
    seconds: Vec<f64>,
    /// The rest of the process's time.
    around: Vec<f64>,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) {
    let launcher = &bench.launcher;
    let ours = |arguments: &[&str]| {
        let mut command = launcher.sibling("sum_euler");
        command.args(["--json", "--upto", "20000", "--tasks", "400"]).args(arguments);
        command
    };
    let mpi = {
        let mut command = launcher.sibling("sum_euler_mpi");
        command.args(["--upto", "20000", "--tasks", "400"]);
        command
    };
    let contender = |name, command| Contender { name, command, seconds: vec![], around: vec![] };
    let mut contenders = [
        contender("sequential", ours(&["--threads", "1", "--skeleton", "sequential"])),
        contender("2 PEs x 1 thread", launcher.launched(2, &ours(&["--threads", "1"]))),
        contender("1 PE x 2 threads", ours(&["--threads", "2"])),
        contender("rayon, 2 threads", ours(&["--threads", "2", "--skeleton", "rayon"])),
        contender("MPI by hand, 2 ranks", launcher.launched(2, &mpi)),
    ];
    let all = (0..bench.rounds(ROUNDS)).try_for_each(|_| contenders.iter_mut().try_for_each(run));
    if report.accept("all contenders", all).is_none() {
        return;
    }
    for Contender { name, seconds, around, .. } in &contenders {
        report.figure(name, &seconds.iter().copied().collect(), Unit::SECONDS);
        let rest = format!("{name}: the process around it");
        report.figure(&rest, &around.iter().copied().collect(), Unit::SECONDS);
    }
    let [sequential, processes, threads, rayon, mpi] =
        contenders.map(|contender| contender.seconds.into_iter().collect::<Sample>());
    let efficiency = |parallel: &Sample| sequential.with(parallel, |s, p| 100.0 * s / (CORES * p));
    let goal = Goal::AtLeast(97.0);
    report.goal("efficiency, 2 PEs x 1 thread", &efficiency(&processes), Unit::PERCENT, goal);
    report.goal("efficiency, 1 PE x 2 threads", &efficiency(&threads), Unit::PERCENT, goal);
    report.figure("efficiency, rayon", &efficiency(&rayon), Unit::PERCENT);
    report.figure("efficiency, MPI by hand", &efficiency(&mpi), Unit::PERCENT);
    let goal = Goal::AtMost(1.02);
    report.goal("time over MPI by hand", &processes.over(&mpi), Unit::TIMES, goal);
}

fn run(contender: &mut Contender) -> Result<(), LaunchError> {
    let finished = launch::run(&mut contender.command)?;
    let printed: Printed = finished.json()?;
    if printed.result != RESULT {
        let reason = format!("{} came out instead of {RESULT}", printed.result);
        return Err(LaunchError::Output { program: contender.name.to_owned(), reason });
    }
    contender.seconds.push(printed.seconds);
    contender.around.push(finished.seconds - printed.seconds);
    Ok(())
}
