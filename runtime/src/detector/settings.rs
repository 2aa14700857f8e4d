//! The times of the detector.

use std::time::Duration;

/// How fast a detector notices. All PEs of a job use the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetectorSettings {
    /// How often a PE says that it lives to those that watch it. More than zero; default 200 ms.
    pub heartbeat: Duration,
    /// How long a PE may be silent, because it is stopped or its host does not answer, before it is
    /// held for dead. At least two heartbeats; default 2 s. (The end of a process is noticed at once,
    /// whatever this is.)
    pub dead_after: Duration,
}

impl Default for DetectorSettings {
    fn default() -> Self {
        DetectorSettings {
            heartbeat: Duration::from_millis(200),
            dead_after: Duration::from_secs(2),
        }
    }
}
