//! What tests of whole jobs share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod launcher;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ultramarine::{Context, Label, LaneKind, LevelKind, Options, Place, Result};

/// The longest that any wait in a test lasts; reached only when the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A program of another package, which cargo puts into the folder above that of the tests if it
/// builds both.
pub(crate) fn beside_the_tests(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test has a file");
    let folder = own.parent().and_then(Path::parent).expect("cargo has folders for both");
    let file = folder.join(name);
    assert!(file.exists(), "{} is not built: build its package first", file.display());
    file
}

/// Runs a part of a test in a thread of its own; it may neither panic nor outlast the patience.
pub(crate) fn bounded<T: Send + 'static>(part: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(part())));
    is_done.recv_timeout(PATIENCE).expect("the test panicked above, or hangs")
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The lanes of a job whose PEs are threads.
pub(crate) const LANES: [LaneKind; 2] = [LaneKind::Memory, LaneKind::Tcp];

/// A job of this many PEs with one worker each.
pub(crate) fn pes(pes: u32, lane: LaneKind) -> Options {
    Options::default().pes(pes).threads(1).lane(lane)
}

/// Two racks of two hosts of `each` PEs.
pub(crate) fn racks(each: u32) -> Vec<Place> {
    let place = |n: u32| {
        Place::new(vec![
            Label::new(LevelKind::Switch, format!("r{}", n / (2 * each))),
            Label::new(LevelKind::Host, format!("h{}", n / each)),
        ])
    };
    (0..4 * each).map(place).collect()
}

/// Runs `main` on both lanes, with this many PEs.
pub(crate) fn on_both_lanes<F, T>(count: u32, main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    for lane in LANES {
        let main = main.clone();
        bounded(move || pes(count, lane).run(main)).unwrap_or_else(|e| panic!("{lane:?}: {e}"));
    }
}

/// Keeps a worker busy for a while.
pub(crate) fn toil(micros: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}
