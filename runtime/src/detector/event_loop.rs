//! The detector's thread: sleeps until something arrives or is due, reads, assesses the PEs that it
//! watches, and sleeps again.

use super::clock::RunningClock;
use super::close_reason::CloseReason;
use super::connection::{Received, SealedConnection};
use super::counters::{DetectorCounters, count};
use super::event::FailureEvent;
use super::peer::{DialRole, PeerView};
use super::reachability::{ContactLimits, DialPace, LossReason};
use super::rings::HostRings;
use super::settings::DetectorSettings;
use crate::addresses::Addresses;
use crate::handshake::JobKey;
use crate::protocol::{Membership, MembershipStatus};
use crate::transport::listener::Listener;
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use ultramarine_topology::{Pe, Topology};

const LISTENER: Token = Token(0);
pub(super) const WAKER: Token = Token(1);
/// Connections are numbered from here, and no number is used twice.
const CONNECTION_MIN: usize = 2;

/// The number of readiness events taken at once.
const EVENTS_MAX: usize = 256;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 16 << 10;

/// The most connections that one round accepts.
const ROUND_ACCEPTS_MAX: usize = 64;

/// The most accepted connections that may be in their handshake; for one more, the oldest is
/// closed.
const STRANGERS_MAX: usize = 256;

/// How long the handshake of an accepted connection may take.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// How long a PE that has never been heard is not suspected, from the detector's start on: its
/// process may still be starting.
const START_GRACE: Duration = Duration::from_secs(5);

/// How long a goodbye may take.
const GOODBYE_WITHIN: Duration = Duration::from_millis(500);

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_mins(1);

/// A command to the detector's thread.
pub(super) enum DetectorCommand {
    Suspect(Pe),
    Goodbye,
    Stop,
}

/// What the PEs agree on at start-up.
pub(super) struct JobInfo {
    pub(super) me: Pe,
    pub(super) topology: Arc<Topology>,
    pub(super) addresses: Addresses,
    pub(super) key: JobKey,
    pub(super) settings: DetectorSettings,
}

pub(super) struct EventLoop {
    pub(super) job: JobInfo,
    pub(super) hosts: HostRings,
    pub(super) membership: Membership,
    pub(super) peers: BTreeMap<Pe, PeerView>,
    pub(super) connections: BTreeMap<usize, SealedConnection>,
    /// The number of dead PEs that have been reported.
    pub(super) reported: usize,
    /// The last event has been reported.
    pub(super) has_reported_last: bool,
    /// Why this PE has lost the root.
    pub(super) root_loss: Option<LossReason>,
    /// Until when to say goodbye, once the PE has asked for that.
    pub(super) leaving_until: Option<Duration>,
    pub(super) counters: Arc<DetectorCounters>,
    pub(super) report: Box<dyn Fn(FailureEvent) + Send>,
    pub(super) clock: RunningClock,
    /// Connections that have ended and are still to be removed, and why they ended.
    pub(super) ended: Vec<(usize, CloseReason)>,
    poll: Poll,
    listener: Listener,
    /// Accepted connections in their handshake, the oldest first.
    strangers: BTreeSet<usize>,
    /// Connections that one round has not read to the end.
    unread: BTreeSet<usize>,
    next_connection: usize,
    next_heartbeat: Duration,
    commands: mpsc::Receiver<DetectorCommand>,
    scratch: Box<[u8]>,
}

