//! What a watch sees of the PEs that it watches, and how it looks at others.

use super::peer::ConnectionPurpose;
use super::reachability::{ContactLimits, LossReason, Reachability};
use super::{Effects, Watch};
use crate::detector::counters::count;
use crate::protocol::MembershipStatus;
use std::time::Duration;
use ultramarine_topology::Pe;

/// The number of hosts, on each side of a silent one, that may be silent with it.
const HOSTS_NEAR: usize = 32;

impl Watch {
    /// The link has had no answer from a PE for a while. Begins to look at it.
    pub fn suspect(&mut self, now: Duration, pe: Pe) {
        self.probe(now, pe, self.settings.dead_after / 4);
    }

    /// Another PE has not reached this one for half of `dead_after`. Begins to look at it.
    pub(super) fn probe_for_membership(&mut self, now: Duration, pe: Pe) {
        let head_start = (self.settings.dead_after / 2).saturating_sub(self.settings.heartbeat / 2);
        self.probe(now, pe, head_start);
    }

    /// A host has fallen silent, perhaps with its whole rack: the root looks at the other PEs of the
    /// host and at the hosts near it, once for each such host. (Only the hosts at both ends of a
    /// silent rack have neighbours that watch them. Without this, the others would be noticed one
    /// after the other.)
    fn look_around(&mut self, now: Duration, silent: Pe) {
        if self.me == Pe::ROOT && self.silent_hosts.insert(self.hosts.row_of(silent)) {
            for pe in self.hosts.around(silent, HOSTS_NEAR, self.membership.living()) {
                self.probe_for_membership(now, pe);
            }
        }
    }

    /// Begins to find out whether a PE can be reached.
    fn probe(&mut self, now: Duration, pe: Pe, head_start: Duration) {
        let exists = pe != self.me && pe.number() < self.hosts.pes();
        if exists && !self.membership.is_dead(pe) {
            self.peers.get_or_insert(pe, now).probe(now, head_start);
        }
    }

    /// Assesses the PEs that have changed or are due, and lets membership repeat its accusations.
    /// The owner calls this only when it has handed over all that has arrived.
    pub fn assess(&mut self, now: Duration, effects: &mut Effects) {
        let is_judging = self.is_judging();
        for pe in self.peers.turn(now) {
            self.peers.note_assessed(pe, now);
            if is_judging {
                self.assess_pe(now, pe, effects);
            }
        }
        if is_judging {
            self.with_membership(now, effects, |membership, out| {
                membership.tick(now, out);
            });
        }
    }

    /// Whether this PE still judges others: neither it nor the job has ended.
    pub(super) fn is_judging(&self) -> bool {
        self.membership.status() == MembershipStatus::Member && self.leaving_until.is_none()
    }

    /// Tells membership what is seen of a PE, if that has changed.
    pub(super) fn assess_pe(&mut self, now: Duration, pe: Pe, effects: &mut Effects) {
        let (grace, dead_after) = (self.grace(), self.settings.dead_after);
        let limits = ContactLimits::of(self.me, pe, &self.settings);
        let Some(peer) = self.peers.get_unmarked(pe).filter(|peer| peer.is_wanted()) else {
            return;
        };
        if peer.purpose == ConnectionPurpose::News {
            if now.saturating_sub(peer.contact.last()) >= dead_after {
                // It cannot be told that it is dead.
                peer.purpose = ConnectionPurpose::None;
                peer.outbox.clear();
            }
            return;
        }
        let silence = now.saturating_sub(peer.contact.heard);
        if peer.is_met && silence >= dead_after && !peer.contact.is_refused {
            let is_answered = now.saturating_sub(peer.contact.answered) < dead_after / 2;
            if is_answered && !std::mem::replace(&mut peer.is_stalled, true) {
                let limit = limits.lose.unheard.unwrap_or(Duration::MAX);
                let me = self.me;
                tracing::warn!(
                    "{pe} has stalled: its host answers {me}, it does not; it has {limit:?}"
                );
            }
        }
        match peer.assess(now, &limits, grace) {
            None => {}
            Some(Reachability::InContact) => {
                self.with_membership(now, effects, |membership, _| membership.reach(pe));
            }
            Some(Reachability::Suspected) => {
                count(&self.counters.suspicions);
                tracing::debug!("no contact with {pe} at the moment");
                self.with_membership(now, effects, |membership, out| {
                    membership.suspect(now, pe, out);
                });
            }
            Some(Reachability::Lost(loss)) => {
                count(&self.counters.losses);
                tracing::info!("{pe} is lost: {loss}");
                if pe == Pe::ROOT {
                    self.root_loss = Some(loss);
                }
                if let LossReason::Unreached(_) = loss {
                    self.look_around(now, pe);
                }
                self.with_membership(now, effects, |membership, out| {
                    membership.lose(now, pe, out);
                });
            }
        }
    }
}
