//! One PE: its parts, and what connects them.

use super::counts::{BootstrapTraffic, Counts};
use super::crew::Crew;
use super::driver::Driver;
use super::ending::{Ending, RestartableMain};
use super::take_turn::drop_left;
use super::turns::Turns;
use crate::code::Name;
use crate::executor::engine::boards::{BoardSetup, EngineBoards};
use crate::executor::engine::failure::JobError;
use crate::executor::engine::liveness::{DetectorSetup, Liveness};
use crate::executor::engine::mpi_gate::MpiGate;
use crate::executor::engine::turn::Engine;
use crate::executor::keep::kept::Kept;
use crate::executor::schedule::guests::Guests;
use crate::executor::schedule::queues::{Deques, Queued, Queues, Seat};
use crate::executor::schedule::threads::workers;
use crate::executor::task::activity::count_ends;
use crate::executor::task::cancel::register_pe;
use crate::executor::task::start::{Start, Waiting};
use crate::lock::Lock;
use crate::os_memory::keep_freed;
use crate::protocol::{Node, ProtocolSettings, Radii, Statistics};
use crate::settings::Settings;
use crate::trace;
use crate::transport::{Lane, Port};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
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
    /// How PEs of this host take tasks of each other without a message, if they can.
    pub boards: Option<BoardSetup>,
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

/// One PE. Each part keeps its state to itself; what needs several of them is done here, and in the
/// files beside this one.
pub(crate) struct Processor {
    me: Pe,
    pub(crate) topology: Arc<Topology>,
    pub(crate) settings: Settings,
    /// Tasks that wait for a worker.
    pub(crate) queues: Arc<Queues<Task>>,
    /// The threads that run tasks.
    pub(super) crew: Crew,
    /// The engine, and what passes between it and the threads.
    pub(super) turns: Turns<Processor>,
    /// The thread that takes turns when no worker does.
    pub(super) driver: Driver,
    /// What is known of deaths.
    pub(crate) liveness: Arc<Liveness>,
    /// Tasks of other PEs that wait here, and what was cancelled.
    pub(super) guests: Guests,
    /// What is kept for tasks: values, messages, timers.
    pub(crate) kept: Kept,
    /// What only the statistics need.
    pub(super) counts: Counts,
    /// How far the PE is on its way out of the job.
    pub(super) ending: Ending<Processor>,
}

impl Processor {
    /// Starts a PE, with the main task if that can be started again.
    pub(crate) fn start(
        job: Job,
        main: Option<RestartableMain<Processor>>,
    ) -> Result<Arc<Self>, JobError> {
        keep_freed();
        let Job { me, topology, mut lane, settings, detector, bootstrap, boards } = job;
        let (queues, deques) = Queues::new(Radii::of(&topology), settings.threads);
        let pool = worker_pool(me, &queues, deques)?;
        let (fallback, begin) =
            detector.map_or((None, None), |setup| (setup.fallback, Some(setup.start)));
        let seed = settings.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        // Each PE has another stream, or all would ask the same victims.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(me.number()) << 32));
        let (driver, gate) = (Driver::new(&lane.sleeper()), MpiGate::new(lane.take_pump()));
        let node = Node::new(me, topology.clone(), protocol_settings(&settings));
        let mut port = Port::new(me, topology.pes(), lane, settings.patient_port());
        port.has_neighbours(topology.host_of(me));
        let seed = random.next_u64();
        let mut engine = Engine::new(me, node, port, fallback, queues.common(0), seed);
        let own_board = boards.as_ref().map(|boards| (boards.own.clone(), boards.host().len()));
        if let Some(boards) = boards {
            engine.use_boards(EngineBoards::new(me, &topology, boards));
        }
        let pe = Arc::new(Processor {
            me,
            crew: Crew::new(settings.threads, pool),
            liveness: Arc::new(Liveness::new(topology.pes())),
            topology,
            settings,
            queues,
            turns: Turns::new(engine, gate, own_board),
            driver,
            guests: Guests::default(),
            kept: Kept::new(random),
            counts: Counts::new(bootstrap),
            ending: Ending::new(main),
        });
        register_pe(&pe);
        if let Some(begin) = begin {
            pe.start_detector(begin)?;
        }
        Ok(pe)
    }

    /// Ends or drops everything that waits, and then the workers: the PE has left the job.
    pub(crate) fn close(&self) {
        self.sample_last();
        self.turns.close(self.me);
        self.guests.clear();
        self.queues.clear();
        self.crew.standby.close();
        self.kept.clear();
        self.queues.clear();
        self.ending.close();
        // A thread that leaves more from now on ends it itself.
        self.turns.end_outbox();
        self.crew.close();
        // Those that were being sent until now.
        drop_left();
        self.ending.take_no_part();
    }

