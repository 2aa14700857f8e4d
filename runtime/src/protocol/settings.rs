//! The settings of fishing and supervision.

use std::time::Duration;

/// The settings of a [`Node`](super::Node).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolSettings {
    /// How a PE asks for work and when it gives some away.
    pub fishing: FishingSettings,
    /// The number of times that a lost task is run again before it is given up. Default 5.
    pub max_replicas: u32,
    /// The number of lost tasks that a PE handles in one turn: tasks lost with a PE, and tasks that
    /// it runs itself because no other PE is left. At least 1; default [`LOSSES_PER_TURN`].
    pub losses_per_turn: usize,
    /// A rule of the protocol to leave out, to see that the proofs notice.
    #[cfg(feature = "mutants")]
    pub mutant: Option<super::supervision::SupervisionMutant>,
}

/// The number of times that a lost task is run again, unless set otherwise. It is generous: a task
/// that lives as long as the job can be on many PEs that die without being the cause.
pub const MAX_REPLICAS: u32 = 5;

/// The number of lost tasks that a PE handles in one turn, unless set otherwise. Of a million lost
/// tasks, 256 took 0.27 ms (median) and 0.8 ms at most, on two busy cores; `longest_turn` in
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

/// How a PE asks for work and when it gives some away (SymGridPar2 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FishingSettings {
    /// Low-water mark: a PE with this many waiting tasks or fewer goes fishing, so that the steal
    /// overlaps the last local work. Default: the number of its worker threads.
    pub max_fish: usize,
    /// The number of waiting tasks that a victim keeps at least; 1 while any of its workers has
    /// nothing to do. A victim whose workers are all busy gives even its last task to a thief with
    /// a worker that has nothing to do. (Otherwise the last task of a job could bounce between two
    /// PEs, or wait on one while another is idle.) Default: the number of its worker threads.
    pub min_sched: usize,
    /// The shortest time from a FISH that finds nothing to the next one. Default 20 µs. For this
    /// time the FISH waits at the last PE that it asked, which may get work.
    pub min_fish_delay: Duration,
    /// The longest such time; not less than `min_fish_delay`. It is random, and its mean doubles up
    /// to half of this. Default 20 ms: the fishing of idle PEs is then no load.
    pub max_fish_delay: Duration,
    /// How long a PE waits for the answer to a FISH before it casts another: twice as long after
    /// each that is not answered in time, 16 times at most. More than zero; default 250 ms.
    pub fish_deadline: Duration,
    /// The number of times that a FISH is passed on before the last victim answers NOWORK. Default
    /// 7.
    pub max_hops: u8,
    /// The most tasks in one SCHEDULE; at least 1. Default 32.
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
