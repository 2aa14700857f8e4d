//! Watches, simulated connections between them, and simulated time: what a simulator does. (In the
//! testkit's world there are neither: what is next there is a choice, and here it is the earliest.)

use super::{
    CloseReason, ConnectionNumber, Effect, Effects, HostRings, MS, Watch,
    check_that_none_is_forgotten,
};
use crate::detector::{DetectorCounters, DetectorSettings, FailureEvent};
use crate::protocol::{Membership, MembershipStatus, Notice};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{LevelKind, Pe, Place, Topology};

/// How long a packet is under way.
const LATENCY: Duration = MS;

/// More turns in a row than that at one moment are a watch that does not let its owner sleep.
const TURNS_MAX: u32 = 1000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Process {
    Running,
    /// It is stopped since this moment; its host answers.
    Stalled(Duration),
    /// Its guard says that it is gone; its host refuses calls if it has none.
    Gone,
}

struct Member {
    watch: Watch,
    counters: Arc<DetectorCounters>,
    process: Process,
    /// How long it has been stalled: its clock is behind by that.
    behind: Duration,
    /// What has arrived and is not read yet.
    unread: Vec<(ConnectionNumber, Arrival)>,
}

impl Member {
    /// Its time, now that it is `now` in the world.
    fn now(&self, now: Duration) -> Duration {
        now.saturating_sub(self.behind)
    }
}

/// A connection that was dialled. Both ends have the same number.
struct Wire {
    dialler: Pe,
    acceptor: Pe,
    /// The ends that have not ended.
    ends: BTreeSet<Pe>,
}

impl Wire {
    fn other(&self, end: Pe) -> Pe {
        if end == self.dialler { self.acceptor } else { self.dialler }
    }
}

/// What arrives at one end of a connection.
#[derive(Clone, Debug)]
enum Arrival {
    /// The call, at the host of the acceptor.
    Call,
    /// The host of the acceptor has accepted the call.
    Answer,
    /// The handshake is done.
    Open,
    Notice(Notice),
    End(CloseReason),
    /// A firewall says that there is no such connection.
    Rejected(CloseReason),
}

/// A job of simulated processes.
pub(super) struct World {
    now: Duration,
    members: Vec<Member>,
    wires: BTreeMap<ConnectionNumber, Wire>,
    /// What is under way, by the moment of its arrival and the order in which it was sent.
    under_way: BTreeMap<(Duration, u64), (Pe, ConnectionNumber, Arrival)>,
    count: u64,
    /// No packet comes from these PEs' hosts, nor reaches them.
    isolated: BTreeSet<Pe>,
    /// A firewall rejects what these send to those.
    rejected: BTreeSet<(Pe, Pe)>,
    /// The processes have guards.
    pub(super) is_guarded: bool,
    pes_each: u32,
    pub(super) events: Vec<(Pe, Duration, FailureEvent)>,
    /// The number of turns that all watches took.
    pub(super) turns: u64,
}

impl World {
    /// A job on `hosts` hosts of as many PEs each.
    pub(super) fn new(hosts: u32, pes_each: u32) -> World {
        World::with(hosts, pes_each, DetectorSettings::default())
    }

    pub(super) fn with(hosts: u32, pes_each: u32, settings: DetectorSettings) -> World {
        let place =
            |pe: u32| Place::from_pairs([(LevelKind::Host, &*format!("{:03}", pe / pes_each))]);
        let places: Vec<_> = (0..hosts * pes_each).map(place).collect();
        let topology = Topology::new(&places, &vec![1; places.len()]).unwrap();
        let rings = Arc::new(HostRings::new(&topology));
        let members = (0..rings.pes()).map(Pe::new).map(|me| {
            let counters = Arc::<DetectorCounters>::default();
            Member {
                watch: Watch::new(me, Arc::clone(&rings), settings, Arc::clone(&counters)),
                counters,
                process: Process::Running,
                behind: Duration::ZERO,
                unread: Vec::new(),
            }
        });
        World {
            now: Duration::ZERO,
            members: members.collect(),
            wires: BTreeMap::new(),
            under_way: BTreeMap::new(),
            count: 0,
            isolated: BTreeSet::new(),
            rejected: BTreeSet::new(),
            is_guarded: true,
            pes_each,
            events: Vec::new(),
            turns: 0,
        }
    }

