//! One PE: its parts, and what connects them.

use super::agreement::Agreement;
use super::driver::Driver;
use crate::code::Name;
use crate::executor::engine::failure::JobError;
use crate::executor::engine::host::Results;
use crate::executor::engine::liveness::{DetectorSetup, Liveness};
use crate::executor::engine::mpi_gate::MpiGate;
use crate::executor::engine::site::Outgoing;
use crate::executor::engine::turn::Engine;
use crate::executor::keep::deaths::DeathListeners;
use crate::executor::keep::inbox::Inbox;
use crate::executor::keep::store::Store;
use crate::executor::keep::values::Values;
use crate::executor::schedule::guests::Guests;
use crate::executor::schedule::queues::{Queued, Queues, Seat};
use crate::executor::schedule::serial::Serial;
use crate::executor::schedule::standby::Standby;
use crate::executor::schedule::threads::workers;
use crate::executor::schedule::timers::Timers;
use crate::executor::task::activity::count_ends;
use crate::executor::task::cancel::{Cancelled, register_pe};
use crate::executor::task::start::{Start, Waiting};
use crate::forked::TakesPart;
use crate::protocol::{Fish, Node, ProtocolSettings, Radii, Statistics, Upkeep};
use crate::settings::Settings;
use crate::transport::{Lane, Port, Sleeper};
use crossbeam_queue::SegQueue;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use ultramarine_topology::{Pe, Topology};

/// Bytes of a message that are not the value inside it: the rest of a SCHEDULE with one task, or of
/// a RESULT, is shorter.
const MESSAGE_OVERHEAD_BYTES: usize = 80;

/// A PE's part in a job that is about to run.
pub struct Job {
    /// This PE.
    pub me: Pe,
    /// The place of each PE in the hierarchy.
    pub topology: Arc<Topology>,
    /// The lane that connects this PE with the others.
    pub lane: Box<dyn Lane>,
    /// How this PE behaves.
    pub settings: Settings,
    /// How this PE hears of deaths. `None` if all PEs are threads of one process, and die together.
    pub detector: Option<DetectorSetup>,
    /// What this PE sent and received at start-up, for the statistics.
    pub bootstrap: BootstrapTraffic,
}

/// Bytes that a PE exchanged with the others at start-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootstrapTraffic {
    /// Bytes it sent.
    pub sent_bytes: u64,
    /// Bytes it received, including its own contribution.
    pub received_bytes: u64,
}

/// A task in the queues of a PE.
pub(crate) type Task = Waiting<Processor>;

thread_local! {
    /// The seat of a thread that is a worker of a PE.
    static SEAT: RefCell<Option<Seat<Task>>> = const { RefCell::new(None) };
}

impl Queued for Task {
    fn function(&self) -> Option<Name> {
        Start::function(&**self)
    }

    fn call_off(self) {
        Start::call_off(&*self);
    }

    #[inline]
    fn with_seat<R>(act: impl FnOnce(&RefCell<Option<Seat<Task>>>) -> R) -> R {
        SEAT.with(act)
    }
}

/// Starts the main task on a PE. Runs no code of the user's, and waits for none.
type StartMain = dyn Fn(&Arc<Processor>) + Send + Sync;

/// A main task that another PE can start again when the root has died.
pub(crate) struct RestartableMain {
    pub(crate) start: Box<StartMain>,
    /// Whether the job may go on with this PE as its root.
    pub(crate) may_go_on: Box<dyn Fn(Pe) -> bool + Send + Sync>,
}

