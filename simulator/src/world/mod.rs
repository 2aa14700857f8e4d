//! A job in the middle of its run: time goes from event to event.

pub(crate) mod broken_paths;
pub(crate) mod detection;
pub(crate) mod events;
pub(crate) mod frames;
mod offices;
mod verdict;

use crate::dice::Dice;
use crate::job::SimulatedJob;
use crate::pe::SimulatedPe;
use crate::pe::effects::WorkerEffect;
use crate::pe::lane::{LaneEnd, SentFrame, SentFrames, SimulatedLane};
use crate::pe::pace::Pace;
use crate::pe::shelf::SharedShelf;
use crate::pe::site::{SimulatedSite, Suspicions};
use crate::pe::workers::{Outbox, Workers};
use crate::report::{RunFault, RunReport, SimulatedRun};
use crate::transit::Transit;
use broken_paths::BrokenPaths;
use detection::{Detectors, EngineRequest};
use events::{Event, EventQueue};
use frames::FALLBACK_NS;
use offices::Offices;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, process};
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::executor::engine::{Engine, EngineSite};
use ultramarine_runtime::protocol::{Node, Pool, Radii};
use ultramarine_runtime::transport::{Lane, Port};
use ultramarine_topology::Pe;

/// A job in the middle of its run.
pub(crate) struct Simulation {
    pub(crate) job: SimulatedJob,
    pub(crate) now: u64,
    events: EventQueue,
    /// An empty queue, with room for the frames of a turn.
    frames: VecDeque<SentFrame>,
    /// What the PE whose turn it is has sent, and whom its engine has not heard of for a while.
    sent: SentFrames,
    suspicions: Suspicions,
    /// By PE; `None`: it is gone.
    pub(crate) pes: Vec<Option<Box<SimulatedPe>>>,
    /// How many are there.
    present: u32,
    /// How many workers compute.
    computing: u64,
    /// How many are nine in ten.
    most_workers: u64,
    /// After this moment nothing arrives any more of what the first has sent the second.
    cuts: BTreeMap<(Pe, Pe), u64>,
    /// What is cut between PEs that live.
    pub(crate) broken_paths: BrokenPaths,
    pub(crate) detectors: Detectors,
    /// Until then everything is slow.
    pub(crate) overloaded_until: u64,
    pub(crate) dice: Dice,
    pub(crate) report: RunReport,
    offices: Offices,
    fault: Option<RunFault>,
    pub(crate) is_verbose: bool,
}

/// How often a PE that ends takes a turn, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

/// The shortest time between a turn and the next one that nothing but the turn calls for, in
/// nanoseconds.
const TURN_NS: u64 = 1_000;

/// The longest that a thread takes to pack a task, in nanoseconds.
const PACK_NS_MAX: u64 = 2_000_000;

impl Simulation {
    pub(crate) fn new(job: SimulatedJob, is_verbose: bool) -> Simulation {
        let mut dice = Dice::new(!job.seed);
        let count = job.topology.pes();
        let turns = (SentFrames::default(), Suspicions::default());
        let pes = (0..count).map(Pe::new);
        let pes = pes.map(|pe| Some(Box::new(simulated_pe(pe, &job, &turns, &mut dice))));
        let pes = pes.collect();
        let (sent, suspicions) = turns;
        Simulation {
            pes,
            present: count,
            computing: 0,
            most_workers: job.speeds.iter().map(|speed| speed.threads as u64).sum::<u64>() * 9 / 10,
            now: 0,
            events: EventQueue::default(),
            frames: VecDeque::new(),
            sent,
            suspicions,
            cuts: BTreeMap::new(),
            broken_paths: BrokenPaths::default(),
            detectors: Detectors::new(&job),
            overloaded_until: 0,
            dice,
            report: RunReport { pes: count, ..RunReport::default() },
            offices: Offices::default(),
            fault: None,
            is_verbose,
            job,
        }
    }

    /// Lets the job run until all PEs are gone.
    pub(crate) fn run(mut self) -> SimulatedRun {
        for (at, fault) in std::mem::take(&mut self.job.faults) {
            self.schedule(at, Event::Fault(fault));
        }
        if let Some(root) = &mut self.pes[0] {
            root.site.workers().begin();
        }
        for (at, event) in self.detectors.starts(&mut self.dice) {
            self.schedule(at, event);
        }
        (0..self.report.pes).for_each(|pe| self.want_turn(Pe::new(pe), 0));
        while (self.present > 0 || self.detectors.are_running()) && self.fault.is_none() {
            let Some((at, event)) = self.events.next() else { break };
            self.now = at;
            self.report.events += 1;
            if self.report.events > self.job.events_max {
                self.fault.get_or_insert(RunFault::Hung("it does not end".to_owned()));
            }
            self.handle_event(event);
        }
        self.judge()
    }

