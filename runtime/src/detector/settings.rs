//! The detector's time limits.

use std::time::Duration;

/// How fast a dead PE is noticed. All PEs of a job use the same settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetectorSettings {
    /// The time between two heartbeats of a PE to the PEs that it watches, and that watch it. More
    /// than zero; default 450 ms.
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
    /// Whether another PE takes the place of a root that is lost. Then a mistake costs no more than
    /// one about another PE, and `root_after` does not count. Default: no.
    pub succession: bool,
}

/// A PE has four partners (`watch/rings.rs`), so it sends nine heartbeats a second.
///
/// More would not make a verdict safer. A silent PE is dialled from 2/5 of `dead_after` on, after
/// two heartbeats, and as often whatever the heartbeat is. If packets are lost, TCP's repetitions
/// count: at first after 200 ms, and then after twice as long each time. So the first heartbeat
/// after the last contact is sent four times within `dead_after`: at 0.2, 0.4, 0.8 and 1.6 s if
/// PEs beat each 200 ms, and at 0.45, 0.65, 1.05 and 1.85 s if they beat each 450 ms.
///
/// What it costs against 200 ms: a silent host is given up after 1.9 to 2.3 s instead of 1.8 to
/// 2.1 s (in simulated jobs), since its last heartbeat may be older; and a PE that only its
/// neighbours' heartbeats tell of a death hears of it up to 250 ms later.
const HEARTBEAT: Duration = Duration::from_millis(450);

impl Default for DetectorSettings {
    fn default() -> Self {
        DetectorSettings {
            heartbeat: HEARTBEAT,
            dead_after: Duration::from_secs(2),
            stalled_after: Duration::from_secs(30),
            root_after: Duration::from_secs(30),
            succession: false,
        }
    }
}