/// One PE.
pub(crate) struct Processor {
    me: Pe,
    pub(crate) topology: Arc<Topology>,
    pub(crate) settings: Settings,
    pub(crate) queues: Arc<Queues<Task>>,
    pub(crate) timers: Timers,
    /// What workers leave for the next turn to send.
    pub(crate) outbox: SegQueue<Outgoing>,
    /// Workers that work or have been called. At most `settings.threads`, plus those that MPI
    /// keeps.
    pub(crate) active: AtomicUsize,
    /// Of these, workers that were called and have not come yet.
    pub(crate) called: AtomicUsize,
    /// Of these, workers that look for work.
    pub(crate) idle: AtomicUsize,
    /// Workers that were called all at once and have not answered yet.
    pub(crate) called_all: AtomicUsize,
    /// Whether an active worker, which may only wait for another, has been asked to help and has
    /// not answered yet.
    pub(crate) is_help_called: AtomicBool,
    /// Whether a called worker could not come, and work was left.
    pub(crate) was_declined: AtomicBool,
    /// `None` once the PE has left: then the lane must not be used any more.
    engine: Mutex<Option<Engine<Processor>>>,
    /// Values that tasks share by key.
    pub(crate) store: Store,
    /// The parts that are told of deaths.
    pub(crate) death_listeners: DeathListeners,
    /// The values of handles.
    pub(crate) values: Values,
    /// Stolen tasks that take long to pack, for the packer thread.
    pub(crate) packer: Serial<(Fish, Task)>,
    /// Messages and deaths that the program has not heard yet.
    pub(crate) inbox: Inbox,
    /// How many of its futures had their tasks on other PEs, after the last turn.
    pub(crate) away: AtomicUsize,
    /// Results that arrived in turns amid tasks.
    pub(crate) unsettled: Mutex<Results>,
    pub(crate) has_unsettled: AtomicBool,
    /// Tasks of other PEs that run here.
    pub(crate) guests: Guests,
    /// Cancelled tasks.
    pub(crate) cancelled: Cancelled,
    /// Its number among the PEs of this process.
    pub(crate) slot: AtomicU64,
    /// For random choices of tasks.
    random: Mutex<Xoshiro256PlusPlus>,
    /// The workers. `None` once the PE has left, so that they end even if a forgotten future still
    /// holds the PE.
    pub(super) rayon: Mutex<Option<rayon::ThreadPool>>,
    /// The lane's; it goes with the lane.
    sleeper: Mutex<Weak<dyn Sleeper>>,
    /// What must not wait for a worker.
    pub(crate) standby: Standby,
    /// The thread that handles messages when no worker does.
    pub(crate) driver: Driver,
    /// The gate to MPI calls, which may not return.
    pub(crate) mpi_gate: MpiGate,
    /// What is known of deaths.
    pub(crate) liveness: Arc<Liveness>,
    /// The number of tasks dropped or stopped because their home had died.
    pub(crate) orphans: AtomicU64,
    pub(crate) started: Instant,
    bootstrap: BootstrapTraffic,
    /// Tasks that were started but are not the user's, such as readers of messages.
    pub(crate) uncounted: AtomicU64,
    /// Tasks of this PE whose results have come from other PEs, or were known before, while they
    /// are counted.
    pub(crate) ended_elsewhere: AtomicU64,
    /// The number of tasks that cannot start before values arrive that are being fetched.
    pub(crate) waiting_for_values: AtomicUsize,
    /// The main task, if the job outlives its root.
    pub(crate) main: Option<RestartableMain>,
    pub(crate) main_ended: AtomicBool,
    /// Whether the others agree that it ends here.
    pub(crate) agreement: Agreement,
    /// Set once: no more tasks are started.
    ending: AtomicBool,
    /// Set once: nothing is queued any more.
    pub(super) is_closed: AtomicBool,
    failure: Mutex<Option<JobError>>,
    /// `None` once the PE has left.
    pub(super) takes_part: Mutex<Option<TakesPart>>,
}

