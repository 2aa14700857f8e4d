//! The detector's thread: sleeps until something arrives or is due, hands what has arrived to the
//! [watch](super::watch), does what that wants, and sleeps again.

use super::DetectorEndpoint;
use super::clock::RunningClock;
use super::close_reason::CloseReason;
use super::connection::{Received, SealedConnection};
use super::counters::{DetectorCounters, count};
use super::event::FailureEvent;
use super::settings::DetectorSettings;
use super::watch::{ConnectionNumber, Effect, Effects, HostRings, Watch};
use crate::addresses::Addresses;
use crate::handshake::JobKey;
use crate::transport::connection_limit::ConnectionLimit;
use crate::transport::listener::Listener;
use mio::event::Event;
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

/// The most accepted connections that may be in their handshake, if there is room; for one more,
/// the oldest is closed.
const STRANGERS_MAX: usize = 256;

/// How long the handshake of an accepted connection may take.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// How long a goodbye may take.
const GOODBYE_WITHIN: Duration = Duration::from_millis(500);

/// How long a connection is kept at least: enough for a handshake and two heartbeats, also if the
/// other host is busy.
pub(super) const KEPT_FOR: Duration = Duration::from_millis(100);

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_mins(1);

/// A command to the detector's thread.
pub(super) enum DetectorCommand {
    Suspect(Pe),
    AskEnd,
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
    job: JobInfo,
    pub(super) watch: Watch,
    /// What the watch wants and is still to be done.
    pub(super) effects: Effects,
    pub(super) connections: BTreeMap<usize, SealedConnection>,
    pub(super) limit: ConnectionLimit,
    counters: Arc<DetectorCounters>,
    report: Box<dyn Fn(FailureEvent) + Send>,
    pub(super) clock: RunningClock,
    /// Connections that have ended and are still to be removed, and why they ended.
    pub(super) ended: BTreeMap<usize, CloseReason>,
    poll: Poll,
    pub(super) listener: Listener,
    /// Accepted connections in their handshake, the oldest first.
    pub(super) strangers: BTreeSet<usize>,
    /// Dials in their handshake, the oldest first.
    pub(super) dials: BTreeSet<usize>,
    /// Connections that one round has not read to the end.
    unread: BTreeSet<usize>,
    next_connection: usize,
    commands: mpsc::Receiver<DetectorCommand>,
    scratch: Box<[u8]>,
}

