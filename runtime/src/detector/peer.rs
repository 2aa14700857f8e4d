//! What one detector knows about one other PE, and what it does next about it.

use crate::protocol::Notice;
use std::time::Duration;

/// How long to wait before dialling again after an attempt that failed; doubles with each, up to a
/// heartbeat. The first attempt after a connection that lasted is made at once.
const REDIAL_AFTER_MIN: Duration = Duration::from_millis(1);

/// Who of two that watch each other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// I do.
    Caller,
    /// The other does, and I if it has not for half of the time in which it must be heard.
    Called,
    /// We do not watch each other.
    None,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) role: Role,
    /// When it was last heard, or when I began to wait for it.
    pub(super) heard: Duration,
    /// It has been heard at all.
    pub(super) is_met: bool,
    /// It has been given up, or has said goodbye.
    pub(super) is_gone: bool,
    /// When to dial it, if there is a reason to and no connection.
    pub(super) dial_at: Option<Duration>,
    /// How many connections in a row came to nothing.
    pub(super) failures: u32,
    /// What waits for a connection: at most one bulletin, and nothing twice.
    pub(super) outbox: Vec<Notice>,
    /// All connections with it, open or not yet.
    pub(super) connections: Vec<usize>,
    /// It need not be told goodbye any more: it has been, or it is gone.
    pub(super) is_told: bool,
}

impl Peer {
    pub(super) fn new(now: Duration) -> Self {
        Peer {
            role: Role::None,
            heard: now,
            is_met: false,
            is_gone: false,
            dial_at: None,
            failures: 0,
            outbox: Vec::new(),
            connections: Vec::new(),
            is_told: false,
        }
    }

    /// Whether it matters that it answers.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_gone && (self.role != Role::None || !self.outbox.is_empty())
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_idle(&self) -> bool {
        self.role == Role::None && self.outbox.is_empty() && self.connections.is_empty()
    }

    /// From now on we watch each other so.
    pub(super) fn watch(&mut self, role: Role, now: Duration, dead_after: Duration) {
        if role == Role::None || self.role != Role::None {
            self.role = role;
            return;
        }
        self.role = role;
        self.heard = now;
        if self.connections.is_empty() {
            let patience = if role == Role::Caller { Duration::ZERO } else { dead_after / 2 };
            self.dial_at = Some(now.saturating_add(patience));
        }
    }

    /// Puts a notice where it waits for a connection.
    pub(super) fn post(&mut self, notice: Notice, now: Duration) {
        if !self.is_wanted() {
            self.heard = now;
        }
        if self.connections.is_empty() && self.dial_at.is_none() {
            self.dial_at = Some(now);
        }
        let is_bulletin = |notice: &Notice| matches!(notice, Notice::Bulletin { .. });
        if is_bulletin(&notice) {
            self.outbox.retain(|former| !is_bulletin(former));
        }
        if !self.outbox.contains(&notice) {
            self.outbox.push(notice);
        }
    }

    /// It was heard.
    pub(super) fn hear(&mut self, now: Duration) {
        self.heard = now;
        self.is_met = true;
        self.failures = 0;
    }

    /// A connection with it is no more.
    pub(super) fn lose(&mut self, connection: usize, now: Duration, heartbeat: Duration) {
        self.connections.retain(|other| *other != connection);
        if self.connections.is_empty() && self.is_wanted() {
            let doubled = REDIAL_AFTER_MIN.saturating_mul(1 << self.failures.min(16));
            let delay = if self.failures == 0 { Duration::ZERO } else { doubled.min(heartbeat) };
            self.dial_at = Some(now.saturating_add(delay));
            self.failures += 1;
        }
    }

    /// When it is to be given up, unless it is heard before; those never heard have until `grace`
    /// at least.
    pub(super) fn deadline(&self, dead_after: Duration, grace: Duration) -> Option<Duration> {
        let deadline = self.heard.saturating_add(dead_after);
        self.is_wanted().then(|| if self.is_met { deadline } else { deadline.max(grace) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_topology::Pe;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_is_watched_has_until_its_deadline_and_who_was_never_heard_the_grace() {
        let mut peer = Peer::new(MS);
        assert_eq!(peer.deadline(MS * 10, MS * 100), None);
        peer.watch(Role::Caller, MS * 2, MS * 10);
        assert_eq!(
            (peer.dial_at, peer.deadline(MS * 10, MS * 100)),
            (Some(MS * 2), Some(MS * 100))
        );
        peer.hear(MS * 3);
        assert_eq!(peer.deadline(MS * 10, MS * 100), Some(MS * 13));
        // To be watched otherwise is no news of it.
        peer.watch(Role::Called, MS * 9, MS * 10);
        assert_eq!(peer.deadline(MS * 10, MS * 100), Some(MS * 13));
        peer.watch(Role::None, MS * 9, MS * 10);
        assert_eq!(peer.deadline(MS * 10, MS * 100), None);
        let mut called = Peer::new(MS);
        called.watch(Role::Called, MS, MS * 10);
        assert_eq!(called.dial_at, Some(MS * 6));
    }

    #[test]
    fn the_first_redial_is_at_once_and_then_ever_later() {
        let mut peer = Peer::new(MS);
        peer.watch(Role::Caller, MS, MS * 10);
        let delays: Vec<_> = (0..20)
            .map(|_| {
                peer.connections.push(7);
                peer.lose(7, MS, MS * 5);
                peer.dial_at.unwrap().saturating_sub(MS)
            })
            .collect();
        assert_eq!(delays[..5], [Duration::ZERO, MS * 2, MS * 4, MS * 5, MS * 5]);
        peer.hear(MS);
        peer.connections.push(8);
        peer.lose(8, MS, MS * 5);
        assert_eq!(peer.dial_at, Some(MS));
    }

    #[test]
    fn news_for_one_whose_last_connection_came_to_nothing_is_still_dialled() {
        let mut peer = Peer::new(MS);
        peer.failures = 3;
        peer.post(Notice::Goodbye, MS * 2);
        assert_eq!(peer.dial_at, Some(MS * 2));
        // But not at once if it is to be dialled later anyway.
        peer.connections.push(7);
        peer.lose(7, MS * 3, MS * 50);
        let later = peer.dial_at;
        assert!(later > Some(MS * 3));
        peer.post(Notice::Known { dead: 0 }, MS * 3);
        assert_eq!(peer.dial_at, later);
    }

    #[test]
    fn the_outbox_holds_the_last_bulletin_and_nothing_twice() {
        let mut peer = Peer::new(MS);
        let bulletin =
            |dead: &[u32]| Notice::Bulletin { dead: dead.iter().copied().map(Pe::new).collect() };
        let accusation = Notice::Accuse { pe: Pe::new(3) };
        for notice in [bulletin(&[1]), accusation.clone(), accusation.clone(), bulletin(&[1, 2])] {
            peer.post(notice, MS * 4);
        }
        assert_eq!(peer.outbox, [accusation, bulletin(&[1, 2])]);
        assert_eq!(peer.deadline(MS * 10, MS), Some(MS * 14), "it has to take them");
    }
}