impl EventLoop {
    pub(super) fn new(
        job: JobInfo,
        poll: Poll,
        listener: TcpListener,
        commands: mpsc::Receiver<DetectorCommand>,
        counters: Arc<DetectorCounters>,
        report: Box<dyn Fn(FailureEvent) + Send>,
    ) -> io::Result<Self> {
        let listener = Listener::new(listener, poll.registry(), LISTENER)?;
        Ok(EventLoop {
            hosts: HostRings::new(&job.topology),
            membership: Membership::new(job.me, job.topology.pes(), job.settings.dead_after),
            peers: BTreeMap::new(),
            connections: BTreeMap::new(),
            reported: 0,
            has_reported_last: false,
            root_loss: None,
            leaving_until: None,
            counters,
            report,
            clock: RunningClock::new(job.settings.heartbeat / 2, Instant::now()),
            ended: Vec::new(),
            poll,
            listener,
            strangers: BTreeSet::new(),
            unread: BTreeSet::new(),
            next_connection: CONNECTION_MIN,
            next_heartbeat: Duration::ZERO,
            commands,
            scratch: vec![0; READ_BYTES].into(),
            job,
        })
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        self.update_partners();
        loop {
            self.dial_due();
            self.send_heartbeats();
            self.settle_ended();
            if self.is_done() {
                return;
            }
            let asked = self.sleep();
            if let Err(error) = unless_interrupted(self.poll.poll(&mut events, Some(asked))) {
                // It cannot watch any more, which looks like a crash to the other PEs. So this PE
                // must leave.
                tracing::error!("the detector cannot wait for its connections: {error}");
                return (self.report)(FailureEvent::Expelled);
            }
            if self.clock.advance(Instant::now(), asked) {
                count(&self.counters.stalls);
            }
            let is_all = events.iter().count() < EVENTS_MAX;
            self.read_events(&events);
            if !self.run_commands() {
                return;
            }
            if is_all && self.unread.is_empty() {
                self.assess_all();
            }
            self.clean_up();
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Reads what has arrived and accepts calls.
    fn read_events(&mut self, events: &Events) {
        for number in std::mem::take(&mut self.unread) {
            self.read_connection(number, None);
        }
        for event in events {
            match event.token() {
                LISTENER => self.listener.on_call(),
                WAKER => {}
                Token(number) => self.read_connection(number, Some(event)),
            }
        }
        if self.listener.is_called() {
            self.accept();
        }
        self.settle_ended();
    }

    /// Reads a connection that has an event, or that has not been read to the end.
    fn read_connection(&mut self, number: usize, event: Option<&Event>) {
        // `settle_ended` reads what an ended connection still holds.
        if self.ended.iter().any(|(ended, _)| *ended == number) {
            return;
        }
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let mut heard = Received::default();
        let result = match event {
            Some(event) => connection.on_event(event, &mut self.scratch, &mut heard),
            None => connection.read(&mut self.scratch, &mut heard),
        };
        if heard.is_more {
            self.unread.insert(number);
        }
        if heard.is_answered
            && let Some(peer) = connection.peer.and_then(|pe| self.peers.get_mut(&pe))
        {
            peer.note_answer(self.clock.now(), connection.used);
        }
        self.handle_received(number, heard);
        if let Err(end) = result {
            self.ended.push((number, end));
        }
    }

    /// Acts on what was received, also if the connection has ended since.
    fn handle_received(&mut self, number: usize, heard: Received) {
        if let Some(pe) = heard.opened {
            self.strangers.remove(&number);
            self.connection_opened(number, pe);
        }
        let peer = self.connections.get(&number).and_then(|connection| connection.peer);
        if let Some(pe) = peer {
            heard.notices.into_iter().for_each(|notice| self.handle_notice(number, pe, notice));
        }
    }

    /// Removes the connections that have ended, and acts on their ends.
    pub(super) fn settle_ended(&mut self) {
        while let Some((number, end)) = self.ended.pop() {
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            // If writing failed, there may still be something to read.
            let mut heard = Received::default();
            if connection.is_open() {
                let _ = connection.read(&mut self.scratch, &mut heard);
            }
            self.handle_received(number, heard);
            let Some(mut connection) = self.connections.remove(&number) else { continue };
            let _ = self.poll.registry().deregister(&mut connection.stream);
            // An accepted connection that ends in its handshake was a stranger's.
            let is_stranger = self.strangers.remove(&number) && end == CloseReason::Broken;
            let end = if is_stranger { CloseReason::Stranger } else { end };
            self.connection_lost(number, &connection, end);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ROUND_ACCEPTS_MAX {
            let stream = match self.listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => break,
                Err(_) => {
                    count(&self.counters.not_accepted);
                    break;
                }
            };
            let JobInfo { me, key, .. } = self.job;
            let pes = self.job.topology.pes();
            let connection = SealedConnection::accepted(stream, key, me, pes, self.now());
            if let Some(number) = self.keep(connection) {
                self.strangers.insert(number);
            } else {
                count(&self.counters.not_accepted);
            }
        }
        while self.strangers.len() > STRANGERS_MAX {
            let Some(oldest) = self.strangers.pop_first() else { break };
            self.ended.push((oldest, CloseReason::Stranger));
        }
    }

    /// Registers a connection with the system and gives it a number. `None` if the system refuses.
    fn keep(&mut self, mut connection: SealedConnection) -> Option<usize> {
        let number = self.next_connection;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut connection.stream, Token(number), interest).ok()?;
        self.next_connection += 1;
        self.connections.insert(number, connection);
        Some(number)
    }

    /// Dials the PEs that are due.
    fn dial_due(&mut self) {
        let (now, settings) = (self.now(), self.job.settings);
        let is_due = |(pe, peer): &(&Pe, &PeerView)| {
            peer.is_to_be_dialled(now, &DialPace::towards(**pe, &settings))
        };
        let due: Vec<Pe> = self.peers.iter().filter(is_due).map(|(pe, _)| *pe).collect();
        for pe in due {
            let JobInfo { me, key, .. } = self.job;
            let pes = self.job.topology.pes();
            let address = self.job.addresses.of(pe);
            let made = SealedConnection::dial(key, me, pe, address, pes, now)
                .and_then(|connection| self.keep(connection).ok_or(CloseReason::LocalFailure));
            let Some(peer) = self.peers.get_mut(&pe) else { continue };
            peer.note_dial(now);
            if peer.failures > 0 {
                count(&self.counters.redials);
            }
            match made {
                Ok(number) => {
                    peer.connections.push(number);
                    self.limit_connections(pe);
                }
                Err(end) => self.dial_failed(pe, end),
            }
        }
    }

    /// Assesses all PEs that are watched, and lets membership repeat its accusations.
    fn assess_all(&mut self) {
        if self.membership.status() != MembershipStatus::Member || self.leaving_until.is_some() {
            return;
        }
        let now = self.now();
        let all: Vec<Pe> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|pe| self.assess(pe));
        self.with_membership(|membership, out| {
            membership.tick(now, out);
        });
    }

