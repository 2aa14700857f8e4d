//! All connections of a lane: the PEs at their other ends, and what is sent and read on them.

use super::connection::{ConnectionState, ReadProgress, TcpCloseReason, TcpConnection, token};
use super::counters::TcpCounters;
use super::peer::PeerConnections;
use crate::addresses::Addresses;
use crate::handshake::JobKey;
use crate::transport::connection_limit::ConnectionLimit;
use crate::transport::descriptors;
use crate::transport::error::LaneError;
use crate::transport::listener::Listener;
use mio::Registry;
use mio::event::Event;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// The number of frames after which a round leaves the rest to the next round. A round may exceed
/// it by the frames of one turn of one connection.
const ROUND_FRAMES_MAX: usize = 256;

/// How much is read at once, in bytes: a few frames of full length.
const READ_BYTES: usize = 256 << 10;

/// The default of `dial_within`.
const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// The most accepted connections that may be in their handshake.
const STRANGERS_MAX: usize = 1024;

/// How long a dial that found no room counts. (The link repeats it every millisecond.)
const DIAL_WANTED_FOR: Duration = Duration::from_millis(100);

/// The default of `hello_within`.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(super) struct Sockets {
    pub(super) me: Pe,
    pub(super) key: JobKey,
    addresses: Addresses,
    pub(super) registry: Arc<Registry>,
    pub(super) listener: Listener,
    pub(super) counters: Arc<TcpCounters>,
    pub(super) connections: Vec<Option<Box<TcpConnection>>>,
    /// The empty places in `connections`.
    free: Vec<usize>,
    pub(super) peers: Vec<Option<Box<PeerConnections>>>,
    /// The places of the accepted connections in their handshake, the oldest first.
    pub(super) strangers: BTreeMap<u64, usize>,
    /// How long the handshake of an accepted connection may take.
    pub(super) hello_within: Duration,
    /// The places of the connections that are being closed, the oldest first.
    pub(super) ending: VecDeque<usize>,
    /// The places of the dials under way, the oldest first.
    pub(super) dialled: BTreeMap<u64, usize>,
    /// How long a dial and its handshake may take before the connection counts as broken.
    pub(super) dial_within: Duration,
    /// The places of the connections on which there may be something to read.
    unread: VecDeque<usize>,
    /// The number of events so far; [`TcpConnection`] uses it as a clock.
    events: u64,
    pub(super) limit: ConnectionLimit,
    /// Since when there is no room, and no connection to close.
    pub(super) pressed_since: Option<Instant>,
    /// The buffer for reading.
    pub(super) scratch: Box<[u8]>,
}

impl Sockets {
    pub(super) fn new(
        (me, key): (Pe, JobKey),
        addresses: Addresses,
        registry: Arc<Registry>,
        listener: Listener,
        connections_max: usize,
    ) -> Self {
        Sockets {
            me,
            key,
            peers: std::iter::repeat_with(|| None).take(addresses.count()).collect(),
            addresses,
            registry,
            listener,
            counters: Arc::default(),
            connections: Vec::new(),
            free: Vec::new(),
            strangers: BTreeMap::new(),
            hello_within: HELLO_WITHIN,
            ending: VecDeque::new(),
            dialled: BTreeMap::new(),
            dial_within: DIAL_WITHIN,
            unread: VecDeque::new(),
            events: 0,
            limit: ConnectionLimit::new(connections_max, STRANGERS_MAX, DIAL_WANTED_FOR),
            pressed_since: None,
            scratch: vec![0; READ_BYTES].into(),
        }
    }

