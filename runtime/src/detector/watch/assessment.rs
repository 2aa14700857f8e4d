//! What a watch sees of the PEs that it watches, and how it looks at others.

use super::peer::ConnectionPurpose;
use super::reachability::{ContactLimits, LossReason, Reachability};
use super::{Effects, Watch};
use crate::detector::counters::count;
use crate::protocol::{Loss, MembershipStatus};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Watch {
    /// The link has had no answer from a PE for a while. Begins to look at it.
    pub fn suspect(&mut self, now: Duration, pe: Pe) {
        self.probe(now, pe, self.settings.dead_after / 4);
    }

    /// Another PE has not reached this one for half of `dead_after`. Begins to look at it; if
    /// `anew`, what has been seen, or is on its way, does not count.
    pub(super) fn probe_for_membership(&mut self, now: Duration, pe: Pe, anew: bool) {
        let head_start = (self.settings.dead_after / 2).saturating_sub(self.settings.heartbeat / 2);
        self.probe(now, pe, head_start);
        if anew && let Some(peer) = self.peers.get_mut(pe) {
            peer.call(now);
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
        let judge = self.membership.judge();
        let limits = ContactLimits::of(self.me, pe, judge, &self.settings);
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
        if peer.is_met && silence >= dead_after && !peer.contact.is_gone {
            let is_answered = now.saturating_sub(peer.contact.answered) < dead_after / 2;
            if is_answered && !std::mem::replace(&mut peer.is_stalled, true) {
                let limit = limits.lose.unheard.unwrap_or(Duration::MAX);
                let me = self.me;
                tracing::warn!(
                    "{pe} has stalled: its host answers {me}, it does not; it has {limit:?}"
                );
            }
        }
        let is_called = peer.is_called();
        match peer.assess(now, &limits, grace) {
            None => {}
            // What needs the answer to a call: a frame may have been on its way for long.
            Some(Reachability::InContact) if self.me == judge || is_called => {}
            Some(Reachability::InContact) => {
                self.with_membership(now, effects, |membership, out| membership.reach(pe, out));
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
                if pe == judge {
                    self.root_loss = Some(loss);
                }
                let loss = match loss {
                    LossReason::Gone => Loss::Witnessed,
                    LossReason::Refused(_) => Loss::Refused,
                    LossReason::Unreached(_) | LossReason::Unheard(_) => Loss::Silent,
                };
                self.with_membership(now, effects, |membership, out| {
                    membership.lose(now, pe, loss, out);
                });
            }
        }
    }
}