impl Processor {
    /// Starts a PE, with the main task if that can be started again.
    pub(crate) fn start(job: Job, main: Option<RestartableMain>) -> Result<Arc<Self>, JobError> {
        let Job { me, topology, mut lane, settings, detector, bootstrap } = job;
        let (queues, deques) = Queues::new(Radii::of(&topology), settings.threads);
        let seats: Vec<_> = deques.into_iter().map(|deques| Mutex::new(Some(deques))).collect();
        let seating = queues.clone();
        let rayon = workers(
            me,
            settings.threads,
            "worker",
            Box::new(move |index: usize| {
                let deques = seats[index].lock().unwrap_or_else(PoisonError::into_inner).take();
                deques.into_iter().for_each(|deques| seating.seat(deques));
            }),
        )
        .map_err(|reason| JobError::Threads { me, reason })?;
        let (fallback, begin) =
            detector.map_or((None, None), |setup| (setup.fallback, Some(setup.start)));
        let sleeper = Arc::downgrade(&lane.sleeper());
        let seed = settings.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        // Each PE has another stream, or all would ask the same victims.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(me.number()) << 32));
        let mut fishing = settings.fishing.clone();
        // Several tasks in one message must fit into it as well as one does.
        fishing.schedule_bytes_max = fishing.schedule_bytes_max.min(value_bytes_max(&settings));
        let mut protocol = ProtocolSettings::new(fishing);
        protocol.max_replicas = settings.max_replicas;
        let node = Node::new(me, topology.clone(), protocol);
        let mpi_gate = MpiGate::new(lane.take_pump());
        let mut port = Port::new(me, topology.pes(), lane, settings.patient_port());
        port.has_neighbours(topology.host_of(me));
        let (pool, seed) = (queues.common(0), random.next_u64());
        let engine = Engine::new(me, node, port, fallback, pool, seed);
        let pe = Arc::new(Processor {
            me,
            liveness: Arc::new(Liveness::new(topology.pes())),
            mpi_gate,
            topology,
            settings,
            queues,
            timers: Timers::default(),
            outbox: SegQueue::new(),
            active: AtomicUsize::new(0),
            called: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            called_all: AtomicUsize::new(0),
            is_help_called: AtomicBool::new(false),
            was_declined: AtomicBool::new(false),
            engine: Mutex::new(Some(engine)),
            store: Store::default(),
            death_listeners: DeathListeners::default(),
            values: Values::default(),
            packer: Serial::default(),
            inbox: Inbox::default(),
            away: AtomicUsize::new(0),
            unsettled: Mutex::default(),
            has_unsettled: AtomicBool::new(false),
            guests: Guests::default(),
            cancelled: Cancelled::default(),
            slot: AtomicU64::new(0),
            random: Mutex::new(random),
            rayon: Mutex::new(Some(rayon)),
            sleeper: Mutex::new(sleeper),
            standby: Standby::default(),
            driver: Driver::default(),
            orphans: AtomicU64::new(0),
            started: Instant::now(),
            bootstrap,
            uncounted: AtomicU64::new(0),
            ended_elsewhere: AtomicU64::new(0),
            waiting_for_values: AtomicUsize::new(0),
            main,
            main_ended: AtomicBool::new(false),
            agreement: Agreement::default(),
            ending: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            failure: Mutex::new(None),
            takes_part: Mutex::new(Some(TakesPart::begin())),
        });
        let weak: Weak<Processor> = Arc::downgrade(&pe);
        pe.slot.store(register_pe(weak), Ordering::Relaxed);
        if let Some(begin) = begin {
            pe.start_detector(begin)?;
        }
        Ok(pe)
    }

    pub(crate) fn me(&self) -> Pe {
        self.me
    }

    /// The longest argument or result that can travel.
    pub(crate) fn value_bytes_max(&self) -> usize {
        value_bytes_max(&self.settings)
    }

    /// Whether this PE has heard that another has died.
    pub(crate) fn is_dead(&self, pe: Pe) -> bool {
        self.liveness.is_dead(pe)
    }