    /// The number of connections, of any kind.
    pub(super) fn total(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// The number of the next event.
    pub(super) fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(super) fn connection(&mut self, place: usize) -> Option<&mut TcpConnection> {
        self.connections.get_mut(place)?.as_deref_mut()
    }

    pub(super) fn peer(&mut self, pe: Pe) -> Option<&mut PeerConnections> {
        self.peers.get_mut(pe.index())?.as_deref_mut()
    }

    /// The record of a PE, which must exist.
    pub(super) fn peer_or_new(&mut self, pe: Pe, now: Instant) -> &mut PeerConnections {
        self.peers[pe.index()].get_or_insert_with(|| Box::new(PeerConnections::new(now)))
    }

    /// The place of the next connection.
    pub(super) fn next_place(&self) -> usize {
        self.free.last().copied().unwrap_or(self.connections.len())
    }

    /// Keeps a connection at the next place.
    pub(super) fn keep(&mut self, connection: TcpConnection) {
        let kept = Some(Box::new(connection));
        match self.free.pop() {
            Some(place) => self.connections[place] = kept,
            None => self.connections.push(kept),
        }
    }

    /// Frees a place.
    pub(super) fn release(&mut self, place: usize) {
        self.free.push(place);
    }

    /// Sends a frame. `Ok(false)`: there is no room now.
    pub(super) fn send(&mut self, to: Pe, frame: &[u8]) -> Result<bool, LaneError> {
        let slot = self.peers.get(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        let open = slot.as_ref().and_then(|peer| peer.open);
        let event = self.event();
        let Some(place) = open else { return Ok(self.dial(to, frame, event)) };
        let Some(connection) = self.connection(place) else { return Ok(false) };
        connection.used = event;
        let is_taken = connection.send(frame);
        if is_taken.is_err() {
            self.connection_broke(place);
        }
        Ok(is_taken.unwrap_or(false))
    }

    /// Dials a PE with which there is no open connection, and lets a frame wait for the connection.
    /// Returns whether the frame was taken.
    fn dial(&mut self, to: Pe, frame: &[u8], event: u64) -> bool {
        let now = Instant::now();
        let peer = self.peer_or_new(to, now);
        let (dialling, is_redial) = (peer.dialling, peer.failures > 0);
        // Frames that still arrive on an old connection come before those on a new one.
        let must_wait = !peer.ending.is_empty() || now < peer.redial_at;
        if let Some(dial) = dialling.and_then(|place| self.connection(place)) {
            return dial.send(frame).unwrap_or(false);
        }
        if must_wait {
            return false;
        }
        if !self.may_dial(now) {
            self.want_to_dial(now);
            return false;
        }
        let place = self.next_place();
        let (address, pair) = (self.addresses.of(to), (self.me, to));
        let at = (&*self.registry, token(place));
        let dialled = TcpConnection::dial(self.key, pair, address, at, event);
        let mut connection = match dialled {
            Ok(connection) => connection,
            Err(error) if descriptors::is_shortage(&error) => {
                TcpCounters::count(&self.counters.not_dialled);
                descriptors::warn_of_shortage("calling another PE", &error);
                self.limit.want_dial(now);
                self.refused(&error, now);
                return false;
            }
            Err(_) => {
                TcpCounters::count(&self.counters.broken);
                self.peer(to).into_iter().for_each(|peer| peer.fail(now));
                return false;
            }
        };
        if is_redial {
            TcpCounters::count(&self.counters.redials);
        }
        let is_taken = connection.send(frame).unwrap_or(false);
        self.keep(connection);
        self.dialled.insert(event, place);
        self.peer(to).into_iter().for_each(|peer| peer.dialling = Some(place));
        self.limit.has_dialled();
        is_taken
    }

    /// Handles an event of a connection.
    pub(super) fn on_event(&mut self, place: usize, event: &Event) {
        let Some(connection) = self.connection(place) else { return };
        if connection.on_event(event).is_err() {
            return self.connection_broke(place);
        }
        if connection.is_over() {
            self.close(place, TcpCloseReason::Orderly);
        } else if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.on_readable(place);
        }
    }

    /// Notes that a connection has something to read.
    pub(super) fn on_readable(&mut self, place: usize) {
        if let Some(connection) = self.connection(place)
            && !std::mem::replace(&mut connection.is_unread, true)
        {
            self.unread.push_back(place);
        }
    }

    /// Whether the next round has something to read even without a new event.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Reads and delivers frames, up to a limit, and accepts calls. Returns the number of frames.
    pub(super) fn round(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> usize {
        let mut frames = 0;
        for _ in 0..self.unread.len() {
            if frames >= ROUND_FRAMES_MAX {
                break;
            }
            let Some(place) = self.unread.pop_front() else { break };
            frames += self.read(place, deliver);
        }
        if self.is_restless() {
            let now = Instant::now();
            self.close_late_dials(now);
            self.close_late_handshakes(now);
            self.close_overdue(now);
            self.accept(now);
            self.make_room(now);
        }
        frames
    }

    /// Gives a connection its turn to be read. Returns the number of frames delivered.
    fn read(&mut self, place: usize, deliver: &mut dyn FnMut(Pe, &[u8])) -> usize {
        let Some(connection) = self.connections[place].as_deref_mut() else { return 0 };
        if matches!(connection.state, ConnectionState::Greeting(_)) {
            connection.is_unread = false;
            match connection.continue_handshake() {
                Ok(None) => return 0,
                Ok(Some(pe)) => self.connection_opened(place, pe),
                Err(end) => {
                    self.close(place, end);
                    return 0;
                }
            }
        }
        let Some(connection) = self.connections[place].as_deref_mut() else { return 0 };
        let Some(pe) = connection.peer else { return 0 };
        let peer = self.peers[pe.index()].as_deref();
        if peer.is_none_or(|peer| peer.first() != Some(place)) {
            // Its turn comes once the older one has been read to its end.
            connection.is_unread = true;
            return 0;
        }
        connection.is_unread = false;
        let mut frames = 0;
        let heard = connection.read(&mut self.scratch, &mut |frame| {
            frames += 1;
            deliver(pe, frame);
        });
        if frames > 0 {
            self.events += 1;
            connection.used = self.events;
            connection.first_heard.get_or_insert(self.events);
        }
        match heard {
            Ok(ReadProgress::All) => {}
            Ok(ReadProgress::Some) => self.on_readable(place),
            Ok(ReadProgress::Last) => self.read_to_end(place),
            Err(end) => self.close(place, end),
        }
        frames
    }

    /// Closes a connection. The bytes that wait on it are lost.
    pub(super) fn close(&mut self, place: usize, end: TcpCloseReason) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.release(place);
        match connection.state {
            ConnectionState::Greeting(_) if connection.is_dialled => {
                self.dialled.remove(&connection.begun);
            }
            ConnectionState::Greeting(_) => drop(self.strangers.remove(&connection.begun)),
            ConnectionState::Open => {}
            ConnectionState::Ending { .. } => self.ending.retain(|ending| *ending != place),
        }
        // If it was being closed anyway, it was counted then.
        let end = if matches!(connection.state, ConnectionState::Ending { .. }) {
            TcpCloseReason::Orderly
        } else {
            end
        };
        match end {
            TcpCloseReason::Orderly => {}
            TcpCloseReason::Broken => TcpCounters::count(&self.counters.broken),
            TcpCloseReason::NoHandshake => TcpCounters::count(&self.counters.strangers),
            TcpCloseReason::Forged => TcpCounters::count(&self.counters.forged),
            TcpCloseReason::Oversized => TcpCounters::count(&self.counters.oversized),
        }
        let Some(peer) = connection.peer.and_then(|pe| self.peer(pe)) else { return };
        peer.remove(place);
        if end != TcpCloseReason::Orderly {
            peer.fail(connection.since);
        }
        // Frames on the next connection have waited for the end of this one.
        if let Some(next) = peer.first()
            && self.connection(next).is_some_and(|next| next.is_unread)
        {
            self.unread.push_back(next);
        }
    }

    /// Makes the next round read this connection, with or without an event.
    pub(super) fn read_soon(&mut self, place: usize) {
        if let Some(connection) = self.connection(place) {
            connection.is_unread = true;
            self.unread.push_back(place);
        }
    }

    /// Drops the connections with a PE, and the bytes that wait.
    pub(super) fn forget(&mut self, pe: Pe) {
        let Some(peer) = self.peers.get_mut(pe.index()).and_then(Option::take) else { return };
        let all = peer.ending.into_iter().chain(peer.open).chain(peer.dialling);
        all.for_each(|place| self.close(place, TcpCloseReason::Orderly));
    }

    /// Whether the system has taken everything.
    pub(super) fn is_flushed(&self) -> bool {
        self.connections.iter().flatten().all(|connection| connection.is_flushed())
    }
}
