//! All PEs, what is between them, and the time.

use super::broken_paths::BrokenPaths;
use super::dice::Dice;
use super::lane::{Frame, LaneEnd};
use super::pe::SimulatedPe;
use super::program::TaskSpec;
use super::report::{RunReport, SimulatedRun};
use super::scenario::{InjectedFault, Network, Scenario};
use super::site::SimulatedSite;
use super::workers::{Effect, LocalTask, Outbox, SharedShelf, Workers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::executor::engine::Engine;
use ultramarine_runtime::protocol::supervision::SupervisionMutant;
use ultramarine_runtime::protocol::{Fish, Membership, Node, Notice, Pool, Radii};
use ultramarine_runtime::transport::Port;
use ultramarine_topology::Pe;

/// What stays in order between two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// The detectors' connection.
    Notices,
    /// A lane: the first, or the fallback.
    Lane(usize),
}

/// Something that happens at some moment.
#[derive(Debug)]
pub(super) enum Event {
    /// A frame arrives over a lane.
    Arrive { lane: usize, from: Pe, to: Pe, frame: Frame },
    /// A worker has computed.
    Computed { at: Pe, task: u64 },
    /// A task has been packed for the thief that sent the FISH.
    Packed { at: Pe, fish: Fish, task: LocalTask },
    /// A PE takes a turn.
    Turn(Pe),
    /// A PE that ends takes turns until it may go.
    Poll(Pe),
    /// The end of the job has been waited for long enough.
    Grace(Pe),
    /// A notice arrives.
    Notice { from: Pe, to: Pe, notice: Notice },
    /// A PE has been without contact with another since then, and looks whether it still is.
    See { by: Pe, whom: Pe, since: u64 },
    /// A PE's heartbeats go out.
    Beat(Pe),
    /// The membership waits for an answer.
    Patience(Pe),
    /// Something goes wrong.
    InjectedFault(InjectedFault),
}

impl Event {
    /// The PE that must not be stopped for it to happen. (Frames arrive at a PE that is stopped,
    /// which reads them later.)
    fn place(&self) -> Option<Pe> {
        match self {
            Event::Notice { to: at, .. }
            | Event::Computed { at, .. }
            | Event::Packed { at, .. }
            | Event::Turn(at)
            | Event::Poll(at)
            | Event::Grace(at)
            | Event::Beat(at)
            | Event::Patience(at)
            | Event::See { by: at, .. } => Some(*at),
            Event::Arrive { .. } | Event::InjectedFault(_) => None,
        }
    }

    /// Whether there are too many of them to be told.
    fn is_routine(&self) -> bool {
        match self {
            Event::Beat(_) | Event::Turn(_) | Event::See { .. } | Event::Poll(_) => true,
            Event::Notice { notice, .. } => matches!(notice, Notice::Known { .. }),
            _ => false,
        }
    }
}

/// A job in the middle of its run.
pub(super) struct Simulation {
    seed: u64,
    pub(super) scenario: Scenario,
    pub(super) now: u64,
    events: BTreeMap<(u64, u64), Event>,
    last_event: u64,
    /// By PE; `None`: it is gone.
    pub(super) pes: Vec<Option<Box<SimulatedPe>>>,
    /// When the last of each channel between two PEs arrives.
    arrivals: BTreeMap<(Pe, Pe, Channel), u64>,
    /// After this moment nothing arrives any more of what the first has sent the second.
    cuts: BTreeMap<(Pe, Pe), u64>,
    /// What is cut between PEs that live.
    pub(super) broken_paths: BrokenPaths,
    /// Pairs: the first checks whether it still reaches the second.
    pub(super) watching: BTreeSet<(Pe, Pe)>,
    /// Pairs: the first cannot see the second, for no reason (slander).
    pub(super) blind: BTreeSet<(Pe, Pe)>,
    /// Those whose host has gone with them.
    pub(super) silent: BTreeSet<Pe>,
    /// Until then everything is slow.
    pub(super) overloaded_until: u64,
    pub(super) dice: Dice,
    pub(super) report: RunReport,
    pub(super) value: Option<u64>,
    fault: Option<String>,
    pub(super) is_verbose: bool,
}

