//! One real job, so that a change that breaks all of them is seen in seconds: `sum_euler` under the
//! launcher, supervised, against a sum that is known.

use std::process::{Command, Stdio};

use crate::mpi::Mpi;
use crate::process::{self, Failure, Result, cannot_start};

const PROGRAM: &str = "sum_euler";
const ARGUMENTS: [&str; 6] = ["--upto", "10000", "--tasks", "200", "--supervised", "--json"];
/// The sum of Euler's totient over 1..=10000.
const SUM: u64 = 30_397_486;
const PROCESSES: u64 = 3;

/// The longest that the job may take, in seconds; a second is usual.
const SECONDS_MAX: &str = "60";

/// Builds the program and runs the job.
///
/// # Errors
/// The build fails; the job fails, hangs, or reports something else than it should.
pub(crate) fn run(mpi: &Mpi) -> Result<()> {
    let mut build = process::cargo();
    // With the features of the whole workspace, as the tests are built: else its crates would be
    // built once more.
    build.args(["build", "--workspace", "--bin", PROGRAM]);
    build.args(["--exclude", "ultramarine-proof", "--exclude", "ultramarine-simulator"]);
    mpi.apply_to(&mut build);
    process::run(&mut build)?;

    let mut job = Command::new("timeout");
    job.args(["--kill-after=5", SECONDS_MAX, &mpi.mpiexec, "-n", &PROCESSES.to_string()]);
    job.arg(mpi.target_dir().join("debug").join(PROGRAM)).args(ARGUMENTS);
    mpi.apply_to(&mut job);
    job.env("ULTRAMARINE_THREADS", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    println!("{}", process::shown(&job));
    let output = job.output().map_err(|error| cannot_start(&job, &error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    if !output.status.success() {
        return Err(Failure(format!("the job failed ({})", output.status)));
    }
    check(&said)
}

/// Whether the report on the last line is that of the whole job.
fn check(said: &str) -> Result<()> {
    let last = said.lines().last().unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(last)
        .map_err(|error| Failure(format!("no report on the last line: {error}")))?;
    for (field, expected) in [("result", SUM), ("pes", PROCESSES)] {
        if report[field] != expected {
            let found = &report[field];
            return Err(Failure(format!("`{field}` is {found}, and should be {expected}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_must_be_right_and_whole() {
        assert_eq!(check("hello\n{\"pes\":3,\"result\":30397486}\n"), Ok(()));
        let wrong = |said| check(said).unwrap_err().0;
        assert_eq!(wrong("{\"pes\":3,\"result\":1}"), "`result` is 1, and should be 30397486");
        assert_eq!(wrong("{\"pes\":1,\"result\":30397486}"), "`pes` is 1, and should be 3");
        assert!(wrong("").starts_with("no report on the last line: "));
    }
}
