//! What becomes of connections, and what that says about the PEs at their other ends.

use super::peer::{ConnectionPurpose, ConnectionState, PeerConnection, PeerView};
use super::reachability::LastContact;
use super::{CloseReason, ConnectionNumber, Effect, Effects, Watch};
use crate::detector::FailureEvent;
use crate::detector::counters::count;
use crate::protocol::{MembershipStatus, Notice};
use smallvec::SmallVec;
use std::time::Duration;
use ultramarine_topology::Pe;

/// The most open connections with one PE; for one more, the oldest is closed.
pub(super) const OPEN_MAX: usize = 2;

/// The most dials to one PE that are under way. A silent PE is dialled every 100 to 400 ms by
/// default, so an answer may take two seconds and more, as it does on a network that is full.
const DIALLED_MAX: usize = 20;

/// A PE is not lost for its silence before this many dials have gone without an answer: its owner
/// may lack the room to dial.
const DIALS_MIN: u32 = 2;

impl Watch {
    /// The owner has begun to dial a PE, on a connection of this number.
    pub fn dialling(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: ConnectionNumber,
        effects: &mut Effects,
    ) {
        if let Some(peer) = self.note_dial(now, pe) {
            peer.connections.push(PeerConnection::dialling(connection, now));
            self.limit_connections(pe, effects);
        }
    }

    /// The owner could not begin to dial a PE.
    pub fn dial_failed(&mut self, now: Duration, pe: Pe, why: CloseReason, effects: &mut Effects) {
        if why == CloseReason::NoRoom {
            self.peers.get_mut(pe).into_iter().for_each(|peer| peer.note_no_room(now));
        } else {
            self.note_dial(now, pe);
        }
        self.connection_ended(now, pe, None, why, effects);
    }

    fn note_dial(&mut self, now: Duration, pe: Pe) -> Option<&mut PeerView> {
        let peer = self.peers.get_mut(pe)?;
        peer.note_dial(now);
        if peer.failures > 0 {
            count(&self.counters.redials);
        }
        Some(peer)
    }

    /// The host of a PE has accepted a call. The PE itself may have stalled.
    pub fn answered(&mut self, now: Duration, pe: Pe, connection: ConnectionNumber) {
        let Some(peer) = self.peers.get_mut(pe) else { return };
        let begun = peer.connection_mut(connection).map_or(now, |connection| connection.used);
        peer.note_answer(now, begun);
    }

    /// The handshake with `pe` is done, on a connection that this PE dialled or on a new one that
    /// it has accepted.
    pub fn opened(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: ConnectionNumber,
        effects: &mut Effects,
    ) {
        let peer = self.peers.get_or_insert(pe, now);
        peer.contact = LastContact::at(now);
        peer.is_met = true;
        let begun = peer.connection_mut(connection).map(|dialled| dialled.used);
        let is_answer = begun.is_some_and(|begun| peer.answers_call(begun));
        if is_answer {
            peer.end_call();
        }
        peer.dial_at = None;
        let mut kept = SmallVec::new();
        for other in std::mem::take(&mut peer.connections) {
            match other.state {
                _ if other.number == connection => {}
                ConnectionState::Open => kept.push(other),
                ConnectionState::Dialling if peer.answers_call(other.used) => kept.push(other),
                // Dials that are still under way are not needed any more.
                ConnectionState::Dialling | ConnectionState::Ending => {
                    effects.push_back(Effect::Close(other.number));
                }
                ConnectionState::Closing => {}
            }
        }
        kept.push(PeerConnection::open(connection, now));
        peer.connections = kept;
        let waiting = std::mem::take(&mut peer.outbox);
        count(if begun.is_some() { &self.counters.dialled } else { &self.counters.accepted });
        self.limit_connections(pe, effects);
        // A heartbeat at once, to compare what both PEs know.
        let first = [self.membership.heartbeat()];
        for notice in first.into_iter().chain(waiting) {
            self.send(now, pe, notice, effects);
        }
        if self.membership.is_dead(pe) {
            self.notify_dead(pe, effects);
        }
        if self.leaving_until.is_some() {
            self.say_goodbye(now, pe, effects);
        }
        if is_answer {
            self.with_membership(now, effects, |membership, out| membership.reach(pe, out));
        }
    }

    /// Whether a connection holds something that the system has not taken yet. It gets no heartbeat
    /// until that is taken. An owner whose connections take everything at once need not call this.
    pub fn set_backlog(&mut self, pe: Pe, connection: ConnectionNumber, has_backlog: bool) {
        if let Some(peer) = self.peers.get_unmarked(pe)
            && let Some(connection) = peer.connection_mut(connection)
        {
            connection.has_backlog = has_backlog;
        }
    }

    /// A connection did not take this notice. Its end is still to be [reported](Self::closed).
    pub fn not_sent(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: ConnectionNumber,
        notice: Notice,
    ) {
        let Some(peer) = self.peers.get_mut(pe) else { return };
        if let Some(connection) = peer.connection_mut(connection) {
            connection.state = ConnectionState::Closing;
        }
        // Another open connection has it as well, or has failed to take it and says so next.
        if !matches!(notice, Notice::Known { .. }) && !peer.has_open() {
            peer.queue(notice, now);
        }
    }

    /// A connection with `pe` has ended.
    pub fn closed(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: ConnectionNumber,
        why: CloseReason,
        effects: &mut Effects,
    ) {
        self.connection_ended(now, pe, Some(connection), why, effects);
        if self.peers.get(pe).is_some_and(PeerView::is_idle) {
            self.peers.remove(pe);
        }
    }

