//! One real job, so that a change that breaks all of them is seen in seconds: the probe's
//! supervised map under the launcher, of which one process is killed.

use std::process::{Command, Stdio};

use crate::mpi::Mpi;
use crate::process::{self, Failure, Result, cannot_start};
use crate::step::ALL_BUT_PROOFS;

const PROGRAM: &str = "ultramarine-probe";
const ARGUMENTS: [&str; 3] = ["deaths", "--kill-at", "0.05"];
const PROCESSES: &str = "3";

/// The longest that the job may take, in seconds; a second is usual.
const SECONDS_MAX: &str = "60";

/// Builds the program and runs the job.
///
/// # Errors
/// The build fails; the job fails, hangs, or reports something else than it should.
pub(crate) fn run(mpi: &Mpi) -> Result<()> {
    // With the features of the whole workspace, as the tests are built: else its crates would be
    // built once more.
    mpi.build(&[&ALL_BUT_PROOFS[..], &["--bin", PROGRAM]].concat())?;

    let mut job = Command::new("timeout");
    job.args(["--kill-after=5", SECONDS_MAX, &mpi.mpiexec, "-n", PROCESSES]);
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

/// Whether the report on the last line is that of a job that went on, and was right.
fn check(said: &str) -> Result<()> {
    let last = said.lines().last().unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(last)
        .map_err(|error| Failure(format!("no report on the last line: {error}")))?;
    for (field, expected) in [("right", true.into()), ("dead", serde_json::Value::from(1))] {
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
        assert_eq!(check("hello\n{\"dead\":1,\"right\":true}\n"), Ok(()));
        let wrong = |said| check(said).unwrap_err().0;
        assert_eq!(wrong("{\"dead\":1,\"right\":false}"), "`right` is false, and should be true");
        assert_eq!(wrong("{\"dead\":0,\"right\":true}"), "`dead` is 0, and should be 1");
        assert!(wrong("").starts_with("no report on the last line: "));
    }
}
