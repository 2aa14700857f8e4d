//! All PEs, what is between them, and the time.

use super::broken_paths::BrokenPaths;
use super::dice::Dice;
use super::host::{Effect, SimulatedHost};
use super::pe::SimulatedPe;
use super::program::TaskSpec;
use super::report::{RunReport, SimulatedRun};
use super::scenario::{InjectedFault, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::supervision::SupervisionMutant;
use ultramarine_runtime::protocol::{Membership, Message, Node, Notice, Radii};
use ultramarine_topology::Pe;

/// What stays in order between two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MessageClass {
    Notice,
    Message,
    /// A message with a value. It comes after the messages that were sent before it, and may be
    /// overtaken by those after it.
    Value,
}

/// Something that happens at some moment.
#[derive(Debug)]
pub(super) enum Event {
    /// A message arrives.
    Arrive { from: Pe, to: Pe, message: Message },
    /// The sender hears that a message has arrived.
    Acknowledge { from: Pe, to: Pe },
    /// A worker has computed.
    Computed { at: Pe, task: u64 },
    /// The node is to be ticked.
    Tick(Pe),
    /// A PE that ends looks whether it may go.
    Poll(Pe),
    /// The end of the job has been waited for long enough.
    Grace(Pe),
    /// A notice arrives.
    Notice { from: Pe, to: Pe, notice: Notice },
    /// The node hears of a death.
    MarkDead { at: Pe, dead: Pe },
    /// The node hears that the job is over.
    Over(Pe),
    /// The node hears that it has to leave: the root is lost, or the others hold it for dead.
    LeaveInvoluntarily(Pe),
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
    /// Where it happens.
    fn place(&self) -> Option<Pe> {
        match self {
            Event::Arrive { to, .. } | Event::Notice { to, .. } => Some(*to),
            Event::Acknowledge { from, .. } => Some(*from),
            Event::Computed { at, .. }
            | Event::MarkDead { at, .. }
            | Event::Tick(at)
            | Event::Poll(at)
            | Event::Grace(at)
            | Event::Over(at)
            | Event::LeaveInvoluntarily(at)
            | Event::Beat(at)
            | Event::Patience(at)
            | Event::See { by: at, .. } => Some(*at),
            Event::InjectedFault(_) => None,
        }
    }

