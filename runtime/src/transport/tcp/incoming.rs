//! The connections that this PE accepted, from which it only reads.

use super::{FRAME_BYTES_MAX, TcpCounters, accepted_token};
use crate::handshake::{Handshake, JobKey, Purpose, Refusal};
use crate::transport::listener::Listener;
use crate::transport::pieces::Pieces;
use mio::net::TcpStream;
use mio::{Interest, Registry};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use ultramarine_topology::Pe;

/// How many frames one round of reading delivers before it leaves the rest to the next; it may
/// exceed this by the frames of one read.
const ROUND_FRAMES_MAX: usize = 256;

/// How often one connection is read in a round, so that all get their turn.
const ROUND_READS_MAX: usize = 4;

/// How much is read at once, in bytes: a few frames of full length.
const READ_BYTES: usize = 256 << 10;

/// What is usual for `hello_within`.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// What is usual for `strangers_max`.
const STRANGERS_MAX: usize = 1024;

/// How many connections one round accepts.
const ROUND_ACCEPTS_MAX: usize = 64;

/// The listener and all connections that it accepted.
pub(super) struct Incoming {
    me: Pe,
    key: JobKey,
    pes: usize,
    listener: Listener,
    /// How long the handshake on a connection may take.
    pub(super) hello_within: Duration,
    /// How many connections may be within the handshake at a time; one more, and the oldest goes.
    pub(super) strangers_max: usize,
    connections: Vec<Option<Accepted>>,
    /// The empty places in `connections`.
    free: Vec<usize>,
    /// Where the connection of each PE is.
    callers: HashMap<Pe, usize>,
    /// Where the connections within the handshake are, by serial number, so the oldest is the first.
    strangers: BTreeMap<u64, usize>,
    /// The next connection's serial number.
    serial: u64,
    /// The connections, each once, in which there may be something to read.
    unread: VecDeque<usize>,
    /// What was just read.
    pub(super) scratch: Box<[u8]>,
}

struct Accepted {
    stream: TcpStream,
    serial: u64,
    since: Instant,
    caller: Caller,
    is_unread: bool,
}

/// Who is calling.
enum Caller {
    /// Unknown as yet.
    Stranger(Handshake),
    /// A PE of this job, and its frames.
    Peer { from: Pe, frames: Pieces },
}

/// Why a connection is to be closed.
#[derive(Clone, Copy)]
enum End {
    /// The caller closed it where it may.
    Closed,
    Broken,
    /// It began with anything but a hello to us, or did not go on.
    NoHello,
    /// It does not know the key.
    Forged,
    /// It announced a frame over the limit.
    Oversized,
}

impl Incoming {
    pub(super) fn new(me: Pe, key: JobKey, pes: usize, listener: Listener) -> Self {
        Incoming {
            me,
            key,
            pes,
            listener,
            hello_within: HELLO_WITHIN,
            strangers_max: STRANGERS_MAX,
            connections: Vec::new(),
            free: Vec::new(),
            callers: HashMap::new(),
            strangers: BTreeMap::new(),
            serial: 0,
            unread: VecDeque::new(),
            scratch: vec![0; READ_BYTES].into(),
        }
    }

    /// The listener has connections to accept.
    pub(super) fn on_call(&mut self) {
        self.listener.on_call();
    }

    /// A connection has something to read.
    pub(super) fn on_readable(&mut self, place: usize) {
        if let Some(Some(accepted)) = self.connections.get_mut(place)
            && !std::mem::replace(&mut accepted.is_unread, true)
        {
            self.unread.push_back(place);
        }
    }