/// How often a PE that ends takes a turn, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

/// The shortest time between a turn and the next one that nothing but the turn calls for, in
/// nanoseconds.
const TURN_NS: u64 = 1_000;

/// How often a PE looks whether others have gone over to the fallback lane, in nanoseconds.
const FALLBACK_NS: u64 = 100_000_000;

/// The longest that a thread takes to pack a task, in nanoseconds.
const PACK_NS_MAX: u64 = 2_000_000;

/// No run takes this many events unless it never ends.
const EVENTS_MAX: u64 = 5_000_000;

impl Simulation {
    pub(super) fn new(
        seed: u64,
        mutant: Option<SupervisionMutant>,
        is_verbose: bool,
    ) -> Simulation {
        let mut dice = Dice::new(!seed);
        let mut scenario = Scenario::of(seed);
        scenario.settings.mutant = mutant;
        let topology = Arc::new(scenario.topology.clone());
        let program = Arc::new(scenario.program.clone());
        let count = topology.pes();
        let pes = (0..count).map(Pe::new).map(|me| {
            let node = Node::new(me, topology.clone(), scenario.settings.clone());
            let membership = Membership::new(me, count, scenario.dead_after);
            let Network { port, frame_bytes_max, has_fallback, .. } = &scenario.network;
            let lanes = frame_bytes_max.map(|bytes| LaneEnd::new(me, bytes));
            let [first, fallback] = lanes.each_ref().map(LaneEnd::lane);
            let patience = port.resend_after * port.resends_max;
            let port = Port::new(me, count, first, *port);
            let fallback = has_fallback.then_some(fallback);
            let radii = Radii::of(&topology);
            let shelves: Vec<_> = (0..radii.count()).map(|_| SharedShelf::default()).collect();
            let pool = Pool::new(shelves.iter().cloned());
            let outbox = Arc::new(Outbox::new());
            let sides = (&*shelves, outbox.clone());
            let workers = Workers::new(me, radii, scenario.threads, program.clone(), count, sides);
            let site = Arc::new(SimulatedSite::new(topology.clone(), outbox, workers, patience));
            let engine = Engine::new(me, node, port, fallback, pool, dice.next());
            Some(Box::new(SimulatedPe::new(engine, site, membership, lanes)))
        });
        let pes = pes.collect();
        Simulation {
            seed,
            pes,
            now: 0,
            events: BTreeMap::new(),
            last_event: 0,
            arrivals: BTreeMap::new(),
            cuts: BTreeMap::new(),
            broken_paths: BrokenPaths::default(),
            watching: BTreeSet::new(),
            blind: BTreeSet::new(),
            silent: BTreeSet::new(),
            overloaded_until: 0,
            dice,
            report: RunReport { pes: count, ..RunReport::default() },
            value: None,
            fault: None,
            is_verbose,
            scenario,
        }
    }

    /// Lets the job run until all PEs are gone.
    pub(super) fn run(mut self) -> SimulatedRun {
        let children = self.scenario.main.clone();
        let count = self.report.pes;
        for (at, fault) in self.scenario.injected_faults.clone() {
            self.schedule(at, Event::InjectedFault(fault));
        }
        if let Some(root) = &mut self.pes[0] {
            root.site.workers().begin(children);
        }
        for pe in (0..count).map(Pe::new) {
            let first_beat = self.dice.within(0..=1_000_000);
            self.schedule(first_beat, Event::Beat(pe));
            self.schedule(0, Event::Turn(pe));
        }
        while self.pes.iter().any(Option::is_some) && self.fault.is_none() {
            let Some(((at, _), event)) = self.events.pop_first() else { break };
            self.now = at;
            self.report.events += 1;
            if self.report.events > EVENTS_MAX {
                self.fault.get_or_insert("it does not end".to_owned());
            }
            self.handle_event(event);
        }
        self.judge()
    }

