//! What the detectors and their systems send each other, and when it arrives.
//!
//! ```text
//! dialler                   system of the other host             its detector
//!    ── Call ──────────────────────▶ ─┐
//!    ◀───────────── Answer, or End ───┘
//!    ── Hello ──────────────────────────────────────────────────────▶
//!    ◀──────────────────────────────────────────────────── Welcome ──     opens it
//!    ── Proof ──────────────────────────────────────────────────────▶     opens it
//!    ◀── Notices ───────────────────────────────────────────────────▶
//! ```
//!
//! Packets of a connection arrive in order. A path that is cut holds them up: TCP sends them again
//! when the path is whole. On a path that is cut for ever they never arrive. A cut that answers
//! refuses a call, and ends a connection, at the end that has sent something.

use super::{Process, SimulatedDetector, Simulation};
use crate::traffic::Traffic;
use crate::world::events::Event;
use crate::world::frames::transfer;
use ultramarine_runtime::detector::watch::{CloseReason, ConnectionNumber};
use ultramarine_runtime::protocol::{Death, Notice};
use ultramarine_topology::Pe;

/// How long the answer of a firewall takes, in nanoseconds.
const REJECTS_AFTER_NS: u64 = 50_000;

/// The length of a packet without a list of PEs, in bytes.
const PACKET_BYTES: usize = 64;

/// While everything is overloaded, one packet in this many finds a thread that gets no core.
const OVERLOAD_STALLS_ONE_IN: u64 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// To a host: a PE dials one of its PEs.
    Call,
    /// The host accepts the call.
    Answer,
    /// The first message of the handshake.
    Hello,
    /// The second.
    Welcome,
    /// The third.
    Proof,
    /// A notice.
    Notice(Notice),
    /// The other end is closed, or was never made.
    End(CloseReason),
}

impl Packet {
    fn bytes(&self) -> usize {
        match self {
            Packet::Notice(Notice::Bulletin { dead, .. }) => {
                PACKET_BYTES + dead.len() * size_of::<Death>()
            }
            _ => PACKET_BYTES,
        }
    }
}

impl Simulation {
    /// A PE, or its system, sends something to the other end of a connection.
    pub(super) fn send_packet(&mut self, number: ConnectionNumber, from: Pe, packet: Packet) {
        let Some(wire) = self.detectors.wires.get_mut(number) else { return };
        let to = wire.other(from);
        if self.is_rejected(from, to) {
            return self.reject(number, from, to, &packet);
        }
        let Some(at) = self.packet_arrival(from, to, &packet) else { return };
        self.pass_on(number, from, to, at, packet);
    }

    /// Something arrives that is from this end, or is as if it were: after what came before it.
    fn pass_on(&mut self, number: ConnectionNumber, from: Pe, to: Pe, at: u64, packet: Packet) {
        let Some(wire) = self.detectors.wires.get_mut(number) else { return };
        let end = wire.end(from);
        end.arrives = at.max(end.arrives + 1);
        let at = end.arrives;
        self.schedule(at, Event::Packet { number, to, packet });
    }

    /// Whether a firewall answers what is sent now.
    fn is_rejected(&self, from: Pe, to: Pe) -> bool {
        self.job.detection.as_ref().is_some_and(|it| it.cuts_answer)
            && self.broken_paths.opens(from, to, self.now) != Some(self.now)
    }

    /// A firewall answers in place of `to`.
    fn reject(&mut self, number: ConnectionNumber, from: Pe, to: Pe, packet: &Packet) {
        let why = match packet {
            Packet::End(_) => return,
            Packet::Call => CloseReason::Refused,
            _ => CloseReason::Broken,
        };
        self.pass_on(number, to, from, self.now + REJECTS_AFTER_NS, Packet::End(why));
    }