    /// Whether the next round will find something although epoll tells of nothing new.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty() || self.listener.is_ready()
    }

    /// Accepts, reads and delivers what there is, up to a bound. Returns how many frames there
    /// were.
    pub(super) fn round(
        &mut self,
        registry: &Registry,
        counters: &TcpCounters,
        deliver: &mut dyn FnMut(Pe, &[u8]),
    ) -> usize {
        if self.listener.is_called() {
            self.accept(registry, counters);
        }
        let mut frames = 0;
        for _ in 0..self.unread.len() {
            if frames >= ROUND_FRAMES_MAX {
                break;
            }
            let Some(place) = self.unread.pop_front() else { break };
            self.read(place, &mut frames, counters, deliver);
        }
        self.dismiss_strangers(counters);
        frames
    }

    fn accept(&mut self, registry: &Registry, counters: &TcpCounters) {
        for _ in 0..ROUND_ACCEPTS_MAX {
            let mut stream = match self.listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(_) => return TcpCounters::count(&counters.not_accepted),
            };
            let place = self.free.pop().unwrap_or(self.connections.len());
            if registry.register(&mut stream, accepted_token(place), Interest::READABLE).is_ok() {
                self.settle(place, stream);
            } else {
                TcpCounters::count(&counters.broken);
                self.free.extend((place < self.connections.len()).then_some(place));
            }
        }
    }

    fn settle(&mut self, place: usize, stream: TcpStream) {
        let pes = self.pes as u32;
        let handshake = Handshake::accept(self.key, Purpose::Lane, self.me, pes);
        let caller = Caller::Stranger(handshake);
        let (serial, since) = (self.serial, Instant::now());
        let accepted = Accepted { stream, serial, since, caller, is_unread: false };
        if place == self.connections.len() {
            self.connections.push(Some(accepted));
        } else {
            self.connections[place] = Some(accepted);
        }
        self.strangers.insert(serial, place);
        self.serial += 1;
    }

    /// Reads from one connection, for at most its turn.
    fn read(
        &mut self,
        place: usize,
        frames: &mut usize,
        counters: &TcpCounters,
        deliver: &mut dyn FnMut(Pe, &[u8]),
    ) {
        // A place that was closed since it came onto the list of unread ones has nothing to read.
        let Some(mut accepted) = self.connections[place].take() else { return };
        accepted.is_unread = false;
        for _ in 0..ROUND_READS_MAX {
            let read = match accepted.stream.read(&mut self.scratch) {
                Ok(0) => return self.close(place, &accepted, accepted.end(), counters),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.connections[place] = Some(accepted);
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.close(place, &accepted, End::Broken, counters),
            };
            let mut bytes = &self.scratch[..read];
            if let Caller::Stranger(handshake) = &mut accepted.caller {
                let from = match greet(handshake, &mut bytes, &mut accepted.stream) {
                    Ok(Some(from)) => from,
                    Ok(None) => continue,
                    Err(end) => return self.close(place, &accepted, end, counters),
                };
                accepted.caller = Caller::Peer { from, frames: Pieces::default() };
                self.strangers.remove(&accepted.serial);
                TcpCounters::count(&counters.accepted);
                // What is left in the PE's former connection is older than what came by this one.
                if let Some(former) = self.callers.insert(from, place) {
                    self.connections[former] = None;
                    self.free.push(former);
                    TcpCounters::count(&counters.broken);
                }
            }
            if let Caller::Peer { from, frames: pieces } = &mut accepted.caller {
                let cut = pieces.cut(bytes, FRAME_BYTES_MAX, &mut |frame| {
                    *frames += 1;
                    deliver(*from, frame);
                });
                if cut.is_err() {
                    return self.close(place, &accepted, End::Oversized, counters);
                }
            }
        }
        self.connections[place] = Some(accepted);
        self.on_readable(place);
    }

    /// Closes the connection that has been taken from `place`.
    fn close(&mut self, place: usize, accepted: &Accepted, end: End, counters: &TcpCounters) {
        match end {
            End::Closed => {}
            End::Broken => TcpCounters::count(&counters.broken),
            End::NoHello => TcpCounters::count(&counters.strangers),
            End::Forged => TcpCounters::count(&counters.forged),
            End::Oversized => TcpCounters::count(&counters.oversized),
        }
        match accepted.caller {
            Caller::Stranger(_) => drop(self.strangers.remove(&accepted.serial)),
            Caller::Peer { from, .. } => drop(self.callers.remove(&from)),
        }
        self.free.push(place);
    }

    /// Closes the connections whose handshake has not ended in time, and the oldest of those whose
    /// handshake goes on if there are too many.
    fn dismiss_strangers(&mut self, counters: &TcpCounters) {
        if self.strangers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((_, &place)) = self.strangers.first_key_value() {
            let is_late = |accepted: &Accepted| now - accepted.since > self.hello_within;
            let is_too_much = self.strangers.len() > self.strangers_max;
            let Some(accepted) =
                self.connections[place].take_if(|accepted| is_too_much || is_late(accepted))
            else {
                return;
            };
            self.close(place, &accepted, End::NoHello, counters);
        }
    }
}

/// Goes on with a handshake. Returns who the caller is once it is done.
fn greet(
    handshake: &mut Handshake,
    bytes: &mut &[u8],
    stream: &mut TcpStream,
) -> Result<Option<Pe>, End> {
    let mut answer = Vec::new();
    let peer = handshake.read(bytes, &mut answer).map_err(|refusal| match refusal {
        Refusal::Stranger => End::NoHello,
        Refusal::Forged => End::Forged,
        Refusal::Io(_) => End::Broken,
    })?;
    // It is the first that is written on this connection, and short: the system takes it.
    stream.write_all(&answer).map_err(|_| End::Broken)?;
    Ok(peer.map(|peer| peer.pe))
}

#[cfg(test)]
impl Incoming {
    /// Ends all connections, with whatever they hold.
    pub(super) fn break_connections(&self) {
        for accepted in self.connections.iter().flatten() {
            // One that the caller has ended already is as good as broken.
            let _ = accepted.stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Accepted {
    /// What it means that nothing more comes.
    fn end(&self) -> End {
        match &self.caller {
            Caller::Stranger(_) => End::NoHello,
            Caller::Peer { frames, .. } if frames.is_between() => End::Closed,
            Caller::Peer { .. } => End::Broken,
        }
    }
}
