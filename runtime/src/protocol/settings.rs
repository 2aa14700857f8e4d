//! The numbers that govern fishing and supervision.

use std::time::Duration;

/// What governs a [`Node`](super::Node).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolSettings {
    /// How a PE asks for work and when it gives some away.
    pub fishing: FishingSettings,
    /// How many times a lost task is tried again before it is given up. Default 5.
    pub max_replicas: u32,
    /// How many lost tasks a PE works off in one turn: those that a death costs, and those that it
    /// runs itself since no other PE is left. At least 1. Default [`LOSSES_PER_TURN`].
    pub losses_per_turn: usize,
    /// Breaks a rule of the protocol, to see that the proofs notice.
    #[cfg(feature = "mutants")]
    pub mutant: Option<super::supervision::SupervisionMutant>,
}

/// How many times a lost task is tried again, unless set otherwise. Generous, since a task that
/// lives as long as the job can be on many PEs that die without being the cause.
pub const MAX_REPLICAS: u32 = 5;

/// How many lost tasks a PE works off in one turn, unless set otherwise. Of a million lost tasks,
/// 256 took 0.27 ms (median) and 0.8 ms at most, on two busy cores; `longest_turn` in
/// `protocol/tests/losses.rs` measures it.
pub const LOSSES_PER_TURN: usize = 128;

impl ProtocolSettings {
    /// These settings for fishing, and the defaults for the rest.
    pub fn new(fishing: FishingSettings) -> Self {
        ProtocolSettings {
            fishing,
            max_replicas: MAX_REPLICAS,
            losses_per_turn: LOSSES_PER_TURN,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// How a PE asks for work and when it gives some away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FishingSettings {
    /// Low-water mark: with this many waiting tasks or fewer the PE goes fishing, so that the steal
    /// overlaps the last local work. Default: the number of its worker threads.
    pub max_fish: usize,
    /// A victim keeps at least this many waiting tasks, unless the thief is starving: then the
    /// victim, which has something running, gives its last one. (Otherwise the last task of a
    /// job could bounce between two busy PEs, or wait on one while another stands idle.)
    /// Default: the number of its worker threads.
    pub min_sched: usize,
    /// The shortest wait after NOWORK. Default 20 µs.
    pub min_fish_delay: Duration,
    /// The longest wait after NOWORK; the wait is random and its mean doubles up to this.
    /// Default 20 ms: the fishing of idle PEs is then no load.
    pub max_fish_delay: Duration,
    /// How long an unanswered FISH counts as being on its way. Default 250 ms.
    pub fish_deadline: Duration,
    /// How many times a FISH is passed on before the last victim answers NOWORK. Default 7.
    pub max_hops: u8,
    /// How many tasks one SCHEDULE carries at most. Default 32.
    pub schedule_tasks_max: usize,
    /// A SCHEDULE takes no further task once its tasks' bodies have reached this many bytes.
    /// Default 4 KiB.
    pub schedule_bytes_max: usize,
}

impl FishingSettings {
    /// The defaults for a PE of `threads` worker threads.
    pub fn for_threads(threads: usize) -> Self {
        FishingSettings {
            max_fish: threads,
            min_sched: threads,
            min_fish_delay: Duration::from_micros(20),
            max_fish_delay: Duration::from_millis(20),
            fish_deadline: Duration::from_millis(250),
            max_hops: 7,
            schedule_tasks_max: 32,
            schedule_bytes_max: 4 << 10,
        }
    }
}
