//! The rest of a simulated PE, as its engine sees it.

use super::effects::WorkerEffect;
use super::lock;
use super::shelf::{QueuedTask, SharedShelf};
use super::workers::{Outbox, Workers};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use ultramarine_runtime::executor::FailureDetector;
use ultramarine_runtime::executor::engine::{Effort, EngineSite, Liveness, Packed};
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Fish, Parcel};
use ultramarine_runtime::transport::Sleeper;
use ultramarine_topology::{Distance, Pe, Topology};

/// What is around an engine: workers, and what the failure detector has reported.
pub(crate) struct SimulatedSite {
    topology: Arc<Topology>,
    outbox: Arc<Outbox>,
    pub(crate) liveness: Liveness,
    workers: Arc<Mutex<Workers>>,
    patience: Duration,
    /// Whether the main task may be started anew here.
    outlives_root: bool,
    /// How often it has left a lane.
    lanes_left: AtomicU32,
}

impl SimulatedSite {
    pub(crate) fn new(
        topology: Arc<Topology>,
        outbox: Arc<Outbox>,
        workers: Arc<Mutex<Workers>>,
        (suspicions, patience): (&Suspicions, Duration),
        outlives_root: bool,
    ) -> Self {
        let liveness = Liveness::new(topology.pes());
        liveness.set_detector(Box::new(suspicions.clone()));
        lock(&workers).asks_end = outlives_root;
        let lanes_left = AtomicU32::new(0);
        SimulatedSite { topology, outbox, liveness, workers, patience, outlives_root, lanes_left }
    }

    pub(crate) fn workers(&self) -> MutexGuard<'_, Workers> {
        lock(&self.workers)
    }

    pub(crate) fn lanes_left(&self) -> u32 {
        self.lanes_left.load(Ordering::Relaxed)
    }
}

impl EngineSite for SimulatedSite {
    type Task = QueuedTask;
    type Shelf = SharedShelf;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    fn slot(&self) -> u64 {
        0
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn is_ending(&self) -> bool {
        self.workers().is_ending
    }

    fn start_ending(&self) {
        self.workers().is_ending = true;
    }

    fn waiting_for_values(&self) -> usize {
        0
    }

    fn note_away(&self, _: usize) {}

    fn shelf(&self, radius: Distance) -> usize {
        self.workers().radii.shelf(radius)
    }

    fn is_fork(_: &QueuedTask) -> bool {
        false
    }

    fn pack(&self, task: QueuedTask, effort: Effort) -> Option<Packed<QueuedTask>> {
        match task {
            QueuedTask::Guest(parcel) if self.liveness.is_dead(parcel.task.home) => {
                self.workers().counts.orphans += 1;
                None
            }
            QueuedTask::Guest(parcel) => Some(Packed::Guest(parcel)),
            // Packing an array takes a while.
            QueuedTask::Local(own) if effort != Effort::Full && own.body.many.is_some() => {
                Some(Packed::Later(QueuedTask::Local(own)))
            }
            QueuedTask::Local(own) => Some(Packed::Own(self.workers().depart(own))),
        }
    }

    fn pack_later(self: &Arc<Self>, fish: Fish, task: QueuedTask) {
        let mut workers = self.workers();
        match task {
            QueuedTask::Local(task) => workers.effects.push(WorkerEffect::Pack(fish, task)),
            QueuedTask::Guest(_) => workers.fault("a guest is in bytes already".to_owned()),
        }
    }

    /// Workloads see the pool.
    fn want_work(&self) {}

    fn accept(self: &Arc<Self>, parcel: Parcel) {
        self.workers().accept(parcel);
    }

    fn place(self: &Arc<Self>, parcel: Parcel) {
        self.workers().place(QueuedTask::Guest(parcel));
    }

    fn ask(self: &Arc<Self>, parcel: Parcel) {
        self.place(parcel);
    }

    fn deliver(self: &Arc<Self>, body: Bytes) {
        self.workers().deliver(&body);
    }

    fn cancel_guests(&self, _: Pe, _: &[u64]) {
        self.workers().fault("no program here cancels tasks".to_owned());
    }

    fn accept_root(self: &Arc<Self>, root: Pe) -> bool {
        let mut workers = self.workers();
        workers.root = root;
        if self.outlives_root && root == workers.me() {
            workers.begin_anew();
        }
        self.outlives_root
    }

    fn note_agreement(&self) {
        self.workers().end_main();
    }

    fn forget_dead(self: &Arc<Self>, dead: Pe) {
        self.workers().deaths.push(dead);
    }

    fn abandon_mpi(self: &Arc<Self>) {}

    fn leave_lane(&self, _: &Arc<dyn Sleeper>) {
        self.lanes_left.fetch_add(1, Ordering::Relaxed);
    }
}

/// The PEs that an engine has not heard of for a while. The simulated failure detector looks at
/// them after the turn, so all PEs of a simulation share the list.
#[derive(Clone, Default)]
pub(crate) struct Suspicions(Arc<Mutex<Vec<Pe>>>);

impl Suspicions {
    pub(crate) fn take(&self) -> Vec<Pe> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl FailureDetector for Suspicions {
    fn suspect(&self, pe: Pe) {
        lock(&self.0).push(pe);
    }

    // The simulation asks it itself.
    fn ask_end(&self) {}

    fn goodbye(self: Box<Self>) {}
}
