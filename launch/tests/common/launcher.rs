//! Starting the test program itself under a launcher: its programs are tests that only this runs.

use std::ffi::{OsStr, OsString};
use std::process::Output;
use std::time::Duration;
pub(crate) use ultramarine_testkit::finish;

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs a program on this many processes. Returns its output, and whether it succeeded. `None`
/// where no launcher belongs to this build.
pub(crate) fn launched(processes: u32, program: Vec<OsString>, lane: &str) -> Option<Output> {
    launched_with(processes, program, lane, &[])
}

/// The same, with variables for the processes.
pub(crate) fn launched_with(
    processes: u32,
    program: Vec<OsString>,
    lane: &str,
    variables: &[(&str, &OsStr)],
) -> Option<Output> {
    let mut command = ultramarine_testkit::launcher()?;
    command.args(["-n", &processes.to_string()]).args(program);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.envs(variables.iter().copied());
    Some(finish(&mut command, PATIENCE))
}

/// Runs a program on this number of processes over each lane. All must be well.
pub(crate) fn is_well_over_each_lane(processes: u32, program: &[OsString]) {
    for lane in ["mpi", "tcp"] {
        let Some(output) = launched(processes, program.to_vec(), lane) else { return };
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && out.contains("all is well"), "{lane}: {out}\n{err}");
    }
}
