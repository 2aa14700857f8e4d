//! The detector's time limits.

use std::time::Duration;

/// How fast a dead PE is noticed. All PEs of a job use the same settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetectorSettings {
    /// The time between two heartbeats of a PE to the PEs that it watches, and that watch it. More
    /// than zero; default 200 ms.
    pub heartbeat: Duration,
    /// How long a host may give no answer before its PEs are declared dead. At least two
    /// heartbeats; default 2 s. (The end of a process is noticed at once, whatever this is.)
    pub dead_after: Duration,
    /// How long a PE may be silent while its host still answers: its process is stopped, or gets
    /// no core. If it is shorter than `dead_after`, `dead_after` counts. Default 30 s.
    pub stalled_after: Duration,
    /// How long the root may be silent, for whatever reason, before the other PEs leave. It is
    /// long, since a mistake about the root costs the job. If it is shorter than `dead_after`,
    /// `dead_after` counts. Default 30 s.
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
