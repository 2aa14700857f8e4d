//! What a watch does about notices, how it sends them, and what it reports.

use super::connections::OPEN_MAX;
use super::peer::{ConnectionPurpose, ConnectionState, DialRole};
use super::rings::Partners;
use super::{ConnectionNumber, Effect, Effects, Watch};
use crate::detector::FailureEvent;
use crate::detector::counters::{add, count};
use crate::protocol::{Membership, MembershipStatus, Notice};
use smallvec::SmallVec;
use std::time::Duration;
use ultramarine_topology::Pe;

impl Watch {
    /// A notice of `pe` has arrived.
    pub fn notice(
        &mut self,
        now: Duration,
        pe: Pe,
        connection: ConnectionNumber,
        notice: Notice,
        effects: &mut Effects,
    ) {
        let is_beat = matches!(notice, Notice::Known { .. });
        if let Some(peer) = self.peers.get_mut(pe) {
            if std::mem::take(&mut peer.is_stalled) {
                let silence = now.saturating_sub(peer.contact.heard);
                tracing::info!("{pe} goes on after it had stalled for {silence:?}");
            }
            peer.note_heard(now);
            if notice == Notice::Goodbye {
                (peer.purpose, peer.needs_no_goodbye) = (ConnectionPurpose::None, true);
            }
            if !is_beat && let Some(connection) = peer.connection_mut(connection) {
                connection.used = now;
            }
        }
        count(if is_beat {
            &self.counters.heartbeats_received
        } else {
            &self.counters.notices_received
        });
        self.settle_call(now, pe, effects);
        let is_farewell = notice == Notice::Goodbye;
        self.with_membership(now, effects, |membership, out| {
            membership.handle(now, pe, notice, out);
        });
        // The judge goes on, but its PE should know.
        if is_farewell
            && self.me == self.membership.judge()
            && !std::mem::replace(&mut self.has_reported_last, true)
        {
            effects.push_back(Effect::Report(FailureEvent::JobOver { by: pe }));
        }
    }

    /// On the root: asks the others to agree that the job ends.
    pub fn ask_end(&mut self, now: Duration, effects: &mut Effects) {
        if self.is_judging() {
            self.with_membership(now, effects, |membership, out| membership.ask_end(now, out));
        }
    }

    /// A PE was heard that has not answered a call for so long that this frame cannot have
    /// been on its way since before. A firewall that lets this PE make no new connection is no
    /// reason never to decide.
    fn settle_call(&mut self, now: Duration, pe: Pe, effects: &mut Effects) {
        if let Some(peer) = self.peers.get_mut(pe)
            && peer.is_call_overdue(now, self.settings.stalled_after)
        {
            peer.end_call();
            self.with_membership(now, effects, |membership, out| membership.reach(pe, out));
        }
    }

    /// Runs `act` on the membership, sends its notices, and reports what has changed.
    pub(super) fn with_membership(
        &mut self,
        now: Duration,
        effects: &mut Effects,
        act: impl FnOnce(&mut Membership, &mut dyn FnMut(Pe, Notice)),
    ) {
        let mut notices = Vec::new();
        act(&mut self.membership, &mut |to, notice| notices.push((to, notice)));
        for (to, notice) in notices {
            match notice {
                Notice::Look { pe, anew } if to == self.me => {
                    self.probe_for_membership(now, pe, anew);
                }
                notice => self.send_or_queue(now, to, notice, effects),
            }
        }
        self.report_changes(now, effects);
    }

    /// Sends a notice now, or as soon as there is a connection.
    fn send_or_queue(&mut self, now: Duration, to: Pe, notice: Notice, effects: &mut Effects) {
        let peer = self.peers.get_or_insert(to, now);
        // A dead PE that has a connection was told on it that it is dead.
        let is_dismissed = self.membership.is_dead(to) && !peer.connections.is_empty();
        if peer.has_open() {
            self.send(now, to, notice, effects);
        } else if peer.purpose != ConnectionPurpose::None && !is_dismissed {
            peer.queue(notice, now);
        }
    }