    /// When a packet arrives that is sent now; `None`: never.
    fn packet_arrival(&mut self, from: Pe, to: Pe, packet: &Packet) -> Option<u64> {
        if self.detectors.blind.contains(&(to, from)) {
            return None;
        }
        let open = self.broken_paths.opens(from, to, self.now)?;
        // Repetitions come after twice as long each time.
        let held_up = open - self.now;
        let open = open + if held_up > 0 { self.dice.within(0..=held_up) } else { 0 };
        let latency = match &self.job.traffic {
            Traffic::Modelled(..) => transfer(&self.job.traffic, from, to, packet.bytes())
                .map_or(0, |(_, _, transfer)| transfer.last_byte_ns),
            Traffic::Random(random) => {
                let dead_after = self.job.dead_after_ns();
                let mut latency = self.dice.within(random.latency_ns.clone());
                // To wait for several late packets must not take `dead_after`: a network that is
                // that slow is broken.
                if self.dice.one_in(random.late_one_in) {
                    latency += self.dice.within(0..=random.late_ns.min(dead_after / 8));
                }
                latency
            }
        };
        Some(open + latency)
    }

    /// A packet has come to the host of a PE.
    pub(super) fn packet_arrives(&mut self, number: ConnectionNumber, to: Pe, packet: Packet) {
        let now = self.now;
        if now < self.overloaded_until && self.dice.one_in(OVERLOAD_STALLS_ONE_IN) {
            self.stall(to);
        }
        let detector = &mut self.detectors.all[to.index()];
        match (detector.process, &packet) {
            (Process::HostGone, _) => {}
            (Process::Gone, Packet::Call) => {
                let is_witnessed = now < detector.testifies_until || self.is_on_one_host(number);
                let why = if is_witnessed { CloseReason::Gone } else { CloseReason::Refused };
                self.send_packet(number, to, Packet::End(why));
            }
            (_, Packet::Call) => {
                if let Some(wire) = self.detectors.wires.get_mut(number) {
                    wire.end(to).is_there = true;
                    detector.add_end(number);
                    self.send_packet(number, to, Packet::Answer);
                }
            }
            (Process::Running, _) if now < detector.stopped_until => {
                detector.unread.push((number, packet));
            }
            (Process::Running, _) => {
                self.read_packet(number, to, packet);
                self.take_turn(to);
            }
            (Process::Dying | Process::Gone, _) => {}
        }
    }

    /// Whether both ends of a connection are on one host.
    fn is_on_one_host(&mut self, number: ConnectionNumber) -> bool {
        let topology = &self.job.topology;
        let wire = self.detectors.wires.get_mut(number);
        wire.is_some_and(|wire| {
            let [one, other] = wire.ends.map(|end| topology.place(end.pe).host());
            one.is_some() && one == other
        })
    }

    /// A process reads what has arrived.
    pub(super) fn read_packet(&mut self, number: ConnectionNumber, at: Pe, packet: Packet) {
        let SimulatedDetector { ends, .. } = &self.detectors.all[at.index()];
        if !ends.contains(&number) {
            // It has closed the connection.
            return;
        }
        let Some(wire) = self.detectors.wires.get_mut(number) else { return };
        let peer = wire.other(at);
        match packet {
            Packet::Call => {}
            Packet::Answer => {
                self.tell(at, |watch, now, _| watch.answered(now, peer, number));
                self.send_packet(number, at, Packet::Hello);
            }
            Packet::Hello => self.send_packet(number, at, Packet::Welcome),
            Packet::Welcome => {
                self.send_packet(number, at, Packet::Proof);
                self.tell(at, |watch, now, effects| watch.opened(now, peer, number, effects));
            }
            Packet::Proof => {
                wire.end(at).is_known = true;
                self.tell(at, |watch, now, effects| watch.opened(now, peer, number, effects));
            }
            Packet::Notice(notice) => self.tell(at, |watch, now, effects| {
                watch.notice(now, peer, number, notice, effects);
            }),
            Packet::End(why) => {
                if self.close(number, at).is_some() {
                    self.tell(at, |watch, now, effects| {
                        watch.closed(now, peer, number, why, effects);
                    });
                }
            }
        }
    }

    /// A PE closes its end of a connection. Returns the PE at the other end, if its watch knows
    /// the connection.
    pub(super) fn close(&mut self, number: ConnectionNumber, at: Pe) -> Option<Pe> {
        if !self.detectors.all[at.index()].ends.remove(&number) {
            return None;
        }
        self.send_packet(number, at, Packet::End(CloseReason::Closed));
        self.detectors.wires.remove_end(number, at)
    }
}