    /// Whether there are too many of them to be told.
    fn is_routine(&self) -> bool {
        match self {
            Event::Beat(_)
            | Event::Tick(_)
            | Event::See { .. }
            | Event::Poll(_)
            | Event::Acknowledge { .. } => true,
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
    /// When the last of each sort between two PEs arrives.
    arrivals: BTreeMap<(Pe, Pe, MessageClass), u64>,
    /// After this moment nothing arrives any more of what the first has sent the second.
    cuts: BTreeMap<(Pe, Pe), u64>,
    /// What is cut between PEs that live.
    pub(super) broken_paths: BrokenPaths,
    /// Who looks at whom, since there was no contact.
    pub(super) watching: BTreeSet<(Pe, Pe)>,
    /// Who does not see whom, whatever is so.
    pub(super) blind: BTreeSet<(Pe, Pe)>,
    /// Those whose host has gone with them.
    pub(super) silent: BTreeSet<Pe>,
    /// Until then everything is slow.
    pub(super) overloaded_until: u64,
    pub(super) dice: Dice,
    pub(super) report: RunReport,
    pub(super) value: Option<u64>,
    fault: Option<String>,
    is_verbose: bool,
}

/// How often a PE that ends looks whether it may go, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

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
            let radii = Radii::of(&topology);
            let host = SimulatedHost::new(
                me,
                count,
                radii,
                scenario.threads,
                program.clone(),
                dice.split(),
            );
            Some(Box::new(SimulatedPe::new(node, membership, host)))
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
            root.host.begin(children);
        }
        for pe in (0..count).map(Pe::new) {
            let first_beat = self.dice.within(0..=1_000_000);
            self.schedule(first_beat, Event::Beat(pe));
            self.turn(pe);
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
            Event::Arrive { from, to, message } => self.arrive(from, to, message),
            Event::Acknowledge { from, to } => {
                self.with(from, |pe| {
                    if let Some(count) = pe.unacknowledged.get_mut(&to) {
                        *count -= 1;
                        if *count == 0 {
                            pe.unacknowledged.remove(&to);
                        }
                    }
                });
            }
            Event::Computed { at, task } => self.with(at, |pe| pe.host.computed(task)),
            Event::Tick(at) => self.with(at, |_| {}),
            Event::Poll(at) => {
                self.with(at, |_| {});
                self.schedule(self.now + POLL_NS, Event::Poll(at));
            }
            Event::Grace(at) => {
                self.report.late += 1;
                self.leave(at);
            }
            Event::MarkDead { at, dead } => self.with(at, |pe| pe.mark_dead(dead)),
            // For the root the job is over when its main task says so.
            Event::Over(Pe::ROOT) => {}
            Event::Over(at) => {
                let now = Duration::from_nanos(self.now);
                self.with(at, |pe| pe.hear_goodbye(now));
            }
            Event::LeaveInvoluntarily(at) => self.leave_involuntarily(at),
            Event::InjectedFault(fault) => self.inject(fault),
            event => self.watch(event),
        }
    }

    pub(super) fn schedule(&mut self, at: u64, event: Event) {
        self.last_event += 1;
        self.events.insert((at, self.last_event), event);
    }

    /// Lets a PE do something, and then what follows from it.
    pub(super) fn with(&mut self, at: Pe, act: impl FnOnce(&mut SimulatedPe)) {
        if let Some(pe) = &mut self.pes[at.index()] {
            act(pe);
            self.turn(at);
        }
    }

    fn arrive(&mut self, from: Pe, to: Pe, message: Message) {
        let is_cut = self.cuts.get(&(from, to)).is_some_and(|cut| *cut < self.now);
        let Some(pe) = &mut self.pes[to.index()] else { return };
        if is_cut || pe.marked_dead.contains(&from) {
            return;
        }
        pe.node.handle(Duration::from_nanos(self.now), from, message, &mut pe.host);
        if from != to {
            let latency = self.dice.within(self.scenario.latency_ns.clone());
            if let Some(open) = self.broken_paths.opens(to, from, self.now) {
                self.schedule(open + latency, Event::Acknowledge { from, to });
            }
            self.notice_silence(from, to);
        }
        self.turn(to);
    }

    /// Lets a PE do what there is to do, and sends what it says.
    fn turn(&mut self, at: Pe) {
        let Some(pe) = &mut self.pes[at.index()] else { return };
        let before = pe.tick_due;
        let effects = pe.turn(self.now);
        let due = pe.tick_due;
        if due < u64::MAX && due != before {
            self.schedule(due.max(self.now), Event::Tick(at));
        }
        for effect in effects {
            match effect {
                Effect::Send(to, message) => self.post(at, to, message),
                Effect::Compute(task, duration) => {
                    self.schedule(self.now + duration, Event::Computed { at, task });
                }
                Effect::MainEnded(value) => {
                    self.value = Some(value);
                    self.report.took = Duration::from_nanos(self.now);
                }
                Effect::Die => self.die(at),
                Effect::Fault(fault) => drop(self.fault.get_or_insert(fault)),
                Effect::SpawnPlace(..) => {}
            }
        }
        let Some(pe) = &mut self.pes[at.index()] else { return };
        if pe.host.is_ending && !std::mem::replace(&mut pe.is_ending, true) {
            let grace = self.scenario.shutdown_grace.as_nanos() as u64;
            self.schedule(self.now + grace, Event::Grace(at));
            self.schedule(self.now + POLL_NS, Event::Poll(at));
        } else if pe.may_leave() {
            self.leave(at);
        }
    }

    fn post(&mut self, from: Pe, to: Pe, message: Message) {
        let Some(pe) = &mut self.pes[from.index()] else { return };
        if pe.marked_dead.contains(&to) {
            return;
        }
        if from != to {
            *pe.unacknowledged.entry(to).or_default() += 1;
        }
        // What is held up comes when the path is whole again, and else never.
        if let Some(open) = self.broken_paths.opens(from, to, self.now) {
            let class = if message.may_be_overtaken() {
                MessageClass::Value
            } else {
                MessageClass::Message
            };
            let at = self.arrival(from, to, class).max(open);
            self.note_arrival(from, to, class, at);
            self.schedule(at, Event::Arrive { from, to, message });
        }
        self.notice_silence(from, to);
    }

    /// The link has no answer to what it sent, and has the detector look.
    fn notice_silence(&mut self, from: Pe, to: Pe) {
        if from != to && !self.broken_paths.is_whole(from, to, self.now) {
            let resend_after = self.scenario.dead_after.as_nanos() as u64 / 2;
            self.begin_to_watch(from, to, self.now + resend_after);
        }
    }

    /// When something sent now arrives: after what was sent before, but for messages with a value,
    /// which those after them may overtake.
    pub(super) fn arrival(&mut self, from: Pe, to: Pe, class: MessageClass) -> u64 {
        let mut latency = self.dice.within(self.scenario.latency_ns.clone());
        if self.now < self.overloaded_until {
            latency += self.dice.within(0..=self.scenario.dead_after.as_nanos() as u64);
        }
        if self.dice.one_in(self.scenario.late_one_in) {
            latency += self.dice.within(0..=self.scenario.late_ns);
        }
        let latency = if from == to { 0 } else { latency };
        let ahead = if class == MessageClass::Value { MessageClass::Message } else { class };
        let at = (self.now + latency).max(self.last_arrival(from, to, ahead) + 1);
        self.note_arrival(from, to, class, at);
        at
    }

    fn note_arrival(&mut self, from: Pe, to: Pe, class: MessageClass, at: u64) {
        let last = self.arrivals.entry((from, to, class)).or_default();
        *last = at.max(*last);
    }

    pub(super) fn last_arrival(&self, from: Pe, to: Pe, class: MessageClass) -> u64 {
        self.arrivals.get(&(from, to, class)).copied().unwrap_or_default()
    }

    /// What a PE has sent may arrive in part.
    pub(super) fn cut_off(&mut self, dead: Pe) {
        for to in (0..self.report.pes).map(Pe::new) {
            let last = |class| self.last_arrival(dead, to, class);
            let last = last(MessageClass::Message).max(last(MessageClass::Value));
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