    fn handle_event(&mut self, event: Event) {
        if let Some(place) = event.place() {
            let Some(pe) = &mut self.pes[place.index()] else { return };
            if self.now < pe.stopped_until {
                if let Event::Turn(_) = event {
                    pe.turn_scheduled = pe.stopped_until;
                }
                let again = pe.stopped_until;
                return self.schedule(again, event);
            }
        }
        if self.is_verbose && !event.is_routine() {
            self.print_event(format_args!("{event:?}"));
        }
        match event {
            Event::Arrive { lane, from, to, frame } => self.arrive(lane, from, to, frame),
            Event::Computed { at, task } => self.computed(at, task),
            Event::Slept { at, task } => {
                if let Some(pe) = &self.pes[at.index()] {
                    pe.site.workers().resume(task);
                    self.turn(at);
                }
            }
            Event::Packed { at, packed } => {
                if let Some(pe) = &self.pes[at.index()] {
                    pe.site.workers().packed(packed.0, packed.1);
                    self.turn(at);
                }
            }
            Event::Turn(at) => self.turn_if_due(at),
            Event::Grace(at) => {
                self.report.late += 1;
                self.leave(at);
            }
            Event::Fault(fault) => self.inject(fault),
            event => self.detect(event),
        }
    }

    pub(crate) fn schedule(&mut self, at: u64, event: Event) {
        self.events.schedule(at, event);
    }

    /// A PE takes a turn at this moment, or before.
    pub(crate) fn want_turn(&mut self, pe: Pe, at: u64) {
        let Some(wanted) = &mut self.pes[pe.index()] else { return };
        wanted.turn_at = wanted.turn_at.min(at);
        if wanted.turn_at < wanted.turn_scheduled {
            wanted.turn_scheduled = wanted.turn_at;
            let at = wanted.turn_at;
            self.schedule(at, Event::Turn(pe));
        }
    }

    fn turn_if_due(&mut self, at: Pe) {
        let Some(pe) = &mut self.pes[at.index()] else { return };
        if pe.turn_scheduled != self.now {
            // An earlier one has come before it.
            return;
        }
        pe.turn_scheduled = u64::MAX;
        if pe.turn_at <= self.now {
            self.turn(at);
        } else if pe.turn_at < u64::MAX {
            let later = pe.turn_at;
            self.want_turn(at, later);
        }
    }

    /// A worker has computed, and goes on with its task or another.
    fn computed(&mut self, at: Pe, task: u64) {
        self.note_computing(-1);
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let mut workers = pe.site.workers();
        workers.go_on(task);
        // A worker takes its turn before the next task. One that spawns goes on without.
        let turn_at = match workers.is_between_tasks() {
            true => pe.pace.after_task(self.now),
            false if workers.has_free() || !pe.site.outbox().is_empty() => self.now,
            false => u64::MAX,
        };
        if turn_at > self.now {
            workers.dispatch(|other| pe.site.liveness.is_dead(other));
            if workers.take_ran_dry() {
                pe.pace.note_idle(self.now);
            }
        }
        let is_due = turn_at <= self.now || workers.has_free();
        drop(workers);
        if is_due {
            self.turn(at);
        } else {
            self.take_effects(at);
            self.want_turn(at, turn_at);
        }
    }

    /// Lets a PE do what there is to do, and sends what it says.
    pub(crate) fn turn(&mut self, at: Pe) {
        let Some(pe) = &mut self.pes[at.index()] else { return };
        pe.turn_at = u64::MAX;
        let turn = pe.turn(Duration::from_nanos(self.now));
        let suspects = self.suspicions.take();
        let (turn, effects) = match turn {
            Ok(turn) => turn,
            Err(JobError::Expelled { .. }) => return self.leave_expelled(at),
            Err(JobError::RootLost { .. }) => return self.leave_without_root(at),
            Err(error) => {
                return self.note_wrong(error.to_string());
            }
        };
        let is_ending = pe.site.workers().is_ending;
        let polls = (self.job.has_fallback, FALLBACK_NS);
        let ending = (is_ending, POLL_NS);
        let polls = [polls, ending].into_iter().filter(|(is_needed, _)| *is_needed);
        let polled = polls.map(|(_, every)| self.now + every).min();
        let due = turn.due.map(|due| (due.as_nanos() as u64).max(self.now + TURN_NS));
        let due = due.map(|due| pe.pace.does_at(due));
        if let Some(due) = due.into_iter().chain(polled).min() {
            self.want_turn(at, due);
        }
        self.send_frames(at);
        for whom in suspects {
            self.request(at, EngineRequest::Suspect(whom));
        }
        self.handle_effects(at, effects);
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let is_ending = pe.site.workers().is_ending;
        if is_ending && !std::mem::replace(&mut pe.is_ending, true) {
            let grace = self.job.shutdown_grace.as_nanos() as u64;
            self.schedule(self.now + grace, Event::Grace(at));
            self.want_turn(at, self.now + POLL_NS);
        } else if is_ending && pe.engine.may_leave() {
            self.leave(at);
        }
    }