    fn handle_event(&mut self, event: Event) {
        if let Some(place) = event.place() {
            let Some(pe) = &self.pes[place.index()] else { return };
            if self.now < pe.stopped_until {
                return self.schedule(pe.stopped_until, event);
            }
        }
        if self.is_verbose && !event.is_routine() {
            println!("{:>12.3} ms  {event:?}", self.now as f64 / 1e6);
        }
        match event {
            Event::Arrive { lane, from, to, frame } => self.arrive(lane, from, to, frame),
            Event::Computed { at, task } => self.with(at, |workers| workers.computed(task)),
            Event::Packed { at, fish, task } => self.with(at, |workers| workers.packed(fish, task)),
            Event::Turn(at) => self.turn(at),
            Event::Poll(at) => {
                self.turn(at);
                self.schedule(self.now + POLL_NS, Event::Poll(at));
            }
            Event::Grace(at) => {
                self.report.late += 1;
                self.leave(at);
            }
            Event::InjectedFault(fault) => self.inject(fault),
            event => self.watch(event),
        }
    }

    pub(super) fn schedule(&mut self, at: u64, event: Event) {
        self.last_event += 1;
        self.events.insert((at, self.last_event), event);
    }

    /// Lets a PE's workers do something, and then what follows from it.
    fn with(&mut self, at: Pe, act: impl FnOnce(&mut Workers)) {
        if let Some(pe) = &self.pes[at.index()] {
            act(&mut pe.site.workers());
            self.turn(at);
        }
    }

    fn arrive(&mut self, lane: usize, from: Pe, to: Pe, frame: Frame) {
        let is_cut = self.cuts.get(&(from, to)).is_some_and(|cut| *cut < self.now);
        let Some(pe) = &self.pes[to.index()] else { return };
        if is_cut {
            return;
        }
        pe.lanes[lane].deliver(from, frame);
        // A PE does not wait for frames of the fallback lane, but looks at it from time to time.
        let is_awaited = lane == 0 || pe.lanes[0].is_left();
        let at = if is_awaited { self.now } else { self.now + FALLBACK_NS };
        self.schedule(at, Event::Turn(to));
    }

    /// Lets a PE do what there is to do, and sends what it says.
    fn turn(&mut self, at: Pe) {
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let turn = pe.turn(Duration::from_nanos(self.now));
        let suspects = pe.site.take_suspects();
        let (due, effects) = match turn {
            Ok(turn) => turn,
            Err(JobError::Expelled { .. }) => return self.leave_expelled(at),
            Err(JobError::RootLost { .. }) => return self.leave_without_root(at),
            Err(error) => (None, vec![Effect::Fault(error.to_string())]),
        };
        if let Some(due) = due {
            let due = (due.as_nanos() as u64).max(self.now + TURN_NS);
            if due < pe.turn_due || pe.turn_due <= self.now {
                pe.turn_due = due;
                self.schedule(due, Event::Turn(at));
            }
        }
        self.send_frames(at);
        for whom in suspects {
            self.begin_to_watch(at, whom, self.now);
        }
        for effect in effects {
            match effect {
                Effect::Compute(task, duration) => {
                    self.schedule(self.now + duration, Event::Computed { at, task });
                }
                Effect::Pack(fish, task) => {
                    let duration = self.dice.within(0..=PACK_NS_MAX);
                    self.schedule(self.now + duration, Event::Packed { at, fish, task });
                }
                Effect::MainEnded(value) => {
                    self.value = Some(value);
                    self.report.took = Duration::from_nanos(self.now);
                }
                Effect::Die => self.die(at),
                Effect::Fault(fault) => drop(self.fault.get_or_insert(fault)),
            }
        }
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let is_ending = pe.site.workers().is_ending;
        if is_ending && !std::mem::replace(&mut pe.is_ending, true) {
            let grace = self.scenario.shutdown_grace.as_nanos() as u64;
            self.schedule(self.now + grace, Event::Grace(at));
            self.schedule(self.now + POLL_NS, Event::Poll(at));
        } else if is_ending && pe.engine.may_leave() {
            self.leave(at);
        }
    }

