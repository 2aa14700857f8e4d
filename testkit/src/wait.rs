//! Waiting with a limit, so that a test that would hang fails.

use crate::PATIENCE;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs a part of a test in its own thread; it may neither panic nor outlast [`PATIENCE`].
pub fn bounded<T: Send + 'static>(part: impl FnOnce() -> T + Send + 'static) -> T {
    within(PATIENCE, part)
}

/// The same, with another limit.
pub fn within<T: Send + 'static>(limit: Duration, part: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(part())));
    is_done.recv_timeout(limit).expect("the test panicked above, or hangs")
}

/// Waits until `condition` holds.
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(PATIENCE, what, condition);
}

/// The same, with another limit.
#[track_caller]
pub fn eventually_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
