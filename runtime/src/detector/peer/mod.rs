//! What one detector knows about one other PE, and what it does next about it.

#[cfg(test)]
mod tests;

use super::reachability::{ContactLimits, DialPace, LastContact, LossReason, Reachability};
use crate::protocol::Notice;
use std::time::Duration;

/// How long to wait before dialling again after an attempt that failed; doubles with each, up to a
/// heartbeat. The first attempt after a connection that lasted is made at once.
const REDIAL_AFTER_MIN: Duration = Duration::from_millis(1);

/// Who of two that watch each other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DialRole {
    /// I do.
    Dialler,
    /// The other does, and I if it has not for half of the time in which it must be heard.
    Acceptor,
    /// We do not watch each other.
    None,
}

/// What a connection with a PE would be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// To hear of each other.
    Contact,
    /// To tell it that it is in the list of the dead.
    News,
    /// Nothing: it has said goodbye, or has been told all that there is to tell.
    None,
}

#[derive(Debug)]
pub(super) struct PeerView {
    pub(super) role: DialRole,
    /// When it was last heard and when its host last answered, or when I began to wait for that.
    pub(super) contact: LastContact,
    /// What I see of it, as the agreement knows.
    pub(super) reachability: Reachability,
    /// Since when to look at it, whether or not we watch each other: until it has been heard.
    probed_since: Option<Duration>,
    /// The agreement waits for contact after this moment.
    asked: Option<Duration>,
    /// It has been heard at all.
    pub(super) is_met: bool,
    /// It has fallen silent while its host answers, and the log says so.
    pub(super) is_stalled: bool,
    pub(super) purpose: ConnectionPurpose,
    /// When to dial it, if there is a reason to and no connection.
    pub(super) dial_at: Option<Duration>,
    /// When it was last dialled.
    dialled: Duration,
    /// How often it was dialled since the last contact.
    dials: u32,
    /// How long its host took to answer of late.
    answer_time: Duration,
    /// How many connections in a row came to nothing.
    pub(super) failures: u32,
    /// What waits for a connection: at most one bulletin, and nothing twice.
    pub(super) outbox: Vec<Notice>,
    /// All connections with it, open or not yet.
    pub(super) connections: Vec<usize>,
    /// It need not be told goodbye any more: it has been, or it is gone.
    pub(super) needs_no_goodbye: bool,
}

impl PeerView {
    pub(super) fn new(now: Duration) -> Self {
        PeerView {
            role: DialRole::None,
            contact: LastContact::at(now),
            reachability: Reachability::InContact,
            probed_since: None,
            asked: None,
            is_met: false,
            is_stalled: false,
            purpose: ConnectionPurpose::Contact,
            dial_at: None,
            dialled: Duration::ZERO,
            dials: 0,
            answer_time: Duration::ZERO,
            failures: 0,
            outbox: Vec::new(),
            connections: Vec::new(),
            needs_no_goodbye: false,
        }
    }

    /// Whether it matters that it answers.
    pub(super) fn is_wanted(&self) -> bool {
        self.purpose != ConnectionPurpose::None && (self.is_watched() || !self.outbox.is_empty())
    }

    /// Whether it matters for more than what waits for it.
    pub(super) fn is_watched(&self) -> bool {
        let is_suspect = self.reachability != Reachability::InContact;
        self.role != DialRole::None || self.probed_since.is_some() || is_suspect
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_watched() && self.outbox.is_empty() && self.connections.is_empty()
    }

    /// From now on we watch each other so.
    pub(super) fn watch(&mut self, role: DialRole, now: Duration, dead_after: Duration) {
        if role == DialRole::None || self.role != DialRole::None {
            self.role = role;
            return;
        }
        if !self.is_watched() {
            self.contact = LastContact::at(now);
        }
        self.role = role;
        if self.connections.is_empty() {
            let patience = if role == DialRole::Dialler { Duration::ZERO } else { dead_after / 2 };
            self.dial_at = Some(now.saturating_add(patience));
        }
    }

    /// The agreement, or the link, asks whether there is contact. One that is not watched has been
    /// out of sight so far, and counts as unreached for `head_start` already.
    pub(super) fn probe(&mut self, now: Duration, head_start: Duration) {
        if !self.is_watched() {
            self.contact = LastContact::at(now.saturating_sub(head_start));
        }
        if self.connections.is_empty() {
            self.dial_at = Some(now);
        }
        self.probed_since = Some(now);
        self.asked.get_or_insert(now);
    }

