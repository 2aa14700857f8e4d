//! What the detector's thread does about connections and notices, and how it sends notices and
//! reports events.

use super::close_reason::CloseReason;
use super::connection::SealedConnection;
use super::counters::{add, count};
use super::event::FailureEvent;
use super::event_loop::EventLoop;
use super::peer::{ConnectionPurpose, DialRole, PeerView};
use super::reachability::{ContactLimits, LastContact, Reachability};
use super::rings::Partners;
use super::settings::DetectorSettings;
use crate::protocol::{Membership, MembershipStatus, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

/// The most open connections with one PE; for one more, the oldest is closed.
const OPEN_MAX: usize = 2;

/// The most dials to one PE that are under way. A silent PE is dialled every 100 to 400 ms by
/// default, so an answer may take two seconds and more, as it does on a network that is full.
const DIALLED_MAX: usize = 20;

impl EventLoop {
    /// The handshake with `pe` is done.
    pub(super) fn connection_opened(&mut self, number: usize, pe: Pe) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.used = now;
        let way =
            if connection.is_dialled { &self.counters.dialled } else { &self.counters.accepted };
        count(way);
        let peer = self.peers.entry(pe).or_insert_with(|| PeerView::new(now));
        peer.contact = LastContact::at(now);
        peer.is_met = true;
        peer.dial_at = None;
        // Dials that are still under way are not needed any more.
        let is_open =
            |number: &usize| self.connections.get(number).is_some_and(SealedConnection::is_open);
        let (mut open, spare): (Vec<_>, Vec<_>) =
            peer.connections.drain(..).filter(|other| *other != number).partition(is_open);
        open.push(number);
        peer.connections = open;
        self.ended.extend(spare.into_iter().map(|number| (number, CloseReason::NotNeeded)));
        let waiting = std::mem::take(&mut peer.outbox);
        self.limit_connections(pe);
        // A heartbeat at once, to compare what both PEs know.
        let first = [self.membership.heartbeat()];
        for notice in first.into_iter().chain(waiting) {
            self.send(pe, notice);
        }
        if self.membership.is_dead(pe) {
            self.notify_dead(pe);
        }
        if self.leaving_until.is_some() {
            self.say_goodbye(pe);
        }
    }

    /// Handles a notice that has arrived.
    pub(super) fn handle_notice(&mut self, number: usize, pe: Pe, notice: Notice) {
        let now = self.now();
        if let Some(peer) = self.peers.get_mut(&pe) {
            if std::mem::take(&mut peer.is_stalled) {
                let silence = now.saturating_sub(peer.contact.heard);
                tracing::info!("{pe} goes on after it had stalled for {silence:?}");
            }
            peer.note_heard(now);
            if notice == Notice::Goodbye {
                (peer.purpose, peer.needs_no_goodbye) = (ConnectionPurpose::None, true);
            }
        }
        if let Notice::Known { .. } = notice {
            count(&self.counters.heartbeats_received);
        } else {
            count(&self.counters.notices_received);
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.used = now;
            }
        }
        let is_farewell = notice == Notice::Goodbye;
        self.with_membership(|membership, out| membership.handle(now, pe, notice, out));
        // The root goes on as the judge, but its PE should know.
        if is_farewell
            && self.job.me == Pe::ROOT
            && !std::mem::replace(&mut self.has_reported_last, true)
        {
            (self.report)(FailureEvent::JobOver { by: pe });
        }
    }

    /// A connection has been removed.
    pub(super) fn connection_lost(
        &mut self,
        number: usize,
        connection: &SealedConnection,
        end: CloseReason,
    ) {
        end.count(&self.counters);
        let Some(pe) = connection.peer else { return };
        let (now, heartbeat) = (self.now(), self.job.settings.heartbeat);
        let Some(peer) = self.peers.get_mut(&pe) else { return };
        peer.note_closed(number, now, heartbeat);
        self.follow_up_close(pe, end);
    }

    /// A PE could not be dialled at all.
    pub(super) fn dial_failed(&mut self, pe: Pe, end: CloseReason) {
        end.count(&self.counters);
        let (now, heartbeat) = (self.now(), self.job.settings.heartbeat);
        if let Some(peer) = self.peers.get_mut(&pe) {
            // No connection has this number: it stands for the one that was not made.
            peer.note_closed(usize::MAX, now, heartbeat);
        }
        self.follow_up_close(pe, end);
    }

    /// Acts on what the end of a connection says about the PE at its other end.
    fn follow_up_close(&mut self, pe: Pe, end: CloseReason) {
        let now = self.now();
        let is_dead = self.membership.is_dead(pe);
        let Some(peer) = self.peers.get_mut(&pe) else { return };
        let status = self.membership.status();
        match end {
            CloseReason::Refused if peer.connections.is_empty() => {
                peer.needs_no_goodbye = true;
                let is_news = !std::mem::replace(&mut peer.contact.is_refused, true) && !is_dead;
                if self.leaving_until.is_none() {
                    match status {
                        MembershipStatus::Member if !is_dead => return self.assess(pe),
                        MembershipStatus::Over { .. } if is_news => {
                            (self.report)(FailureEvent::Dead(vec![pe]));
                        }
                        _ => {}
                    }
                }
                peer.purpose = ConnectionPurpose::None;
                peer.outbox.clear();
            }
            // That says nothing about the other PE.
            CloseReason::LocalFailure => peer.postpone(now),
            _ => {}
        }
        if is_dead && peer.connections.is_empty() {
            peer.outbox.clear();
        }
    }

    /// Looks at a PE that has not answered the link for a while.
    pub(super) fn probe_for_link(&mut self, pe: Pe) {
        self.probe(pe, self.job.settings.dead_after / 4);
    }

    /// Looks at a PE that another PE has not reached for half of `dead_after`.
    fn probe_for_membership(&mut self, pe: Pe) {
        let DetectorSettings { heartbeat, dead_after, .. } = self.job.settings;
        self.probe(pe, (dead_after / 2).saturating_sub(heartbeat / 2));
    }

    /// Begins to find out whether a PE can be reached.
    fn probe(&mut self, pe: Pe, head_start: Duration) {
        let now = self.now();
        let exists = pe != self.job.me && pe.number() < self.job.topology.pes();
        if exists && !self.membership.is_dead(pe) {
            let peer = self.peers.entry(pe).or_insert_with(|| PeerView::new(now));
            peer.probe(now, head_start);
        }
    }

    /// Tells membership what is seen of a PE, if that has changed.
    pub(super) fn assess(&mut self, pe: Pe) {
        let (now, grace, settings) = (self.now(), self.grace(), self.job.settings);
        let limits = ContactLimits::of(self.job.me, pe, &settings);
        let Some(peer) = self.peers.get_mut(&pe).filter(|peer| peer.is_wanted()) else { return };
        if peer.purpose == ConnectionPurpose::News {
            if now.saturating_sub(peer.contact.last()) >= settings.dead_after {
                // It cannot be told that it is dead.
                peer.purpose = ConnectionPurpose::None;
                peer.outbox.clear();
            }
            return;
        }
        let silence = now.saturating_sub(peer.contact.heard);
        if peer.is_met && silence >= settings.dead_after && !peer.contact.is_refused {
            let is_answered = now.saturating_sub(peer.contact.answered) < settings.dead_after / 2;
            if is_answered && !std::mem::replace(&mut peer.is_stalled, true) {
                let limit = limits.lose.unheard.unwrap_or(Duration::MAX);
                let me = self.job.me;
                tracing::warn!(
                    "{pe} has stalled: its host answers {me}, it does not; it has {limit:?}"
                );
            }
        }
        match peer.assess(now, &limits, grace) {
            None => {}
            Some(Reachability::InContact) => {
                self.with_membership(|membership, _| membership.reach(pe));
            }
            Some(Reachability::Suspected) => {
                count(&self.counters.suspicions);
                tracing::debug!("no contact with {pe} at the moment");
                self.with_membership(|membership, out| membership.suspect(now, pe, out));
            }
            Some(Reachability::Lost(loss)) => {
                count(&self.counters.losses);
                tracing::info!("{pe} is lost: {loss}");
                if pe == Pe::ROOT {
                    self.root_loss = Some(loss);
                }
                self.with_membership(|membership, out| membership.lose(now, pe, out));
            }
        }
    }

    /// Closes the oldest connection with a PE if there are too many.
    pub(super) fn limit_connections(&mut self, pe: Pe) {
        let Some(peer) = self.peers.get_mut(&pe) else { return };
        let is_open =
            |number: &&usize| self.connections.get(number).is_some_and(SealedConnection::is_open);
        let (open, dialled): (Vec<_>, Vec<_>) = peer.connections.iter().partition(is_open);
        let oldest = [(open, OPEN_MAX), (dialled, DIALLED_MAX)].into_iter().filter_map(
            |(numbers, limit): (Vec<usize>, _)| (numbers.len() > limit).then(|| numbers[0]),
        );
        for number in oldest.collect::<Vec<_>>() {
            peer.connections.retain(|other| *other != number);
            self.ended.push((number, CloseReason::NotNeeded));
        }
    }

    /// Runs `act` on the membership, sends its notices, and reports what has changed.
    pub(super) fn with_membership(
        &mut self,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)),
    ) {
        let mut notices = Vec::new();
        act(&mut self.membership, &mut |to, notice| notices.push((to, notice)));
        for (to, notice) in notices {
            match notice {
                Notice::Look { pe } if to == self.job.me => self.probe_for_membership(pe),
                notice => self.send_or_queue(to, notice),
            }
        }
        self.report_changes();
    }

    /// Sends a notice now, or as soon as there is a connection.
    fn send_or_queue(&mut self, to: Pe, notice: Notice) {
        let now = self.now();
        let peer = self.peers.entry(to).or_insert_with(|| PeerView::new(now));
        let has_open = peer
            .connections
            .iter()
            .any(|number| self.connections.get(number).is_some_and(SealedConnection::is_open));
        // A dead PE that has a connection was told on it that it is dead.
        let is_dismissed = self.membership.is_dead(to) && !peer.connections.is_empty();
        if has_open {
            self.send(to, notice);
        } else if peer.purpose != ConnectionPurpose::None && !is_dismissed {
            peer.queue(notice, now);
        }
    }

    /// Sends a notice on every open connection with a PE. Mostly there is one; of several, one may
    /// be broken already. To hear a notice twice does no harm.
    fn send(&mut self, to: Pe, notice: Notice) {
        let now = self.now();
        let Some(peer) = self.peers.get(&to) else { return };
        let is_beat = matches!(notice, Notice::Known { .. });
        let mut is_sent = false;
        for number in &peer.connections {
            let Some(connection) = self.connections.get_mut(number) else { continue };
            if !connection.is_open() {
                continue;
            }
            match connection.send(&notice) {
                Ok(()) => is_sent = true,
                Err(end) => self.ended.push((*number, end)),
            }
            if is_beat {
                count(&self.counters.heartbeats_sent);
            } else {
                count(&self.counters.notices_sent);
                connection.used = now;
            }
        }
        if let Some(peer) = self.peers.get_mut(&to)
            && !is_sent
            && !is_beat
        {
            peer.queue(notice, now);
        }
    }

    /// Reports what has changed in the membership since the last time, and acts on it.
    fn report_changes(&mut self) {
        let newly: Vec<Pe> = self.membership.dead()[self.reported..].to_vec();
        let status = self.membership.status();
        if !newly.is_empty() {
            self.reported += newly.len();
            for pe in &newly {
                self.notify_dead(*pe);
            }
            self.update_partners();
            if status != MembershipStatus::Expelled {
                add(&self.counters.dead, newly.len());
                (self.report)(FailureEvent::Dead(newly));
            }
        }
        if self.has_reported_last {
            return;
        }
        let event = match status {
            MembershipStatus::Member => return,
            MembershipStatus::Expelled => FailureEvent::Expelled,
            MembershipStatus::RootLost => {
                let reason = self.root_loss.map_or_else(String::new, |loss| loss.to_string());
                FailureEvent::RootLost { reason: format!("{} is lost: {reason}", Pe::ROOT) }
            }
            MembershipStatus::Over { by } => FailureEvent::JobOver { by },
        };
        self.has_reported_last = true;
        self.update_partners();
        (self.report)(event);
        if let MembershipStatus::Over { .. } = status {
            let refused = self.peers.iter().filter(|(_, peer)| peer.contact.is_refused);
            let gone: Vec<Pe> = refused.map(|(pe, _)| *pe).collect();
            gone.into_iter()
                .filter(|pe| !self.membership.is_dead(*pe))
                .for_each(|pe| (self.report)(FailureEvent::Dead(vec![pe])));
        }
    }

    /// Tells a PE that is in the list of the dead that it is, in case that it lives after all, and
    /// sends it nothing more.
    fn notify_dead(&mut self, pe: Pe) {
        let Some(peer) = self.peers.get_mut(&pe) else { return };
        peer.mark_dead();
        let bulletin = self.membership.bulletin_about(pe);
        for number in &peer.connections {
            let Some(connection) = self.connections.get_mut(number) else { continue };
            if connection.is_open() {
                // If that fails, it is gone.
                let _ = connection.send(&bulletin);
                connection.end_sending();
            } else {
                // A new dial carries the list; these only hold descriptors.
                self.ended.push((*number, CloseReason::NotNeeded));
            }
        }
    }

    /// Finds out with which PEs to share connections from now on. With none, once this PE cannot go
    /// on.
    pub(super) fn update_partners(&mut self) {
        let (now, dead_after) = (self.now(), self.job.settings.dead_after);
        let partners = if self.is_in_order() {
            self.hosts.partners(self.job.me, self.membership.living())
        } else {
            Partners::default()
        };
        let Partners { calls, called_by } = partners;
        for (pe, peer) in &mut self.peers {
            if !calls.contains(pe) && !called_by.contains(pe) {
                peer.role = DialRole::None;
            }
        }
        let roles = calls.into_iter().map(|pe| (pe, DialRole::Dialler));
        for (pe, role) in roles.chain(called_by.into_iter().map(|pe| (pe, DialRole::Acceptor))) {
            let peer = self.peers.entry(pe).or_insert_with(|| PeerView::new(now));
            peer.watch(role, now, dead_after);
        }
    }

    /// Begins to say goodbye to all PEs, which may take this long.
    pub(super) fn take_leave(&mut self, within: Duration) {
        let now = self.now();
        self.leaving_until = Some(now.saturating_add(within));
        for peer in self.peers.values_mut() {
            // Also the PEs that should have dialled: they must not be refused.
            if peer.role != DialRole::None && peer.connections.is_empty() {
                peer.dial_at = Some(now);
            }
        }
        let all: Vec<Pe> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|pe| self.say_goodbye(pe));
    }

    /// Whether this PE belongs to the job, which may have ended.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.membership.status(), MembershipStatus::Member | MembershipStatus::Over { .. })
    }

    /// Says goodbye to a PE, if there is an open connection with it.
    fn say_goodbye(&mut self, pe: Pe) {
        let is_in_order = self.is_in_order();
        let Some(peer) = self.peers.get_mut(&pe) else { return };
        let has_open = peer
            .connections
            .iter()
            .any(|number| self.connections.get(number).is_some_and(SealedConnection::is_open));
        if is_in_order && has_open && !self.membership.is_dead(pe) {
            peer.needs_no_goodbye = true;
            // A PE that hears that the job is over loses no PE any more. It would wait for the dead
            // that it does not know.
            if !self.membership.dead().is_empty() {
                self.send(pe, self.membership.bulletin());
            }
            self.send(pe, Notice::Goodbye);
        }
    }
}
