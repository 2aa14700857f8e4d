//! Tests that start themselves under a launcher: its processes run the test's program.

use super::job::run;
use std::ffi::OsString;
use std::time::{Duration, Instant};
use ultramarine::{Context, Result};
use ultramarine_testkit::{Ended, finish, itself};

const PATIENCE: Duration = Duration::from_mins(1);

/// Far more than any of these jobs takes, and far less than a launcher's patience.
const SOON: Duration = Duration::from_secs(40);

/// Runs the program of the test that calls this on this number of processes, to its end. `None`
/// where no launcher belongs to this build.
pub(crate) fn launched(processes: u32, lane: &str, program: impl FnOnce()) -> Option<Ended> {
    launched_with(processes, lane, &[], &itself(program))
}

/// The same of a program that these words start, with variables for the processes.
pub(crate) fn launched_with(
    processes: u32,
    lane: &str,
    variables: &[(&str, OsString)],
    program: &[OsString],
) -> Option<Ended> {
    let mut command = ultramarine_testkit::launcher()?;
    command.args(["-n", &processes.to_string()]).args(program);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", lane);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Some(finish(&mut command, PATIENCE))
}

/// Runs the program of the test that calls this on this number of processes over each lane, to its
/// end, which comes soon.
pub(crate) fn over_each_lane(
    processes: u32,
    program: impl FnOnce(),
) -> impl Iterator<Item = (&'static str, Ended)> {
    over_each_lane_with(processes, |_| [], itself(program))
}

/// The same of a program that these words start, with variables for the processes over each lane.
pub(crate) fn over_each_lane_with<const N: usize>(
    processes: u32,
    variables: impl Fn(&str) -> [(&'static str, OsString); N],
    program: Vec<OsString>,
) -> impl Iterator<Item = (&'static str, Ended)> {
    ["mpi", "tcp"].into_iter().map_while(move |lane| {
        let start = Instant::now();
        let ended = launched_with(processes, lane, &variables(lane), &program)?;
        assert!(start.elapsed() < SOON, "{lane}: {:?}: {}", start.elapsed(), ended.err);
        Some((lane, ended))
    })
}

/// Runs a main task on this number of processes over each lane. All must be well.
pub(crate) fn is_well_over_each_lane<T>(processes: u32, main: impl FnOnce(Context) -> T)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    over_each_lane(processes, || run(main)).for_each(|(_, ended)| ended.is_well());
}
