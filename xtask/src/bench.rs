//! `cargo xtask bench NAME…`: the benchmark program, built for speed, with an MPI to launch under.
//!
//! The program starts its own processes: it is told the launcher as the tests are.

use std::process::ExitCode;

use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let mpi = setup::ensure(Wanted::OneMpi)?.into_iter().next();
    let mpi = mpi.ok_or_else(|| Failure("no MPI found".into()))?;
    let mut bench = process::cargo();
    bench.args(["run", "--release", "--package", "ultramarine-examples", "--bin", "bench", "--"]);
    bench.args(arguments);
    mpi.apply_to(&mut bench);
    process::status_of(&mut bench).map(process::exit_code)
}
