//! What is simulated: the machine, the program, the network, and what goes wrong.

use crate::fault::InjectedFault;
use crate::pe::pace::PaceSettings;
use crate::pe::workers::PeSpeed;
use crate::traffic::Traffic;
use crate::workload::Workload;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_runtime::protocol::ProtocolSettings;
use ultramarine_runtime::transport::PortSettings;
use ultramarine_topology::{Pe, Topology};

/// See the [module](self).
pub(crate) struct SimulatedJob {
    pub(crate) seed: u64,
    pub(crate) topology: Arc<Topology>,
    /// By PE.
    pub(crate) speeds: Vec<PeSpeed>,
    pub(crate) workload: Arc<dyn Workload>,
    pub(crate) protocol: ProtocolSettings,
    /// Whether a PE's `max_fish` and `min_sched` are the number of its workers, as by default in a
    /// real job.
    pub(crate) fishes_by_workers: bool,
    /// `None`: a PE takes a turn as soon as there is a reason to.
    pub(crate) pace: Option<PaceSettings>,
    pub(crate) traffic: Traffic,
    pub(crate) port: PortSettings,
    /// The longest frame of the first lane, and of the fallback, in bytes.
    pub(crate) frame_bytes_max: [usize; 2],
    pub(crate) has_fallback: bool,
    pub(crate) faults: Vec<(u64, InjectedFault)>,
    /// Whether the job goes on when its root dies: the main task is started anew on another PE.
    pub(crate) outlives_root: bool,
    /// `None`: there is no failure detector.
    pub(crate) detection: Option<Detection>,
    /// How long the end of the job waits.
    pub(crate) shutdown_grace: Duration,
    /// No run takes more events than this, unless it never ends.
    pub(crate) events_max: u64,
}

/// How PEs watch each other.
#[derive(Clone, Debug)]
pub(crate) struct Detection {
    pub(crate) heartbeat: Duration,
    pub(crate) dead_after: Duration,
    /// How long it takes until the system closes what a PE had that has died, in nanoseconds. Only
    /// then do others see that it is gone.
    pub(crate) sees_after_ns: RangeInclusive<u64>,
    /// Each process has a guard, which says for a while that it has died.
    pub(crate) is_guarded: bool,
    /// A cut answers, as a firewall that rejects: calls are refused, and connections reset.
    pub(crate) cuts_answer: bool,
}

impl Detection {
    /// The settings of all detectors. Patience with a PE that is stopped, and with the root, is as
    /// many times `dead_after` as by default.
    pub(crate) fn settings(&self, succession: bool) -> DetectorSettings {
        let Detection { heartbeat, dead_after, .. } = *self;
        let defaults = DetectorSettings::default();
        let stretch = dead_after.div_duration_f64(defaults.dead_after);
        DetectorSettings {
            heartbeat,
            dead_after,
            stalled_after: defaults.stalled_after.mul_f64(stretch),
            root_after: defaults.root_after.mul_f64(stretch),
            succession,
        }
    }
}

impl SimulatedJob {
    /// How long a silence means death, in nanoseconds; 0 without a failure detector.
    pub(crate) fn dead_after_ns(&self) -> u64 {
        self.detection.as_ref().map_or(0, |it| it.dead_after.as_nanos() as u64)
    }

    /// The settings of a PE.
    pub(crate) fn protocol_of(&self, pe: Pe) -> ProtocolSettings {
        let mut protocol = self.protocol.clone();
        if self.fishes_by_workers {
            let threads = self.speeds[pe.index()].threads;
            (protocol.fishing.max_fish, protocol.fishing.min_sched) = (threads, threads);
        }
        protocol
    }
}