    pub(crate) fn me(&self) -> Pe {
        self.me
    }

    /// Whether this PE runs the main task.
    pub(super) fn is_root(&self) -> bool {
        self.me == self.liveness.root()
    }

    /// Something will come within this time.
    pub(crate) fn expect(&self, within: Duration) {
        self.turns.expect(within);
    }

    /// The number of futures whose tasks were on other PEs after the last turn.
    pub(crate) fn away(&self) -> usize {
        self.turns.away()
    }

    /// Counts tasks of this PE as ended whose results were known before.
    pub(crate) fn note_known(&self, tasks: u64) {
        self.counts.add_ended_elsewhere(tasks);
    }

    /// What this PE has counted so far.
    pub(crate) fn local_statistics(&self) -> Statistics {
        self.statistics_with(self.turns.engine().as_ref())
    }

    /// The same for who has the engine.
    pub(super) fn statistics_with(&self, engine: Option<&Engine<Processor>>) -> Statistics {
        let counted = engine.map(|engine| (engine.statistics(), engine.connections()));
        let (mut statistics, of_lanes) = counted.unwrap_or_default();
        count_ends();
        let of_queues = (self.queues.started(), self.queues.ended());
        let connections = of_lanes + self.liveness.connections();
        self.counts.complete(&mut statistics, self.me, of_queues, connections);
        statistics
    }

    /// Starts the main task, if it can be started again.
    pub(crate) fn start_main(self: &Arc<Self>) {
        self.ending.main.iter().for_each(|main| (main.start)(self));
    }

    /// Waits until enough of the others have agreed that the job ends here. Only the root of a job
    /// that could go on without it has to ask.
    pub(crate) async fn agree_to_end(&self) {
        if self.ending.main.is_some() && self.is_root() && self.liveness.ask_end() {
            poll_fn(|task| self.ending.agreement.poll(task.waker())).await;
        }
    }

    /// The main task has ended here, and with it the job.
    pub(crate) fn end_main(&self) {
        self.ending.end_main();
        self.nudge();
    }

    /// Whether the main task has ended here.
    pub(crate) fn has_main_ended(&self) -> bool {
        self.ending.has_main_ended()
    }

    /// This PE cannot go on. The first reason counts; each turn until it has left may find another.
    pub(crate) fn fail(&self, error: JobError) {
        let said = error.to_string();
        let is_roots_loss = matches!(error, JobError::RootLost { .. });
        let mut failure = self.ending.failure();
        let is_first = failure.is_none();
        failure.get_or_insert(error);
        drop(failure);
        self.start_ending();
        self.nudge();
        // Said last, since the end does not depend on that.
        if !is_first {
            tracing::debug!(pe = self.me.number(), "{said}");
            return;
        }
        trace::note_event(self.me, || said.clone());
        if is_roots_loss {
            // All PEs say so at the same time, and the program gets the error.
            tracing::info!(pe = self.me.number(), "{said}");
        } else {
            tracing::error!(pe = self.me.number(), "{said}");
        }
    }

    pub(crate) fn start_ending(&self) {
        self.ending.begin();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.has_begun()
    }

    /// Whether nothing is queued any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.ending.is_closed()
    }

    /// Has the driver handle messages and timers at once.
    pub(crate) fn nudge(&self) {
        self.driver.nudge();
    }
}

/// The threads that become workers, each with its deques.
fn worker_pool(
    me: Pe,
    queues: &Arc<Queues<Task>>,
    deques: Vec<Deques<Task>>,
) -> Result<rayon::ThreadPool, JobError> {
    let seats: Vec<_> = deques.into_iter().map(|deques| Lock::new(Some(deques))).collect();
    let (threads, queues) = (seats.len(), queues.clone());
    let seat = move |index: usize| {
        let deques = seats[index].lock().take();
        deques.into_iter().for_each(|deques| queues.seat(deques));
    };
    workers(me, threads, "worker", Box::new(seat))
        .map_err(|reason| JobError::Threads { me, reason })
}

fn protocol_settings(settings: &Settings) -> ProtocolSettings {
    let mut fishing = settings.fishing.clone();
    // Several tasks in one message must fit into it as well as one does.
    fishing.schedule_bytes_max = fishing.schedule_bytes_max.min(value_bytes_max(settings));
    let mut protocol = ProtocolSettings::new(fishing);
    protocol.max_replicas = settings.max_replicas;
    protocol
}

/// The longest argument or result that fits into a message, in bytes.
pub(super) fn value_bytes_max(settings: &Settings) -> usize {
    settings.port.message_bytes_max.saturating_sub(MESSAGE_OVERHEAD_BYTES)
}