    fn take_effects(&mut self, at: Pe) {
        let Some(pe) = &self.pes[at.index()] else { return };
        let effects = std::mem::take(&mut pe.site.workers().effects);
        self.handle_effects(at, effects);
    }

    fn handle_effects(&mut self, at: Pe, effects: Vec<WorkerEffect>) {
        for effect in effects {
            match effect {
                WorkerEffect::Compute(task, duration) => {
                    self.note_computing(1);
                    self.schedule(self.now + duration, Event::Computed { at, task });
                }
                WorkerEffect::Pack(fish, task) => {
                    let duration = self.dice.within(0..=PACK_NS_MAX);
                    let packed = Box::new((fish, task));
                    self.schedule(self.now + duration, Event::Packed { at, packed });
                }
                WorkerEffect::Sleep(task, duration) => {
                    self.schedule(self.now + duration, Event::Slept { at, task });
                }
                WorkerEffect::Mark => {
                    if let Some(pe) = &self.pes[at.index()] {
                        let counters = pe.engine.statistics();
                        self.report.marks.push((Duration::from_nanos(self.now), counters));
                    }
                }
                WorkerEffect::Note(what) => {
                    let (count, last) = self.report.noted.entry(what).or_default();
                    (*count, *last) = (*count + 1, Duration::from_nanos(self.now));
                }
                WorkerEffect::AskEnd => {
                    self.offices.note_end(at);
                    self.request(at, EngineRequest::AskEnd);
                }
                WorkerEffect::MainEnded(value) => {
                    self.offices.note_value(at, value, self.now);
                    self.report.took = Duration::from_nanos(self.now);
                }
                WorkerEffect::Die => self.die(at),
                WorkerEffect::Fault(fault) => self.note_wrong(fault),
            }
        }
    }

    /// One worker more, or less, computes.
    fn note_computing(&mut self, change: i64) {
        let before = self.computing;
        self.computing = before.saturating_add_signed(change);
        if before.max(self.computing) == self.most_workers && before != self.computing {
            self.report.full.get_or_insert(Duration::from_nanos(self.now));
        }
    }

    /// Prints an event, and ends the program if its reader has gone (`--tell | head`) or a disk is
    /// full.
    pub(crate) fn print_event(&self, event: fmt::Arguments<'_>) {
        let written = writeln!(io::stdout(), "{:>12.3} ms  {event}", self.now as f64 / 1e6);
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(0),
            Err(error) => {
                eprintln!("error: failed printing to stdout: {error}");
                process::exit(1);
            }
        }
    }

    /// The first fault of a run is the one that counts.
    pub(crate) fn note_wrong(&mut self, what: String) {
        self.fault.get_or_insert(RunFault::Wrong(what));
    }
}

/// A PE at the start of the job.
fn simulated_pe(
    me: Pe,
    job: &SimulatedJob,
    (sent, suspicions): &(SentFrames, Suspicions),
    dice: &mut Dice,
) -> SimulatedPe {
    let (topology, count) = (&job.topology, job.topology.pes());
    let speed = job.speeds[me.index()];
    let node = Node::new(me, topology.clone(), job.protocol_of(me));
    let lanes: [LaneEnd; 2] = Default::default();
    let [first, fallback] = [0, 1].map(|number: u8| {
        let at = usize::from(number);
        let (frame_bytes_max, end) = (job.frame_bytes_max[at], lanes[at].clone());
        let lane = SimulatedLane { pe: me, number, frame_bytes_max, end, sent: sent.clone() };
        Box::new(lane) as Box<dyn Lane>
    });
    let patience = job.port.resend_after * job.port.resends_max;
    let port = Port::new(me, count, first, job.port);
    let fallback = job.has_fallback.then_some(fallback);
    let shelves: Vec<_> =
        (0..Radii::of(topology).count()).map(|_| SharedShelf::default()).collect();
    let pool = Pool::new(shelves.iter().cloned());
    let outbox = Arc::new(Outbox::new());
    let sides = (&*shelves, outbox.clone());
    let workers = Workers::new(me, topology, speed, job.workload.clone(), sides);
    let sides = (suspicions, patience);
    let site = SimulatedSite::new(topology.clone(), outbox, workers, sides, job.outlives_root);
    let site = Arc::new(site);
    let engine = Engine::new(me, node, port, fallback, pool, dice.next());
    SimulatedPe {
        engine,
        site,
        lanes,
        transit: Transit::default(),
        pace: Pace::new(job.pace, me == Pe::ROOT),
        turn_at: u64::MAX,
        turn_scheduled: u64::MAX,
        is_ending: false,
        stopped_until: 0,
    }
}