    /// Sends what a PE has handed to its lanes.
    fn send_frames(&mut self, from: Pe) {
        for lane in [0, 1] {
            let Some(pe) = &self.pes[from.index()] else { return };
            let (frames, has_more) = pe.lanes[lane].take_sent();
            if has_more {
                self.schedule(self.now + TURN_NS, Event::Turn(from));
            }
            for (to, frame) in frames {
                let is_lost =
                    self.scenario.network.lost_one_in.is_some_and(|n| self.dice.one_in(n));
                // What is held up comes when the path is whole again, and else never.
                let open = self.broken_paths.opens(from, to, self.now).filter(|_| !is_lost);
                let Some(open) = open else { continue };
                let channel = Channel::Lane(lane);
                let at = self.arrival(from, to, channel).max(open);
                self.note_arrival(from, to, channel, at);
                self.schedule(at, Event::Arrive { lane, from, to, frame });
            }
        }
    }

    /// When something sent now arrives: after what was sent before.
    pub(super) fn arrival(&mut self, from: Pe, to: Pe, channel: Channel) -> u64 {
        let mut latency = self.dice.within(self.scenario.latency_ns.clone());
        if self.now < self.overloaded_until {
            latency += self.dice.within(0..=self.scenario.dead_after.as_nanos() as u64);
        }
        if self.dice.one_in(self.scenario.late_one_in) {
            latency += self.dice.within(0..=self.scenario.late_ns);
        }
        let at = (self.now + latency).max(self.last_arrival(from, to, channel) + 1);
        self.note_arrival(from, to, channel, at);
        at
    }

    fn note_arrival(&mut self, from: Pe, to: Pe, channel: Channel, at: u64) {
        let last = self.arrivals.entry((from, to, channel)).or_default();
        *last = at.max(*last);
    }

    pub(super) fn last_arrival(&self, from: Pe, to: Pe, channel: Channel) -> u64 {
        self.arrivals.get(&(from, to, channel)).copied().unwrap_or_default()
    }

    /// What a PE has sent may arrive in part.
    pub(super) fn cut_off(&mut self, dead: Pe) {
        for to in (0..self.report.pes).map(Pe::new) {
            let last = [0, 1].map(|lane| self.last_arrival(dead, to, Channel::Lane(lane)));
            let last = last[0].max(last[1]);
            let cut = self.now + self.dice.next() % (last.saturating_sub(self.now) + 2);
            self.cuts.insert((dead, to), cut);
        }
    }

    fn judge(self) -> SimulatedRun {
        let Simulation { scenario, value, report, seed, fault, broken_paths, .. } = self;
        let main = scenario.main.iter().map(|(spec, _)| spec.value(&scenario.program));
        let expected = TaskSpec::good(0, 0).combine(main);
        let fault = fault.or_else(|| match value {
            Some(value) if value != expected => {
                Some(format!("the result is {value:#x} instead of {expected:#x}"))
            }
            None if !report.has_root_died => Some("there is no result".to_owned()),
            _ => None,
        });
        let at_most = broken_paths.count() + report.slandered;
        let fault = fault.or_else(|| {
            (report.innocents > at_most)
                .then(|| format!("{} innocent PEs were expelled", report.innocents))
        });
        let fault = fault.or_else(|| {
            (report.misled > 0).then(|| format!("{} PEs left a root they reach", report.misled))
        });
        SimulatedRun { seed, report, fault }
    }
}