    /// Looks whether there is contact. Returns what the agreement does not know yet.
    pub(super) fn assess(
        &mut self,
        now: Duration,
        limits: &ContactLimits,
        grace: Duration,
    ) -> Option<Reachability> {
        let grace = if self.is_met { Duration::ZERO } else { grace };
        let reachability = self.contact.reachability(now, limits, grace);
        let reachability = if self.contact.is_refused {
            Reachability::Lost(LossReason::Refused)
        } else {
            reachability
        };
        let has_answered = self.asked.is_some_and(|asked| self.contact.is_after(asked, limits));
        let is_news = match reachability {
            Reachability::InContact => self.reachability != Reachability::InContact || has_answered,
            _ => !self.reachability.is_same_kind(reachability),
        };
        if reachability == Reachability::InContact && has_answered {
            self.asked = None;
        }
        let is_heard = self.probed_since.is_some_and(|since| self.contact.heard > since);
        if reachability == Reachability::InContact && is_heard {
            self.probed_since = None;
        }
        if is_news {
            self.reachability = reachability;
        }
        is_news.then_some(reachability)
    }

    /// Whether to dial it now.
    pub(super) fn is_to_be_dialled(&self, now: Duration, pace: &DialPace) -> bool {
        self.is_wanted() && self.dial_due(pace).is_some_and(|due| due <= now)
    }

    /// When to dial it: as agreed, or since it is silent.
    fn dial_due(&self, pace: &DialPace) -> Option<Duration> {
        let is_probed = self.is_watched()
            && self.purpose == ConnectionPurpose::Contact
            && !self.contact.is_refused;
        let probe_at = self.contact.last().saturating_add(pace.after);
        let every = pace.every.saturating_mul(self.dials).max(self.answer_time).min(pace.every_max);
        let probe_at = probe_at.max(self.dialled.saturating_add(every));
        [self.dial_at, is_probed.then_some(probe_at)].into_iter().flatten().min()
    }

    /// It is being dialled.
    pub(super) fn note_dial(&mut self, now: Duration) {
        (self.dial_at, self.dialled) = (None, now);
        self.dials += 1;
    }

    /// When something is to be done about it.
    pub(super) fn due(
        &self,
        now: Duration,
        limits: &ContactLimits,
        grace: Duration,
        pace: &DialPace,
    ) -> Option<Duration> {
        if !self.is_wanted() {
            return None;
        }
        let grace = if self.is_met { Duration::ZERO } else { grace };
        let limit = self.contact.next_limit(now, limits, grace);
        [self.dial_due(pace), limit].into_iter().flatten().min()
    }

    /// It is in the list of the dead: it matters only that it hears so.
    pub(super) fn mark_dead(&mut self) {
        self.role = DialRole::None;
        if self.purpose == ConnectionPurpose::Contact {
            self.purpose = ConnectionPurpose::News;
        }
        (self.probed_since, self.asked) = (None, None);
        self.reachability = Reachability::InContact;
    }

    /// Puts a notice where it waits for a connection.
    pub(super) fn queue(&mut self, notice: Notice, now: Duration) {
        if !self.is_wanted() {
            self.contact = LastContact::at(now);
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

    /// Its host answers a dial that was begun then.
    pub(super) fn note_answer(&mut self, now: Duration, begun: Duration) {
        self.contact.answer(now);
        self.dials = 0;
        let took = now.saturating_sub(begun);
        // One lost packet makes one answer late. On a network that is full all of them are.
        self.answer_time = took.min((self.answer_time + took) / 2);
    }

    /// It was heard.
    pub(super) fn note_heard(&mut self, now: Duration) {
        self.contact = LastContact::at(now);
        self.is_met = true;
        (self.dials, self.failures) = (0, 0);
    }

    /// This host could not dial it, so that nothing was seen of it.
    pub(super) fn postpone(&mut self, now: Duration) {
        self.contact = LastContact::at(now);
        self.asked = self.asked.map(|_| now);
        self.probed_since = self.probed_since.map(|_| now);
    }

    /// A connection with it is no more.
    pub(super) fn note_closed(&mut self, connection: usize, now: Duration, heartbeat: Duration) {
        self.connections.retain(|other| *other != connection);
        if self.connections.is_empty() && self.is_wanted() {
            let doubled = REDIAL_AFTER_MIN.saturating_mul(1 << self.failures.min(16));
            let delay = if self.failures == 0 { Duration::ZERO } else { doubled.min(heartbeat) };
            self.dial_at = Some(now.saturating_add(delay));
            self.failures += 1;
        }
    }
}