    /// The PEs that run.
    pub(super) fn running(&self) -> impl Iterator<Item = Pe> + '_ {
        let is_running = |(_, member): &(Pe, &Member)| member.process == Process::Running;
        (0..).map(Pe::new).zip(&self.members).filter(is_running).map(|(pe, _)| pe)
    }

    pub(super) fn events_of(&self, pe: Pe) -> Vec<FailureEvent> {
        let own = self.events.iter().filter(|(at, ..)| *at == pe);
        own.map(|(.., event)| event.clone()).collect()
    }

    pub(super) fn counters(&self, pe: Pe) -> &DetectorCounters {
        &self.members[pe.index()].counters
    }

    pub(super) fn dead(&self, pe: Pe) -> &[Pe] {
        self.members[pe.index()].watch.membership().dead()
    }

    pub(super) fn membership(&self, pe: Pe) -> &Membership {
        self.members[pe.index()].watch.membership()
    }

    pub(super) fn status(&self, pe: Pe) -> MembershipStatus {
        self.members[pe.index()].watch.membership().status()
    }

    /// A process ends, for whatever reason: its system closes its connections.
    pub(super) fn kill(&mut self, pe: Pe) {
        self.members[pe.index()].process = Process::Gone;
        self.members[pe.index()].unread.clear();
        let has_end = |(number, wire): (&ConnectionNumber, &mut Wire)| {
            wire.ends.remove(&pe).then_some(*number)
        };
        let own: Vec<_> = self.wires.iter_mut().filter_map(has_end).collect();
        for number in own {
            self.send(number, pe, Arrival::End(CloseReason::Broken));
        }
    }

    /// From now on no packet passes between the host of a PE and others.
    pub(super) fn isolate(&mut self, pe: Pe) {
        self.isolated.insert(pe);
    }

    /// From now on a firewall rejects what these send to those.
    pub(super) fn reject(&mut self, from: Range<u32>, to: &Range<u32>) {
        let pairs = from.flat_map(|from| to.clone().map(move |to| (Pe::new(from), Pe::new(to))));
        self.rejected.extend(pairs);
    }

    /// No firewall rejects anything any more.
    pub(super) fn heal(&mut self) {
        self.rejected.clear();
    }

    /// A process is stopped.
    pub(super) fn stall(&mut self, pe: Pe) {
        self.members[pe.index()].process = Process::Stalled(self.now);
    }

    /// A stopped process goes on.
    pub(super) fn resume(&mut self, pe: Pe) {
        let member = &mut self.members[pe.index()];
        let Process::Stalled(since) = member.process else { panic!("{pe} does not stand still") };
        member.process = Process::Running;
        member.behind += self.now.saturating_sub(since);
        for (number, arrival) in std::mem::take(&mut self.members[pe.index()].unread) {
            self.hand_over(pe, number, arrival);
        }
        self.take_turn(pe);
    }

    pub(super) fn resume_all(&mut self) {
        let is_stalled = |pe: &Pe| matches!(self.members[pe.index()].process, Process::Stalled(_));
        let all: Vec<Pe> = (0..self.members.len() as u32).map(Pe::new).filter(is_stalled).collect();
        all.into_iter().for_each(|pe| self.resume(pe));
    }

    /// The link of a PE suspects another.
    pub(super) fn suspect(&mut self, by: Pe, whom: Pe) {
        if self.members[by.index()].process == Process::Running {
            self.tell(by, |watch, now, _| watch.suspect(now, whom));
            self.take_turn(by);
        }
    }

    /// The main task of a PE has ended.
    pub(super) fn ask_end(&mut self, pe: Pe) {
        self.tell(pe, Watch::ask_end);
        self.take_turn(pe);
    }

    pub(super) fn say_goodbye(&mut self, pe: Pe) {
        self.tell(pe, |watch, now, effects| watch.goodbye(now, MS * 500, effects));
        self.take_turn(pe);
    }

    pub(super) fn say_goodbye_all(&mut self) {
        let all: Vec<Pe> = self.running().collect();
        all.into_iter().for_each(|pe| self.say_goodbye(pe));
    }

    pub(super) fn run_until(&mut self, until: Duration) {
        let mut turns_now = 0;
        loop {
            let due: Vec<(Duration, Pe)> = self.running().filter_map(|pe| self.due(pe)).collect();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let next = due.iter().map(|(at, _)| *at).chain(arrival).min();
            let Some(next) = next.map(|next| next.max(self.now)).filter(|next| *next <= until)
            else {
                self.now = until;
                return;
            };
            turns_now = if next == self.now { turns_now + 1 } else { 0 };
            assert!(turns_now < TURNS_MAX, "no sleep at {next:?}");
            self.now = next;
            let due = due.into_iter().filter(|(at, _)| *at <= next);
            let mut active: BTreeSet<Pe> = due.map(|(_, pe)| pe).collect();
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= next
            {
                let (at, number, arrival) = entry.remove();
                self.arrive(at, number, arrival);
                active.insert(at);
            }
            active.into_iter().for_each(|pe| self.take_turn(pe));
        }
    }

    fn due(&self, pe: Pe) -> Option<(Duration, Pe)> {
        let member = &self.members[pe.index()];
        Some((member.watch.due(member.now(self.now))? + member.behind, pe))
    }

    fn take_turn(&mut self, pe: Pe) {
        if self.members[pe.index()].process != Process::Running {
            return;
        }
        self.turns += 1;
        self.tell(pe, Watch::assess);
        self.tell(pe, Watch::tick);
        let member = &self.members[pe.index()];
        check_that_none_is_forgotten(&member.watch, member.now(self.now));
        if member.watch.is_done(member.now(self.now)) {
            self.kill(pe);
        }
    }

    /// Lets a watch do something, and does what it wants.
    fn tell(&mut self, pe: Pe, act: impl FnOnce(&mut Watch, Duration, &mut Effects)) {
        let mut effects = Effects::new();
        let member = &mut self.members[pe.index()];
        let now = member.now(self.now);
        act(&mut member.watch, now, &mut effects);
        while let Some(effect) = effects.pop_front() {
            let watch = &mut self.members[pe.index()].watch;
            match effect {
                Effect::Dial(to) => {
                    self.count += 1;
                    let number = ConnectionNumber(self.count as usize);
                    watch.dialling(now, to, number, &mut effects);
                    let wire = Wire { dialler: pe, acceptor: to, ends: BTreeSet::from([pe]) };
                    self.wires.insert(number, wire);
                    self.send(number, pe, Arrival::Call);
                }
                Effect::Send { connection, notice } => {
                    self.send(connection, pe, Arrival::Notice(notice));
                }
                Effect::EndSending(connection) => {
                    self.send(connection, pe, Arrival::End(CloseReason::Closed));
                }
                Effect::Close(number) => {
                    self.send(number, pe, Arrival::End(CloseReason::Closed));
                    self.end(number, pe, CloseReason::NotNeeded);
                }
                Effect::Report(event) => {
                    let leaves =
                        matches!(event, FailureEvent::Expelled | FailureEvent::RootLost { .. });
                    self.events.push((pe, self.now, event));
                    if leaves {
                        watch.goodbye(now, MS * 500, &mut effects);
                    }
                }
            }
        }
    }

    /// Sends something to the other end of a connection.
    fn send(&mut self, number: ConnectionNumber, from: Pe, arrival: Arrival) {
        let Some(wire) = self.wires.get(&number) else { return };
        self.count += 1;
        let to = (wire.other(from), number, arrival);
        self.under_way.insert((self.now + LATENCY, self.count), to);
    }

    /// The end of a connection at `pe` has ended.
    fn end(&mut self, number: ConnectionNumber, pe: Pe, why: CloseReason) {
        let Some(wire) = self.wires.get_mut(&number) else { return };
        if wire.ends.remove(&pe) {
            let other = wire.other(pe);
            self.tell(pe, |watch, now, effects| watch.closed(now, other, number, why, effects));
        }
    }

    /// Something has come to a host.
    fn arrive(&mut self, at: Pe, number: ConnectionNumber, arrival: Arrival) {
        let Some(wire) = self.wires.get(&number) else { return };
        let from = wire.other(at);
        if self.isolated.contains(&from) != self.isolated.contains(&at) {
            return;
        }
        if self.rejected.contains(&(from, at)) && !matches!(arrival, Arrival::Rejected(_)) {
            let is_call = matches!(arrival, Arrival::Call);
            let why = if is_call { CloseReason::Refused } else { CloseReason::Broken };
            return self.send(number, at, Arrival::Rejected(why));
        }
        let process = self.members[at.index()].process;
        if let Arrival::Call = arrival {
            let is_witnessed =
                self.is_guarded || from.number() / self.pes_each == at.number() / self.pes_each;
            let reply = match process {
                Process::Gone if is_witnessed => Arrival::End(CloseReason::Gone),
                Process::Gone => Arrival::End(CloseReason::Refused),
                Process::Running | Process::Stalled(_) => Arrival::Answer,
            };
            self.send(number, at, reply);
        }
        match process {
            Process::Running => self.hand_over(at, number, arrival),
            Process::Stalled(_) => self.members[at.index()].unread.push((number, arrival)),
            Process::Gone => {}
        }
    }

    /// A process reads what has arrived.
    fn hand_over(&mut self, at: Pe, number: ConnectionNumber, arrival: Arrival) {
        let Some(wire) = self.wires.get_mut(&number) else { return };
        let peer = wire.other(at);
        match arrival {
            // A call that the dialler has given up is not made.
            Arrival::Call if wire.ends.contains(&peer) => {
                wire.ends.insert(at);
                self.send(number, at, Arrival::Open);
                self.tell(at, |watch, now, effects| watch.opened(now, peer, number, effects));
            }
            Arrival::End(why) | Arrival::Rejected(why) => {
                self.send(number, at, Arrival::End(CloseReason::Closed));
                self.end(number, at, why);
                if self.wires.get(&number).is_some_and(|wire| wire.ends.is_empty()) {
                    self.wires.remove(&number);
                }
            }
            _ if !wire.ends.contains(&at) => {}
            Arrival::Call => {}
            Arrival::Answer => self.tell(at, |watch, now, _| watch.answered(now, peer, number)),
            Arrival::Open => {
                self.tell(at, |watch, now, effects| watch.opened(now, peer, number, effects));
            }
            Arrival::Notice(notice) => self.tell(at, |watch, now, effects| {
                watch.notice(now, peer, number, notice, effects);
            }),
        }
    }
}