    /// The PEs of whose death this PE has heard.
    pub(crate) fn dead(&self) -> impl Iterator<Item = Pe> + '_ {
        self.liveness.dead()
    }

    /// The engine, if it is free.
    pub(crate) fn try_engine(&self) -> Option<MutexGuard<'_, Option<Engine<Processor>>>> {
        self.engine.try_lock().ok()
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Option<Engine<Processor>>> {
        // A panic under this lock is a defect of ours; the job ends by other means then.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn random(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// What this PE has counted so far.
    pub(crate) fn local_statistics(&self) -> Statistics {
        let counted = self
            .engine()
            .as_ref()
            .map(|engine| (engine.statistics().clone(), engine.connections()));
        let (mut statistics, of_lanes) = counted.unwrap_or_default();
        let uncounted = self.uncounted.load(Ordering::SeqCst);
        statistics.tasks = self.queues.started().saturating_sub(uncounted);
        count_ends();
        let ended = self.queues.ended() + self.ended_elsewhere.load(Ordering::Relaxed);
        statistics.ended = (ended > 0).then_some((self.me.number(), ended)).into_iter().collect();
        statistics.orphans += self.orphans.load(Ordering::Relaxed);
        let connections = of_lanes + self.liveness.connections();
        statistics.upkeep = Upkeep {
            bootstrap_sent_bytes: self.bootstrap.sent_bytes,
            bootstrap_received_bytes: self.bootstrap.received_bytes,
            connections_opened: connections.opened,
            connections_accepted: connections.accepted,
        };
        statistics.upkeep_most = statistics.upkeep;
        statistics
    }

    /// This PE cannot go on. The first reason counts; each turn until it has left may find another.
    pub(crate) fn fail(&self, error: JobError) {
        let said = error.to_string();
        let is_roots_loss = matches!(error, JobError::RootLost { .. });
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = failure.is_none();
        failure.get_or_insert(error);
        drop(failure);
        self.start_ending();
        self.nudge();
        // Logged last, since the end does not depend on the log.
        if !is_first {
            tracing::debug!(pe = self.me.number(), "{said}");
        } else if is_roots_loss {
            // All PEs say so at the same time, and the program gets the error.
            tracing::info!(pe = self.me.number(), "{said}");
        } else {
            tracing::error!(pe = self.me.number(), "{said}");
        }
    }

    pub(crate) fn start_ending(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Has the driver handle messages and timers at once.
    pub(crate) fn nudge(&self) {
        self.driver.nudge();
        if let Some(sleeper) = self.sleeper() {
            sleeper.wake();
        }
    }

    /// What the driver sleeps in, while the lane is there.
    pub(crate) fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// The lane has changed: the driver sleeps in this from now on.
    pub(crate) fn set_sleeper(&self, sleeper: &Arc<dyn Sleeper>) {
        *self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(sleeper);
        self.nudge();
    }

    /// Has one of the workers run this job. Returns whether there are any: not once the PE has
    /// left.
    pub(crate) fn spawn_on_worker(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.with_workers(|workers| workers.spawn(job))
    }

    /// Runs `act` on the worker pool. Returns whether there is one: not once the PE has left.
    pub(crate) fn with_workers(&self, act: impl FnOnce(&rayon::ThreadPool)) -> bool {
        let rayon = self.rayon.lock().unwrap_or_else(PoisonError::into_inner);
        rayon.as_ref().map(act).is_some()
    }

    /// Makes other threads the workers.
    pub(crate) fn replace_workers(&self, workers: rayon::ThreadPool) {
        let mut rayon = self.rayon.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = &mut *rayon {
            *old = workers;
        }
    }

    /// Whether this PE cannot go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether this PE leaves without telling the others.
    pub(crate) fn leaves_silently(&self) -> bool {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().is_some_and(JobError::leaves_silently)
    }

    /// Whether nothing is queued any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// The error for which this PE cannot go on, if there is one.
    pub(crate) fn take_failure(&self) -> Option<JobError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The longest argument or result that fits into a message, in bytes.
fn value_bytes_max(settings: &Settings) -> usize {
    settings.port.message_bytes_max.saturating_sub(MESSAGE_OVERHEAD_BYTES)
}