    /// A connection with `pe` has ended, or none could be begun.
    fn connection_ended(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: Option<ConnectionNumber>,
        why: CloseReason,
        effects: &mut Effects,
    ) {
        why.count(&self.counters);
        if let Some(peer) = self.peers.get_mut(pe) {
            peer.note_closed(connection, now, self.settings.heartbeat);
            self.follow_up_close(now, pe, why, effects);
        }
    }

    /// Acts on what the end of a connection says about the PE at its other end.
    fn follow_up_close(&mut self, now: Duration, pe: Pe, why: CloseReason, effects: &mut Effects) {
        let is_dead = self.membership.is_dead(pe);
        let Some(peer) = self.peers.get_mut(pe) else { return };
        let status = self.membership.status();
        // A frame that is on its way to an open connection may say more.
        let is_witnessed = why == CloseReason::Gone && !peer.has_open();
        let is_refused = why == CloseReason::Refused && peer.connections.is_empty();
        match why {
            _ if is_witnessed || is_refused => {
                let is_news = !peer.seems_gone() && !is_dead;
                peer.contact.is_refused = true;
                peer.contact.is_gone |= is_witnessed;
                peer.needs_no_goodbye |= is_witnessed;
                match status {
                    // It may yet be told goodbye.
                    _ if self.leaving_until.is_some() && !is_witnessed => return,
                    _ if self.leaving_until.is_some() => {}
                    MembershipStatus::Member if !is_dead => {
                        return self.assess_pe(now, pe, effects);
                    }
                    // Then it matters no more who is the root.
                    MembershipStatus::Over { .. } if is_news => {
                        effects.push_back(Effect::Report(FailureEvent::Dead(vec![pe])));
                    }
                    _ => {}
                }
                peer.purpose = ConnectionPurpose::None;
                peer.outbox.clear();
            }
            // That says nothing about the other PE.
            CloseReason::LocalFailure => peer.postpone(now),
            CloseReason::NoRoom if peer.dials < DIALS_MIN => peer.postpone(now),
            _ => {}
        }
        if is_dead && peer.connections.is_empty() {
            peer.outbox.clear();
        }
    }

    /// Closes the connection that is needed least, so that the owner may have another. It was
    /// begun, or last carried anything but a heartbeat, at least `kept_for` ago; if there is none,
    /// nothing happens. It is one that is not needed any more, else one that is being dialled, else
    /// one that is to be dialled again at once; unless the owner `keeps_needed` ones.
    pub fn make_room(
        &mut self,
        now: Duration,
        kept_for: Duration,
        keeps_needed: bool,
        effects: &mut Effects,
    ) {
        let ranked = self.peers.iter().flat_map(|(pe, peer)| {
            let newest = peer.connections.iter().rfind(|connection| connection.is_open());
            let newest = newest.map(|connection| connection.number);
            let is_needed = peer.is_wanted();
            peer.connections.iter().filter_map(move |connection| {
                let rank = match connection.state {
                    ConnectionState::Closing => return None,
                    ConnectionState::Dialling => 1,
                    ConnectionState::Open if is_needed && newest == Some(connection.number) => 2,
                    ConnectionState::Open | ConnectionState::Ending => 0,
                };
                Some((rank, connection.used, connection.number, pe))
            })
        });
        let is_old = |used: Duration| used + kept_for <= now;
        let may_go =
            ranked.filter(|(rank, used, ..)| is_old(*used) && !(keeps_needed && *rank == 2));
        if let Some((_, _, number, pe)) = may_go.min() {
            self.give_up(pe, number, effects);
        }
    }

    /// Closes a dial, so that the owner may begin another: the oldest of those to a PE to which
    /// most are under way, if it was begun at least `kept_for` ago.
    pub fn give_up_a_dial(&mut self, now: Duration, kept_for: Duration, effects: &mut Effects) {
        let dials = self.peers.iter().filter_map(|(pe, peer)| {
            let mut dials = peer.connections.iter().filter(|connection| connection.is_dialled());
            let oldest = dials.next().filter(|oldest| oldest.used + kept_for <= now)?;
            Some((std::cmp::Reverse(1 + dials.count()), oldest.used, oldest.number, pe))
        });
        if let Some((_, _, number, pe)) = dials.min() {
            self.give_up(pe, number, effects);
        }
    }

    fn give_up(&mut self, pe: Pe, number: ConnectionNumber, effects: &mut Effects) {
        if let Some(peer) = self.peers.get_mut(pe)
            && let Some(connection) = peer.connection_mut(number)
        {
            connection.state = ConnectionState::Closing;
            effects.push_back(Effect::Close(number));
        }
    }

    /// Closes the oldest connection with a PE if there are too many.
    fn limit_connections(&mut self, pe: Pe, effects: &mut Effects) {
        let Some(peer) = self.peers.get_mut(pe) else { return };
        for (is_open, limit) in [(true, OPEN_MAX), (false, DIALLED_MAX)] {
            let is_kind = |connection: &PeerConnection| {
                connection.is_open() == is_open && connection.state != ConnectionState::Closing
            };
            if peer.connections.iter().filter(|connection| is_kind(connection)).count() > limit
                && let Some(oldest) = peer.connections.iter().position(is_kind)
            {
                effects.push_back(Effect::Close(peer.connections.remove(oldest).number));
            }
        }
    }
}