    /// Sends a notice on every open connection with a PE. Mostly there is one; of several, one may
    /// be broken already. To hear a notice twice does no harm.
    pub(super) fn send(&mut self, now: Duration, to: Pe, notice: Notice, effects: &mut Effects) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let is_beat = matches!(notice, Notice::Known { .. });
        let mut open = SmallVec::<[ConnectionNumber; OPEN_MAX]>::new();
        for connection in peer.connections.iter_mut().filter(|connection| connection.is_open()) {
            open.push(connection.number);
            if is_beat {
                count(&self.counters.heartbeats_sent);
            } else {
                count(&self.counters.notices_sent);
                connection.used = now;
            }
        }
        if let Some((last, others)) = open.split_last() {
            effects.extend(others.iter().map(|connection| {
                let notice = notice.clone();
                Effect::Send { connection: *connection, notice }
            }));
            effects.push_back(Effect::Send { connection: *last, notice });
        } else if !is_beat {
            peer.queue(notice, now);
        }
    }

    /// Reports what has changed in the membership since the last time, and acts on it.
    fn report_changes(&mut self, now: Duration, effects: &mut Effects) {
        let newly: Vec<Pe> = self.membership.dead()[self.reported..].to_vec();
        let status = self.membership.status();
        if !newly.is_empty() {
            self.reported += newly.len();
            for pe in &newly {
                self.notify_dead(*pe, effects);
            }
            if newly.iter().any(|pe| self.hosts.may_change(&self.partners, *pe)) {
                self.update_partners(now);
            }
            if status != MembershipStatus::Expelled {
                add(&self.counters.dead, newly.len());
                effects.push_back(Effect::Report(FailureEvent::Dead(newly)));
            }
        }
        self.follow_judge(now, effects);
        self.report_end(effects);
        if self.has_reported_last {
            return;
        }
        let event = match status {
            MembershipStatus::Member => return,
            MembershipStatus::Expelled => FailureEvent::Expelled,
            MembershipStatus::RootLost => {
                let reason = self.root_loss.map_or_else(
                    || format!("{} is lost, as other PEs have found", self.judge),
                    |loss| format!("{} is lost: {loss}", self.judge),
                );
                FailureEvent::RootLost { reason }
            }
            MembershipStatus::Outvoted => FailureEvent::RootLost {
                reason: "half of the PEs or more are out of reach; the others go on".to_owned(),
            },
            MembershipStatus::Over { by } => FailureEvent::JobOver { by },
        };
        self.has_reported_last = true;
        self.update_partners(now);
        effects.push_back(Effect::Report(event));
        if let MembershipStatus::Over { .. } = status {
            let gone = self.peers.iter().filter(|(_, peer)| peer.seems_gone());
            let gone = gone.map(|(pe, _)| pe).filter(|pe| !self.membership.is_dead(*pe));
            effects.extend(gone.map(|pe| Effect::Report(FailureEvent::Dead(vec![pe]))));
        }
    }

    /// Another PE may be the judge, or ask for votes: then other PEs are watched, and judged
    /// otherwise.
    fn follow_judge(&mut self, now: Duration, effects: &mut Effects) {
        if !self.settings.succession || self.membership.heartbeat() == self.seen {
            return;
        }
        self.seen = self.membership.heartbeat();
        let known: Vec<Pe> = self.peers.iter().map(|(pe, _)| pe).collect();
        for pe in known {
            self.peers.get_mut(pe);
        }
        self.update_partners(now);
        let heading = self.membership.heading();
        if heading.in_office && heading.term.judge != self.judge {
            self.judge = heading.term.judge;
            effects.push_back(Effect::Report(FailureEvent::Succession { judge: self.judge }));
        }
    }

    fn report_end(&mut self, effects: &mut Effects) {
        let is_agreed = self.membership.heading().ends && self.membership.is_end_agreed();
        if is_agreed && !std::mem::replace(&mut self.has_reported_end, true) {
            effects.push_back(Effect::Report(FailureEvent::EndAgreed));
        }
    }

    /// Tells a PE that is in the list of the dead that it is, in case that it lives after all, and
    /// sends it nothing more.
    pub(super) fn notify_dead(&mut self, pe: Pe, effects: &mut Effects) {
        let Some(peer) = self.peers.get_mut(pe) else { return };
        peer.mark_dead();
        for connection in &mut peer.connections {
            match connection.state {
                ConnectionState::Open => {
                    let number = connection.number;
                    let notice = self.membership.bulletin_about(pe);
                    let send = |notice| Effect::Send { connection: number, notice };
                    effects.extend(notice.map(send));
                    effects.push_back(Effect::EndSending(number));
                    connection.state = ConnectionState::Ending;
                }
                // A new dial carries the list; these only hold descriptors.
                ConnectionState::Dialling | ConnectionState::Ending => {
                    effects.push_back(Effect::Close(connection.number));
                    connection.state = ConnectionState::Closing;
                }
                ConnectionState::Closing => {}
            }
        }
    }

    /// Finds out with which PEs to share connections from now on. With none, once this PE cannot go
    /// on.
    pub(super) fn update_partners(&mut self, now: Duration) {
        let dead_after = self.settings.dead_after;
        let partners = if self.is_in_order() {
            self.hosts.partners(self.me, self.membership.watched())
        } else {
            Partners::default()
        };
        if partners == self.partners {
            return;
        }
        let former = std::mem::replace(&mut self.partners, partners.clone());
        for pe in former.iter().filter(|pe| !partners.contains(*pe)) {
            if let Some(peer) = self.peers.get_mut(pe) {
                peer.role = DialRole::None;
            }
        }
        let Partners { calls, called_by, .. } = partners;
        let roles = calls.into_iter().map(|pe| (pe, DialRole::Dialler));
        for (pe, role) in roles.chain(called_by.into_iter().map(|pe| (pe, DialRole::Acceptor))) {
            self.peers.get_or_insert(pe, now).watch(role, now, dead_after);
        }
    }
}
