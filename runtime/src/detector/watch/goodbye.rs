//! How a PE leaves in order.

use super::peer::{DialRole, PeerView};
use super::{Effects, Watch};
use crate::protocol::{MembershipStatus, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Watch {
    /// Begins to say goodbye to all PEs, which may take this long.
    pub fn goodbye(&mut self, now: Duration, within: Duration, effects: &mut Effects) {
        self.leaving_until = Some(now.saturating_add(within));
        let all: Vec<Pe> = self.peers.iter().map(|(pe, _)| pe).collect();
        for pe in all {
            let Some(peer) = self.peers.get_mut(pe) else { continue };
            // Also the PEs that should have dialled: they must not be refused.
            if peer.role != DialRole::None && peer.connections.is_empty() {
                peer.dial_at = Some(now);
            }
            self.say_goodbye(now, pe, effects);
        }
    }

    /// Whether goodbye has been said to all, or the time for it is over.
    pub fn is_done(&self, now: Duration) -> bool {
        let Some(until) = self.leaving_until else { return false };
        let is_waiting = |peer: &PeerView| {
            let has_news = !peer.outbox.is_empty();
            !peer.needs_no_goodbye
                && (has_news || peer.role != DialRole::None && self.is_in_order())
        };
        let is_sent = |peer: &PeerView| {
            peer.connections.iter().all(|connection| !connection.is_open() || connection.is_free())
        };
        now >= until || self.peers.values().all(|peer| !is_waiting(peer) && is_sent(peer))
    }

    /// Whether this PE belongs to the job, which may have ended.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.membership.status(), MembershipStatus::Member | MembershipStatus::Over { .. })
    }

    /// Says goodbye to a PE, if there is an open connection with it.
    pub(super) fn say_goodbye(&mut self, now: Duration, pe: Pe, effects: &mut Effects) {
        let is_in_order = self.is_in_order();
        let Some(peer) = self.peers.get_mut(pe) else { return };
        if is_in_order && peer.has_open() && !self.membership.is_dead(pe) {
            peer.needs_no_goodbye = true;
            // A PE that hears that the job is over loses no PE any more. It would wait for the dead
            // that it does not know.
            if !self.membership.dead().is_empty() {
                self.send(now, pe, self.membership.bulletin(), effects);
            }
            self.send(now, pe, Notice::Goodbye, effects);
        }
    }
}
