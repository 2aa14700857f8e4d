//! The failure detectors: each PE has the runtime's own [`Watch`]. This module stands for its
//! owner, the detector's thread, and for the system and the network under it; it knows no rule of
//! detection.
//!
//! | file | what it stands for |
//! |---|---|
//! | this one | the thread: it hands over what arrives, takes turns, and does what a watch wants |
//! | `wires` | the connections |
//! | `packets` | what is sent on them, and when it arrives |
//! | `events` | what a detector tells its PE |
//! | `faults` | what goes wrong, and how processes end |
//! | `tally` | what the detectors have sent, and when their PEs learnt of each death |
//!
//! A watch takes a turn only when something has arrived, or when it said that one is due. So if it
//! forgets to say so, the job hangs, and the run shows it.
//!
//! [`Watch`]: ultramarine_runtime::detector::watch::Watch

mod events;
mod faults;
pub(crate) mod packets;
mod tally;
mod wires;

use super::Simulation;
use super::events::Event;
use crate::dice::Dice;
use crate::job::SimulatedJob;
use packets::Packet;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use ultramarine_runtime::detector::DetectorCounters;
use ultramarine_runtime::detector::watch::{
    CloseReason, ConnectionNumber, Effect, Effects, HostRings, Watch,
};
use ultramarine_topology::Pe;
use wires::Wires;

/// How long a goodbye may take (`detector/event_loop.rs`).
const GOODBYE_WITHIN: Duration = Duration::from_millis(500);

/// For how long a guard says that its process has died, at most (`launch/src/world/connect.rs`).
const TESTIFIES_NS: u64 = 2_000_000_000;

/// The time from a PE's start to its detector's first turn, in nanoseconds.
const START_NS_MAX: u64 = 1_000_000;

/// The shortest sleep of a detector, in nanoseconds.
const SLEEP_NS_MIN: u64 = 1_000;

/// The detectors of a job, and their connections.
#[derive(Default)]
pub(crate) struct Detectors {
    /// By PE. None, if the job has no failure detection.
    all: Vec<SimulatedDetector>,
    wires: Wires,
    /// The number of processes that have not ended.
    running: u32,
    /// Pairs: nothing that the second sends reaches the detector of the first, for no reason
    /// (slander).
    blind: BTreeSet<(Pe, Pe)>,
    /// The PEs that a judge has declared dead while they lived, or that left without a root.
    early_leavers: BTreeSet<Pe>,
    tally: Tally,
    /// Room for effects.
    effects: Effects,
}

/// A PE's process, as its host and the other detectors see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// It runs, or is stopped.
    Running,
    /// It does nothing any more, but the system has not closed its connections yet.
    Dying,
    /// Its host refuses connections, once a guard no longer says that it has died.
    Gone,
    /// Its host has gone with it.
    HostGone,
}

/// What an engine wants of its detector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EngineRequest {
    /// The link has had no answer from this PE for a while.
    Suspect(Pe),
    /// The main task has ended.
    AskEnd,
    /// The PE leaves.
    Goodbye,
}

struct SimulatedDetector {
    watch: Watch,
    counters: Arc<DetectorCounters>,
    process: Process,
    /// Until when its guard says that it has died.
    testifies_until: u64,
    /// It is stopped until then.
    stopped_until: u64,
    /// How long it has been stopped, or will have been: its clock is behind by that.
    behind: u64,
    /// What has arrived while it was stopped.
    unread: Vec<(ConnectionNumber, Packet)>,
    requests: Vec<EngineRequest>,
    /// When its next turn is scheduled.
    wakes_at: u64,
    /// Its ends of connections.
    ends: BTreeSet<ConnectionNumber>,
    /// The most that there were.
    ends_max: usize,
    /// The number of dead that it knows, when that was last checked.
    checked: usize,
}

impl SimulatedDetector {
    /// Its own time, now that it is `now` in the world.
    fn now(&self, now: u64) -> Duration {
        Duration::from_nanos(now.max(self.stopped_until) - self.behind)
    }

    fn add_end(&mut self, number: ConnectionNumber) {
        self.ends.insert(number);
        self.ends_max = self.ends_max.max(self.ends.len());
    }
}

impl Detectors {
    pub(crate) fn new(job: &SimulatedJob) -> Self {
        let Some(detection) = &job.detection else { return Detectors::default() };
        let settings = detection.settings(job.outlives_root);
        let hosts = Arc::new(HostRings::new(&job.topology));
        let detector = |me| {
            let counters = Arc::<DetectorCounters>::default();
            SimulatedDetector {
                watch: Watch::new(me, Arc::clone(&hosts), settings, Arc::clone(&counters)),
                counters,
                process: Process::Running,
                testifies_until: 0,
                stopped_until: 0,
                behind: 0,
                unread: Vec::new(),
                requests: Vec::new(),
                wakes_at: u64::MAX,
                ends: BTreeSet::new(),
                ends_max: 0,
                checked: 0,
            }
        };
        let pes = job.topology.pes();
        Detectors {
            all: (0..pes).map(Pe::new).map(detector).collect(),
            running: pes,
            tally: Tally::new(pes),
            ..Detectors::default()
        }
    }

