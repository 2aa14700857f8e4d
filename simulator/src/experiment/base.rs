//! A job on a modelled machine, and what a run of it came to.

use crate::fault::InjectedFault;
use crate::job::{Detection, SimulatedJob};
use crate::machine::Machine;
use crate::network::Network;
use crate::pe::pace::PaceSettings;
use crate::pe::workers::PeSpeed;
use crate::report::SimulatedRun;
use crate::traffic::Traffic;
use crate::workload::Workload;
use crate::workload::map::{ItemCosts, MapWorkload, Skeleton};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::detector::DetectorSettings;
use ultramarine_runtime::protocol::{FishingSettings, ProtocolSettings};
use ultramarine_runtime::transport::PortSettings;
use ultramarine_topology::Pe;

/// The frames of MPI, and those of TCP, in bytes (`transport/mpi/mod.rs`, `tcp/mod.rs`).
const FRAME_BYTES_MAX: [usize; 2] = [4 << 10, 64 << 10];

/// What starting and ending a task costs in the runtime beside spawning it, in nanoseconds
/// (`bench spawn`).
const TASK_NS: u64 = 60;

/// A job is over when its last PE has gone; one that waits for others gives up after this.
const SHUTDOWN_GRACE: Duration = Duration::from_mins(1);

/// A machine, its network, and the defaults of the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    /// The machine.
    pub(crate) machine: Machine,
    /// Its network.
    pub(crate) network: Network,
    /// The settings of the protocol. `max_fish` and `min_sched` of a PE are its workers.
    pub(crate) protocol: ProtocolSettings,
    /// How much later than asked for the system ends the pauses of threads, in nanoseconds.
    pub(crate) sleep_late_ns: u64,
    /// What goes wrong in each run, at moments in nanoseconds.
    pub(crate) faults: Vec<(u64, InjectedFault)>,
    /// All chance comes from it.
    pub(crate) seed: u64,
    /// Whether another PE takes the root's place when that dies.
    pub(crate) outlives_root: bool,
    /// Whether every event is printed.
    pub(crate) is_verbose: bool,
}

impl Base {
    /// A machine with the runtime's default settings.
    pub(crate) fn new(machine: Machine, network: Network, seed: u64) -> Self {
        let protocol = ProtocolSettings::new(FishingSettings::for_threads(1));
        Base {
            machine,
            network,
            protocol,
            sleep_late_ns: 0,
            faults: Vec::new(),
            seed,
            outlives_root: false,
            is_verbose: false,
        }
    }

    /// Runs a job in which these faults happen beside those of all runs, at these moments in
    /// nanoseconds.
    pub(crate) fn run(
        &self,
        workload: Arc<dyn Workload>,
        faults: Vec<(u64, InjectedFault)>,
    ) -> SimulatedRun {
        crate::world::Simulation::new(self.job(workload, faults), self.is_verbose).run()
    }

    pub(crate) fn job(
        &self,
        workload: Arc<dyn Workload>,
        mut faults: Vec<(u64, InjectedFault)>,
    ) -> SimulatedJob {
        let speed = |pe| PeSpeed {
            threads: self.machine.workers(pe) as usize,
            slowness: self.machine.slowness(pe),
            task_ns: TASK_NS,
        };
        faults.extend_from_slice(&self.faults);
        let has_faults = !faults.is_empty();
        let detector = DetectorSettings::default();
        let detection = has_faults.then_some(Detection {
            heartbeat: detector.heartbeat,
            dead_after: detector.dead_after,
            sees_after_ns: 10_000..=1_000_000,
            is_guarded: true,
            cuts_answer: false,
        });
        SimulatedJob {
            seed: self.seed,
            topology: self.machine.topology().clone(),
            speeds: (0..self.machine.pes()).map(|pe| speed(Pe::new(pe))).collect(),
            protocol: self.protocol.clone(),
            fishes_by_workers: true,
            pace: Some(PaceSettings {
                tasks_poll: workload.polls(),
                sleep_late: self.sleep_late_ns,
            }),
            traffic: Traffic::Modelled(self.machine.clone(), self.network.clone()),
            port: PortSettings { single_copy: false, ..PortSettings::default() },
            frame_bytes_max: FRAME_BYTES_MAX,
            has_fallback: has_faults,
            faults,
            outlives_root: self.outlives_root,
            detection,
            shutdown_grace: SHUTDOWN_GRACE,
            events_max: u64::MAX,
            workload,
        }
    }

    /// A map over this number of items. With faults its tasks are supervised.
    pub(crate) fn map(
        &self,
        skeleton: Skeleton,
        items: u64,
        costs: impl ItemCosts + 'static,
        is_supervised: bool,
    ) -> Arc<dyn Workload> {
        let (costs, is_supervised) = (Arc::new(costs), self.supervises(is_supervised));
        let topology = self.machine.topology();
        Arc::new(MapWorkload::new(items, costs, skeleton, is_supervised, topology, self.seed))
    }

    /// PEs look for work once an hour: nearly all that happens is something else.
    pub(crate) fn fish_seldom(&mut self) {
        let fishing = &mut self.protocol.fishing;
        fishing.min_fish_delay = Duration::from_hours(1);
        fishing.max_fish_delay = fishing.min_fish_delay;
    }

    /// Whether tasks are supervised: if that is asked for, or if something goes wrong, since a job
    /// does not survive the loss of a task that is not.
    pub(crate) fn supervises(&self, is_asked_for: bool) -> bool {
        is_asked_for || !self.faults.is_empty()
    }

    /// The efficiency of a run: the work over the time of all cores, from 0 to 1. With slow PEs,
    /// as if all were normal.
    pub(crate) fn efficiency(&self, run: &SimulatedRun) -> f64 {
        let time = run.report.took.as_secs_f64() * self.machine.cores() as f64;
        run.report.computed.as_secs_f64() / time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Variation;
    use crate::network::Preset;
    use crate::report::RunFault;
    use crate::workload::spawn_tree::{Fibonacci, SpawnTree};

    #[test]
    fn a_job_hangs_whose_pes_wait_when_nothing_comes() {
        let machine = Machine::of_cores(2, 1, &Variation::default()).expect("a machine");
        let base = Base::new(machine, Network::of(Preset::Ideal), 1);
        let problem = Fibonacci { n: 5, threshold: 2 };
        let tree =
            Arc::new(SpawnTree { problem, step_ns: 1.0, is_supervised: false, is_lazy: false });
        // It never begins.
        let run = crate::world::Simulation::new(base.job(tree, Vec::new()), false).judge();
        let text = "2 PEs wait, and nothing comes any more".to_owned();
        assert_eq!(run.fault, Some(RunFault::Hung(text)));
    }
}
