//! `cargo xtask demo`: the project at work on four processes, from a fresh checkout, in one command.

use std::process::{Command, ExitCode};

use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};

const PROCESSES: &str = "4";
const PROGRAM: &str = "sum_euler";
/// The sum of Euler's totient over 1..=20000, compared with the time of one thread in the same run.
const ARGUMENTS: [&str; 9] = [
    "--upto",
    "20000",
    "--tasks",
    "400",
    "--skeleton",
    "par-map",
    "--progress",
    "--show-topology",
    "--efficiency",
];

pub(crate) fn run() -> Result<ExitCode> {
    let mpi = setup::ensure(Wanted::OneMpi)?.into_iter().next();
    let mpi = mpi.ok_or_else(|| Failure("no MPI found".into()))?;

    let mut build = process::cargo();
    build.args(["build", "--release", "--package", "ultramarine-examples", "--bin", PROGRAM]);
    mpi.apply_to(&mut build);
    process::run(&mut build)?;

    let program = mpi.target_dir().join("release").join(PROGRAM);
    let mut launch = Command::new(&mpi.mpiexec);
    launch.args(["-n", PROCESSES]).arg(program).args(ARGUMENTS);
    mpi.apply_to(&mut launch);
    println!("{}", process::shown(&launch));
    process::status_of(&mut launch).map(process::exit_code)
}
