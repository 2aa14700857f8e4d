//! What tests of whole jobs share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod alone;
pub(crate) mod cluster;
pub(crate) mod job;
pub(crate) mod launcher;
pub(crate) mod mischief;
pub(crate) mod ports;

use std::time::{Duration, Instant};
use ultramarine::{Context, LaneKind, Options, Result};
use ultramarine_testkit::bounded;

/// The lanes of a job whose PEs are threads.
pub(crate) const LANES: [LaneKind; 2] = [LaneKind::Memory, LaneKind::Tcp];

/// A job of this many PEs with one worker each.
pub(crate) fn pes(pes: u32, lane: LaneKind) -> Options {
    Options::default().pes(pes).threads(1).lane(lane)
}

/// Runs `main` on both lanes, with this many PEs.
pub(crate) fn on_both_lanes<F, T>(count: u32, main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    on_both_lanes_with(|lane| pes(count, lane), main);
}

/// The same, of a job with these options.
pub(crate) fn on_both_lanes_with<F, T>(options: impl Fn(LaneKind) -> Options, main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    for lane in LANES {
        let (options, main) = (options(lane), main.clone());
        bounded(move || options.run(main)).unwrap_or_else(|e| panic!("{lane:?}: {e}"));
    }
}

/// Keeps a worker busy for a while.
pub(crate) fn toil(micros: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}
