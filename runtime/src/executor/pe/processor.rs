//! One PE: its parts, and what they do for each other.

use super::driver::Driver;
use crate::code::Name;
use crate::error::TaskError;
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
use crate::executor::task::cancel::{Cancelled, register_pe};
use crate::executor::task::start::{Start, Waiting};
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

/// What is left of a message for the value inside it, in bytes: the rest of a SCHEDULE with one
/// task, or of a RESULT, is shorter.
const MESSAGE_OVERHEAD_BYTES: usize = 80;

/// A PE's part in a job that is about to run.
pub struct Job {
    /// Which PE this is.
    pub me: Pe,
    /// Where all PEs are.
    pub topology: Arc<Topology>,
    /// How they are connected.
    pub lane: Box<dyn Lane>,
    /// How this PE behaves.
    pub settings: Settings,
    /// How it hears of deaths. `None`: PEs of one process die together.
    pub detector: Option<DetectorSetup>,
    /// What was exchanged to make up the job.
    pub bootstrap: Exchanged,
}

/// Bytes that went between a PE and the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// What it told them.
    pub sent_bytes: u64,
    /// What it was told, its own included.
    pub received_bytes: u64,
}

/// A task in the queues of a PE.
pub(crate) type Task = Waiting<Processor>;

thread_local! {
    /// What the thread is for the PE whose worker it is.
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

/// One PE.
pub(crate) struct Processor {
    me: Pe,
    pub(crate) topology: Arc<Topology>,
    pub(crate) settings: Settings,
    pub(crate) queues: Arc<Queues<Task>>,
    pub(crate) timers: Timers,
    /// What workers have for other PEs and nobody has sent yet.
    pub(crate) outbox: SegQueue<Outgoing>,
    /// Workers at work, or called to work. At most `settings.threads`.
    pub(crate) active: AtomicUsize,
    /// Of these, workers that were called and have not come yet.
    pub(crate) called: AtomicUsize,
    /// Of these, workers that look for work.
    pub(crate) idle: AtomicUsize,
    /// Workers that were called all at once and have not heard of it yet.
    pub(crate) called_all: AtomicUsize,
    /// Whether one of those at work was asked to help out if it only waits, and has not heard of it
    /// yet.
    pub(crate) is_help_called: AtomicBool,
    /// Whether a worker could not come when it was called, and work was left.
    pub(crate) was_declined: AtomicBool,
    /// `None` once the PE has left: then the lane must not be touched any more.
    engine: Mutex<Option<Engine<Processor>>>,
    /// What its tasks share.
    pub(crate) store: Store,
    /// Who is to hear of deaths.
    pub(crate) death_listeners: DeathListeners,
    /// What handles are of.
    pub(crate) values: Values,
    /// What is stolen from it and takes long to pack.
    pub(crate) packer: Serial<(Fish, Task)>,
    /// What it was told.
    pub(crate) inbox: Inbox,
    /// How many of its futures have their tasks elsewhere, after the last turn.
    pub(crate) away: AtomicUsize,
    /// What has come for futures amid tasks.
    pub(crate) unsettled: Mutex<Results>,
    /// Tasks of other PEs that run here.
    pub(crate) guests: Guests,
    /// Tasks that are not wanted any more.
    pub(crate) cancelled: Cancelled,
    /// Its number among the PEs of this process.
    pub(crate) slot: AtomicU64,
    /// For what tasks choose at random.
    random: Mutex<Xoshiro256PlusPlus>,
    /// The workers. `None` once the PE has left, so that they end though a forgotten future may
    /// still hold the PE.
    rayon: Mutex<Option<rayon::ThreadPool>>,
    /// Belongs to the lane, and goes with it.
    sleeper: Mutex<Weak<dyn Sleeper>>,
    /// What must not wait for a worker.
    pub(crate) standby: Standby,
    /// Who looks after the messages when no worker does.
    pub(crate) driver: Driver,
    /// The way to a lane's calls that may not return.
    pub(crate) mpi_gate: MpiGate,
    /// What is known of deaths.
    pub(crate) liveness: Arc<Liveness>,
    /// Tasks dropped when their turn came, or stopped, since their home had died.
    pub(crate) orphans: AtomicU64,
    pub(crate) started: Instant,
    bootstrap: Exchanged,
    /// Started as tasks and none of the user's: what counts, and what reads messages.
    pub(crate) uncounted: AtomicU64,
    /// Tasks that cannot begin yet, since values are on their way.
    pub(crate) waiting_for_values: AtomicUsize,
    pub(crate) main_ended: AtomicBool,
    /// Set once: no more tasks are started.
    ending: AtomicBool,
    /// Set once: nothing is queued any more.
    is_closed: AtomicBool,
    failure: Mutex<Option<JobError>>,
}

impl Processor {
    pub(crate) fn start(job: Job) -> Result<Arc<Self>, JobError> {
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
        // Another stream for each PE, or all would ask the same victims.
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
            waiting_for_values: AtomicUsize::new(0),
            main_ended: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            failure: Mutex::new(None),
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

    /// Whether a PE is known to have died.
    pub(crate) fn is_dead(&self, pe: Pe) -> bool {
        self.liveness.is_dead(pe)
    }

    /// The engine, if it is free.
    pub(crate) fn try_engine(&self) -> Option<MutexGuard<'_, Option<Engine<Processor>>>> {
        self.engine.try_lock().ok()
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Option<Engine<Processor>>> {
        // A panic under the lock is a defect of ours; the job ends by other means then.
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

    pub(crate) fn fail(&self, error: JobError) {
        let said = error.to_string();
        let is_roots_loss = matches!(error, JobError::RootLost { .. });
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.start_ending();
        self.nudge();
        // Last, since the end does not depend on what can be said.
        if is_roots_loss {
            // All say so at the same time, and the program is told.
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

    /// Has the driver look after messages and timers at once.
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

    /// The lane has changed, and with it what the driver sleeps in.
    pub(crate) fn set_sleeper(&self, sleeper: &Arc<dyn Sleeper>) {
        *self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(sleeper);
        self.nudge();
    }

    /// Has one of the workers run this. Whether there are any: not once the PE has left.
    pub(crate) fn spawn_on_worker(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.with_workers(|workers| workers.spawn(job))
    }

    /// Does something with the workers. Whether there are any: not once the PE has left.
    pub(crate) fn with_workers(&self, act: impl FnOnce(&rayon::ThreadPool)) -> bool {
        let rayon = self.rayon.lock().unwrap_or_else(PoisonError::into_inner);
        rayon.as_ref().map(act).is_some()
    }

    /// Other threads are the workers from now on.
    pub(crate) fn replace_workers(&self, workers: rayon::ThreadPool) {
        let mut rayon = self.rayon.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = &mut *rayon {
            *old = workers;
        }
    }

    /// Whether this PE leaves without a word.
    pub(crate) fn leaves_silently(&self) -> bool {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().is_some_and(JobError::leaves_silently)
    }

    /// Whether nothing is queued any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Why this PE cannot go on, if it cannot.
    pub(crate) fn take_failure(&self) -> Option<JobError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets go of everything that waits, and of the workers.
    pub(crate) fn close(&self) {
        self.mpi_gate.seal();
        let engine = self.engine().take();
        if let Some(link) = engine.as_ref().map(|engine| engine.link_counters()) {
            tracing::debug!(pe = self.me.number(), ?link, "the port is closed");
            if link.corrupt > 0 {
                tracing::warn!(pe = self.me.number(), "{} damaged frames came", link.corrupt);
            }
        }
        while let Some(outgoing) = self.outbox.pop() {
            if let Outgoing::Task(_, task) | Outgoing::Ask(_, task) = outgoing {
                task.future.fill(Err(TaskError::ShuttingDown));
            }
        }
        let futures = engine.into_iter().flat_map(|engine| engine.into_futures());
        futures.for_each(|future| future.fill(Err(TaskError::ShuttingDown)));
        self.guests.clear();
        self.queues.clear();
        self.standby.close();
        self.timers.clear();
        self.queues.clear();
        self.store.forget(|_| true);
        self.values.clear();
        self.is_closed.store(true, Ordering::SeqCst);
        let workers = self.rayon.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(workers);
    }
}

/// The longest argument or result that fits into a message, in bytes.
fn value_bytes_max(settings: &Settings) -> usize {
    settings.port.message_bytes_max.saturating_sub(MESSAGE_OVERHEAD_BYTES)
}
