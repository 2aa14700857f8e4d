//! What the tests of several examples share.

use std::process::Command;

/// Skeletons that spread the work over all PEs.
pub(crate) const SKELETONS: [&str; 9] = [
    "par-map",
    "par-map-chunked",
    "par-map-sliced",
    "push-map",
    "push-map-chunked",
    "push-map-sliced",
    "par-map-local",
    "par-map-2level",
    "par-map-2level-relaxed",
];

/// Skeletons that keep the work on the root.
pub(crate) const SKELETONS_OF_ROOT: [&str; 3] = ["fork-map", "rayon", "sequential"];

/// Ways to divide and conquer.
pub(crate) const DIVISIONS: [&str; 5] = [
    "par-divide-and-conquer",
    "push-divide-and-conquer",
    "fork-divide-and-conquer",
    "rayon",
    "sequential",
];

/// The launcher that belongs to this build, starting this many ranks of a program.
pub(crate) fn launched(program: &str, ranks: u32, flags: &str) -> Option<Command> {
    let mut command = launcher()?;
    command.args(["-n", &ranks.to_string(), program]).args(flags.split_whitespace());
    Some(command)
}

/// The launcher that belongs to this build, for PEs with one worker each.
pub(crate) fn launcher() -> Option<Command> {
    let mut command = ultramarine_testkit::launcher()?;
    command.env("ULTRAMARINE_THREADS", "1");
    Some(command)
}
