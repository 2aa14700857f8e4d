//! The times of the detector.

use std::time::Duration;

/// How fast a detector notices. All PEs of a job use the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetectorSettings {
    /// How often a PE says that it lives to those that it watches, and that watch it. More than
    /// zero; default 200 ms.
    pub heartbeat: Duration,
    /// How long a host may give no answer before its PEs are held for dead. At least two
    /// heartbeats; default 2 s. (The end of a process is noticed at once, whatever this is.)
    pub dead_after: Duration,
    /// How long a PE may say nothing while its host still answers: the process is stopped, or gets
    /// no core. Not less than `dead_after`, which counts if it is longer; default 30 s.
    pub stalled_after: Duration,
    /// How long the root may be silent, for whatever reason, before the others leave. A wrong
    /// event on the root costs the job. Not less than `dead_after`, which counts if it is longer;
    /// default 30 s.
    pub root_after: Duration,
}

impl Default for DetectorSettings {
    fn default() -> Self {
        DetectorSettings {
            heartbeat: Duration::from_millis(200),
            dead_after: Duration::from_secs(2),
            stalled_after: Duration::from_secs(30),
            root_after: Duration::from_secs(30),
        }
    }
}