    /// How many ends of connections there are.
    fn connections(&self) -> u64 {
        self.all.iter().map(|detector| detector.ends.len() as u64).sum()
    }

    /// How many living PEs had to leave before the end of the job.
    pub(crate) fn early_leavers(&self) -> u32 {
        self.early_leavers.len() as u32
    }

    /// Whether a detector still runs.
    pub(crate) fn are_running(&self) -> bool {
        self.running > 0
    }

    /// When each detector takes its first turn.
    pub(crate) fn starts(&mut self, dice: &mut Dice) -> Vec<(u64, Event)> {
        let start = |(detector, pe): (&mut SimulatedDetector, u32)| {
            detector.wakes_at = dice.within(0..=START_NS_MAX);
            (detector.wakes_at, Event::Wake(Pe::new(pe)))
        };
        self.all.iter_mut().zip(0..).map(start).collect()
    }
}

impl Simulation {
    /// Handles an event of the detectors.
    pub(crate) fn detect(&mut self, event: Event) {
        match event {
            Event::Packet { number, to, packet } => self.packet_arrives(number, to, packet),
            Event::Wake(at) => self.wake(at),
            Event::Resume(at) => self.resume(at),
            Event::Cleared(at) => self.clear(at),
            _ => {}
        }
    }

    /// A detector sleeps no longer. Takes a turn if one is due.
    fn wake(&mut self, at: Pe) {
        let now = self.now;
        let detector = &mut self.detectors.all[at.index()];
        if detector.wakes_at != now || detector.process != Process::Running {
            // An earlier one has come before it.
            return;
        }
        detector.wakes_at = u64::MAX;
        if now < detector.stopped_until {
            return;
        }
        let own = detector.now(now);
        if own == Duration::ZERO || detector.watch.due(own).is_some_and(|due| due <= own) {
            self.take_turn(at);
        } else {
            self.sleep(at);
        }
    }

    /// All that has arrived has been handed over.
    fn take_turn(&mut self, at: Pe) {
        self.tell(at, Watch::assess);
        self.tell(at, Watch::tick);
        let detector = &self.detectors.all[at.index()];
        if detector.watch.is_done(detector.now(self.now)) {
            self.end_process(at, Process::Gone);
        } else {
            self.sleep(at);
        }
    }

    fn sleep(&mut self, at: Pe) {
        let detector = &mut self.detectors.all[at.index()];
        let due = detector.watch.due(detector.now(self.now));
        let Some(due) = due.map(|due| due.as_nanos() as u64 + detector.behind) else { return };
        let due = due.max(self.now + SLEEP_NS_MIN);
        if due < detector.wakes_at {
            detector.wakes_at = due;
            self.schedule(due, Event::Wake(at));
        }
    }

    /// Lets a watch do something, and does what it wants.
    fn tell(&mut self, at: Pe, act: impl FnOnce(&mut Watch, Duration, &mut Effects)) {
        let mut effects = std::mem::take(&mut self.detectors.effects);
        let detector = &mut self.detectors.all[at.index()];
        let now = detector.now(self.now);
        act(&mut detector.watch, now, &mut effects);
        while let Some(effect) = effects.pop_front() {
            let Detectors { all, wires, .. } = &mut self.detectors;
            let detector = &mut all[at.index()];
            match effect {
                Effect::Dial(to) => {
                    let number = wires.add(at, to);
                    detector.add_end(number);
                    detector.watch.dialling(now, to, number, &mut effects);
                    self.report.detection.dials += 1;
                    self.send_packet(number, at, Packet::Call);
                }
                Effect::Send { connection, notice } if detector.ends.contains(&connection) => {
                    self.send_packet(connection, at, Packet::Notice(notice));
                }
                Effect::Send { .. } => {}
                Effect::EndSending(number) => {
                    self.send_packet(number, at, Packet::End(CloseReason::Closed));
                }
                Effect::Close(number) => {
                    if let Some(peer) = self.close(number, at) {
                        let watch = &mut self.detectors.all[at.index()].watch;
                        watch.closed(now, peer, number, CloseReason::NotNeeded, &mut effects);
                    }
                }
                Effect::Report(event) => self.report_failure(at, event),
            }
        }
        self.detectors.effects = effects;
    }

    /// The engine of a PE has a request for its detector.
    pub(crate) fn request(&mut self, at: Pe, request: EngineRequest) {
        let Some(detector) = self.detectors.all.get_mut(at.index()) else { return };
        if detector.process != Process::Running {
            return;
        }
        detector.requests.push(request);
        if self.now >= detector.stopped_until {
            self.run_commands(at);
            self.take_turn(at);
        }
    }

    fn run_commands(&mut self, at: Pe) {
        for request in std::mem::take(&mut self.detectors.all[at.index()].requests) {
            self.tell(at, |watch, now, effects| match request {
                EngineRequest::Suspect(pe) => watch.suspect(now, pe),
                EngineRequest::AskEnd => watch.ask_end(now, effects),
                EngineRequest::Goodbye => watch.goodbye(now, GOODBYE_WITHIN, effects),
            });
        }
    }
}