    /// How long a PE that has never been heard is not suspected.
    pub(super) fn grace(&self) -> Duration {
        START_GRACE.max(self.job.settings.dead_after)
    }

    /// Sends one heartbeat to each PE that is watched, when that is due. A PE that only happens to
    /// have a connection gets none.
    fn send_heartbeats(&mut self) {
        let now = self.now();
        if now < self.next_heartbeat {
            return;
        }
        self.next_heartbeat = now.saturating_add(self.job.settings.heartbeat);
        let beat = self.membership.heartbeat();
        for peer in self.peers.values().filter(|peer| peer.is_watched()) {
            // A connection that has not taken the last heartbeat needs no other.
            let is_ready = |number: &&usize| {
                self.connections.get(number).is_some_and(|c| c.is_open() && c.is_flushed())
            };
            let Some(number) = peer.connections.iter().rev().find(is_ready) else { continue };
            let Some(connection) = self.connections.get_mut(number) else { continue };
            count(&self.counters.heartbeats_sent);
            if let Err(end) = connection.send(&beat) {
                self.ended.push((*number, end));
            }
        }
    }

    /// Closes handshakes that take too long and connections that no PE uses, and forgets PEs about
    /// which there is nothing to remember.
    fn clean_up(&mut self) {
        let now = self.now();
        let is_over = |since: Duration, limit| now.saturating_sub(since) > limit;
        let late = self.strangers.iter().filter(|number| {
            self.connections.get(number).is_some_and(|c| is_over(c.used, HELLO_WITHIN))
        });
        self.ended.extend(late.map(|number| (*number, CloseReason::Stranger)));
        let idle = self.job.settings.dead_after * 5;
        let unused = self.connections.iter().filter(|(_, connection)| {
            let peer = connection.peer.and_then(|pe| self.peers.get(&pe));
            peer.is_some_and(|peer| !peer.is_wanted()) && is_over(connection.used, idle)
        });
        self.ended.extend(unused.map(|(number, _)| (*number, CloseReason::NotNeeded)));
        self.settle_ended();
        self.peers.retain(|_, peer| !peer.is_idle());
    }

    /// How long there is nothing to do unless something arrives.
    fn sleep(&self) -> Duration {
        let now = self.now();
        if !self.unread.is_empty() || self.listener.is_ready() {
            return Duration::ZERO;
        }
        let settings = self.job.settings;
        let (heartbeat, grace) = (settings.heartbeat, self.grace());
        let is_member = self.membership.status() == MembershipStatus::Member;
        let mut wake_at = now + SLEEP_MAX;
        if self.connections.values().any(SealedConnection::is_open) {
            wake_at = wake_at.min(self.next_heartbeat);
        }
        if self.listener.is_called() || !self.strangers.is_empty() {
            wake_at = wake_at.min(now + heartbeat);
        }
        for (pe, peer) in &self.peers {
            let pace = DialPace::towards(*pe, &settings);
            let limits = ContactLimits::of(self.job.me, *pe, &settings);
            wake_at = wake_at.min(peer.due(now, &limits, grace, &pace).unwrap_or(wake_at));
        }
        if is_member && self.leaving_until.is_none() {
            wake_at = wake_at.min(self.membership.due().unwrap_or(wake_at));
        }
        wake_at = wake_at.min(self.leaving_until.unwrap_or(wake_at));
        wake_at.saturating_sub(now)
    }

    /// Runs the PE's commands. Returns whether to go on.
    fn run_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(DetectorCommand::Suspect(pe)) => self.probe_for_link(pe),
                Ok(DetectorCommand::Goodbye) => self.take_leave(GOODBYE_WITHIN),
                Ok(DetectorCommand::Stop) | Err(mpsc::TryRecvError::Disconnected) => return false,
                Err(mpsc::TryRecvError::Empty) => return true,
            }
        }
    }

    /// Whether goodbye has been said to all, or the time for it is over.
    fn is_done(&self) -> bool {
        let Some(until) = self.leaving_until else { return false };
        let is_waiting = |peer: &PeerView| {
            let has_news = !peer.outbox.is_empty();
            !peer.needs_no_goodbye
                && (has_news || peer.role != DialRole::None && self.is_in_order())
        };
        let is_said = !self.peers.values().any(is_waiting)
            && self.connections.values().all(|c| !c.is_open() || c.is_flushed());
        is_said || self.now() >= until
    }
}

/// If this thread panics, its PE must leave: it would not hear of deaths any more.
impl Drop for EventLoop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.report)(FailureEvent::Expelled);
        }
    }
}

/// The result of a poll; an interruption is no error.
fn unless_interrupted(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}
