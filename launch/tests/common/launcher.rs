//! Starting the test program itself under a launcher: its programs are tests that only this runs.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};
use ultramarine_testkit::{Ended, finish};

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs a program on this many processes, to its end. `None` where no launcher belongs to this
/// build.
pub(crate) fn launched(processes: u32, program: Vec<OsString>, lane: &str) -> Option<Ended> {
    launched_with(processes, program, lane, &[])
}

/// The same, with variables for the processes.
pub(crate) fn launched_with(
    processes: u32,
    program: Vec<OsString>,
    lane: &str,
    variables: &[(&str, &OsStr)],
) -> Option<Ended> {
    let mut command = ultramarine_testkit::launcher()?;
    command.args(["-n", &processes.to_string()]).args(program);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.envs(variables.iter().copied());
    Some(finish(&mut command, PATIENCE))
}

/// Runs a program on this number of processes over each lane. All must be well.
pub(crate) fn is_well_over_each_lane(processes: u32, program: &[OsString]) {
    over_each_lane(processes, program, |_, ended| ended.is_well());
}

/// Far more than any of these jobs takes, and far less than a launcher's patience.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// Runs a program on this number of processes over each lane, and looks at how it ended: soon.
pub(crate) fn over_each_lane(processes: u32, program: &[OsString], check: impl Fn(&str, &Ended)) {
    for lane in ["mpi", "tcp"] {
        let start = Instant::now();
        let Some(ended) = launched(processes, program.to_vec(), lane) else { return };
        check(lane, &ended);
        assert!(start.elapsed() < SOON, "{lane}: {:?}", start.elapsed());
    }
}