impl EventLoop {
    pub(super) fn new(
        job: JobInfo,
        poll: Poll,
        endpoint: DetectorEndpoint,
        commands: mpsc::Receiver<DetectorCommand>,
        counters: Arc<DetectorCounters>,
        report: Box<dyn Fn(FailureEvent) + Send>,
    ) -> io::Result<Self> {
        let listener = Listener::new(endpoint.listener, poll.registry(), LISTENER)?;
        // The watch repeats a dial within this time.
        let dial_wanted_for = (2 * job.settings.heartbeat).max(job.settings.dead_after / 2);
        let hosts = Arc::new(HostRings::new(&job.topology));
        Ok(EventLoop {
            watch: Watch::new(job.me, hosts, job.settings, Arc::clone(&counters)),
            effects: Effects::new(),
            connections: BTreeMap::new(),
            limit: ConnectionLimit::new(endpoint.connections_max, usize::MAX, dial_wanted_for),
            counters,
            report,
            clock: RunningClock::new(job.settings.heartbeat / 2, Instant::now()),
            ended: BTreeMap::new(),
            poll,
            listener,
            strangers: BTreeSet::new(),
            dials: BTreeSet::new(),
            unread: BTreeSet::new(),
            next_connection: CONNECTION_MIN,
            commands,
            scratch: vec![0; READ_BYTES].into(),
            job,
        })
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            self.watch.tick(self.clock.now(), &mut self.effects);
            self.perform();
            self.end_late_handshakes();
            self.settle_ended();
            self.make_room();
            self.settle_ended();
            if self.watch.is_done(self.clock.now()) {
                return;
            }
            let asked = self.sleep();
            let polled = unless_interrupted(self.poll.poll(&mut events, Some(asked)));
            if let Err(error) = polled.and_then(|()| self.listener.check()) {
                return (self.report)(FailureEvent::Broken { reason: error.to_string() });
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
                self.watch.assess(self.clock.now(), &mut self.effects);
                self.perform();
            }
        }
    }

    /// Does what the watch wants, in its order, and what it wants then.
    pub(super) fn perform(&mut self) {
        let now = self.clock.now();
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                Effect::Dial(pe) => self.dial(pe),
                Effect::Send { connection: ConnectionNumber(number), notice } => {
                    let Some(connection) = self.connections.get_mut(&number) else { continue };
                    let result = connection.send(&notice);
                    if let Err(end) = result {
                        self.ended.insert(number, end);
                        if let Some(pe) = connection.peer {
                            self.watch.not_sent(now, pe, ConnectionNumber(number), notice);
                        }
                    }
                    self.note_backlog(number);
                }
                Effect::EndSending(ConnectionNumber(number)) => {
                    if let Some(connection) = self.connections.get_mut(&number) {
                        connection.end_sending();
                    }
                }
                Effect::Close(ConnectionNumber(number)) => {
                    self.ended.insert(number, CloseReason::NotNeeded);
                }
                Effect::Report(event) => (self.report)(event),
            }
        }
    }

    /// Tells the watch whether a connection holds what the system has not taken.
    fn note_backlog(&mut self, number: usize) {
        if let Some(connection) = self.connections.get(&number)
            && let Some(pe) = connection.peer
        {
            self.watch.set_backlog(pe, ConnectionNumber(number), !connection.is_flushed());
        }
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
        if self.ended.contains_key(&number) {
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
            && let Some(pe) = connection.peer
        {
            self.watch.answered(self.clock.now(), pe, ConnectionNumber(number));
        }
        self.handle_received(number, heard);
        self.note_backlog(number);
        if let Err(end) = result {
            self.ended.insert(number, end);
        }
    }

    /// Hands over what was received, also if the connection has ended since.
    fn handle_received(&mut self, number: usize, heard: Received) {
        let (now, connection) = (self.clock.now(), ConnectionNumber(number));
        if let Some(pe) = heard.opened {
            self.strangers.remove(&number);
            self.dials.remove(&number);
            self.watch.opened(now, pe, connection, &mut self.effects);
            self.perform();
        }
        let peer = self.connections.get(&number).and_then(|connection| connection.peer);
        if let Some(pe) = peer {
            for notice in heard.notices {
                self.watch.notice(now, pe, connection, notice, &mut self.effects);
                self.perform();
            }
        }
    }

    /// Removes the connections that have ended, and tells the watch.
    fn settle_ended(&mut self) {
        while let Some((number, end)) = self.ended.pop_last() {
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            // If writing failed, there may still be something to read.
            let mut heard = Received::default();
            if connection.is_open() {
                let _ = connection.read(&mut self.scratch, &mut heard);
            }
            self.handle_received(number, heard);
            let Some(mut connection) = self.connections.remove(&number) else { continue };
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.dials.remove(&number);
            // An accepted connection that ends in its handshake was a stranger's.
            let is_stranger = self.strangers.remove(&number) && end == CloseReason::Broken;
            let end = if is_stranger { CloseReason::Stranger } else { end };
            let Some(pe) = connection.peer else {
                end.count(&self.counters);
                continue;
            };
            let end = self.as_witnessed(pe, end);
            let (now, number) = (self.clock.now(), ConnectionNumber(number));
            self.watch.closed(now, pe, number, end, &mut self.effects);
            self.perform();
        }
    }

    fn accept(&mut self) {
        for _ in 0..ROUND_ACCEPTS_MAX {
            if !self.may_accept() {
                self.listener.look();
                break;
            }
            let stream = match self.listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => break,
                Err(error) => {
                    count(&self.counters.not_accepted);
                    self.refused(&error);
                    break;
                }
            };
            let JobInfo { me, key, .. } = self.job;
            let pes = self.job.topology.pes();
            let connection = SealedConnection::accepted(stream, key, me, pes, self.clock.now());
            if let Some(number) = self.keep(connection) {
                self.strangers.insert(number);
                self.limit.has_accepted();
            } else {
                count(&self.counters.not_accepted);
            }
        }
        while self.strangers.len() > STRANGERS_MAX {
            let Some(oldest) = self.strangers.pop_first() else { break };
            self.ended.insert(oldest, CloseReason::Stranger);
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

    /// Dials a PE, and tells the watch how that went.
    fn dial(&mut self, pe: Pe) {
        let JobInfo { me, key, .. } = self.job;
        let (now, pes) = (self.clock.now(), self.job.topology.pes());
        if !self.may_dial() {
            self.want_to_dial();
            return self.watch.dial_failed(now, pe, CloseReason::NoRoom, &mut self.effects);
        }
        let dialled = SealedConnection::dial(key, me, pe, self.job.addresses.of(pe), pes, now);
        let made = dialled
            .map_err(|error| {
                self.refused(&error);
                self.want_to_dial();
                error.into()
            })
            .and_then(|connection| self.keep(connection).ok_or(CloseReason::LocalFailure));
        match made {
            Ok(number) => {
                self.dials.insert(number);
                self.limit.has_dialled();
                self.watch.dialling(now, pe, ConnectionNumber(number), &mut self.effects);
            }
            Err(end) => {
                let end = self.as_witnessed(pe, end);
                self.watch.dial_failed(now, pe, end, &mut self.effects);
            }
        }
    }

    /// A call that was refused, as this host witnesses it: of a PE that has this host's address its
    /// own system says so. Between hosts it may be a firewall.
    fn as_witnessed(&self, pe: Pe, end: CloseReason) -> CloseReason {
        let JobInfo { me, addresses, .. } = &self.job;
        let is_here = addresses.of(pe).ip() == addresses.of(*me).ip();
        if end == CloseReason::Refused && is_here { CloseReason::Gone } else { end }
    }

    /// Closes accepted connections whose handshakes take too long.
    fn end_late_handshakes(&mut self) {
        let (now, within) = (self.clock.now(), self.hello_within(HELLO_WITHIN));
        let late = self.strangers.iter().filter(|number| {
            let connection = self.connections.get(number);
            connection.is_some_and(|c| now.saturating_sub(c.begun) > within)
        });
        self.ended.extend(late.map(|number| (*number, CloseReason::Stranger)));
    }

    /// How long there is nothing to do unless something arrives.
    fn sleep(&self) -> Duration {
        let now = self.clock.now();
        if !self.unread.is_empty() || (self.listener.is_ready() && self.may_accept()) {
            return Duration::ZERO;
        }
        let mut wake_at = now + SLEEP_MAX;
        if self.is_pressed() || !self.strangers.is_empty() {
            wake_at = wake_at.min(now + KEPT_FOR);
        }
        wake_at = wake_at.min(self.watch.due(now).unwrap_or(wake_at));
        wake_at.saturating_sub(now)
    }

    /// Runs the PE's commands. Returns whether to go on.
    fn run_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(DetectorCommand::Suspect(pe)) => self.watch.suspect(self.clock.now(), pe),
                Ok(DetectorCommand::AskEnd) => {
                    let now = self.clock.now();
                    self.watch.ask_end(now, &mut self.effects);
                    self.perform();
                }
                Ok(DetectorCommand::Goodbye) => {
                    let now = self.clock.now();
                    self.watch.goodbye(now, GOODBYE_WITHIN, &mut self.effects);
                    self.perform();
                }
                Ok(DetectorCommand::Stop) | Err(mpsc::TryRecvError::Disconnected) => return false,
                Err(mpsc::TryRecvError::Empty) => return true,
            }
        }
    }
}

/// If this thread panics, its PE must leave: it would not hear of deaths any more.
impl Drop for EventLoop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.report)(FailureEvent::Broken { reason: "its thread has panicked".to_owned() });
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
