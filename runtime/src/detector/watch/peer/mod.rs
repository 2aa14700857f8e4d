//! What one watch knows about one other PE, and what it does next about it.

mod connection;
#[cfg(test)]
mod tests;

pub(super) use connection::{ConnectionState, PeerConnection};

use super::ConnectionNumber;
use super::reachability::{ContactLimits, DialPace, LastContact, LossReason, Reachability};
use crate::protocol::Notice;
use smallvec::SmallVec;
use std::time::Duration;

/// How long to wait before dialling again after a failed attempt; doubles with each, up to a
/// heartbeat. The first attempt after a connection that lasted is made at once.
const REDIAL_AFTER_MIN: Duration = Duration::from_millis(1);

/// Which of two PEs that watch each other dials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DialRole {
    /// This PE does.
    Dialler,
    /// The other PE does; this PE too if the other has not for half of `dead_after`.
    Acceptor,
    /// They do not watch each other.
    None,
}

/// What a connection with a PE is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// To exchange heartbeats and notices.
    Contact,
    /// To tell the PE that it is in the list of the dead.
    News,
    /// Nothing: the PE has said goodbye, or has been told everything.
    None,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct PeerView {
    pub(super) role: DialRole,
    /// When the PE was last heard and when its host last answered, or since when that is awaited.
    pub(super) contact: LastContact,
    /// What this detector last told membership about the PE.
    pub(super) reachability: Reachability,
    /// Since when to look at the PE until it is heard, watched or not.
    probed_since: Option<Duration>,
    /// Membership, or the link, waits for a frame of the PE after this moment.
    asked: Option<Duration>,
    /// This PE waits for the other to answer a call that it made at this moment or later.
    called: Option<Duration>,
    /// The PE has been heard at least once.
    pub(super) is_met: bool,
    /// The PE has fallen silent while its host answers, and the log says so.
    pub(super) is_stalled: bool,
    pub(super) purpose: ConnectionPurpose,
    /// When to dial the PE, if there is a reason to and no connection.
    pub(super) dial_at: Option<Duration>,
    /// When the PE was last dialled.
    dialled: Duration,
    /// The number of dials since the last contact.
    pub(super) dials: u32,
    /// How long the PE's host took to answer recently.
    answer_time: Duration,
    /// The number of connections in a row that failed.
    pub(super) failures: u32,
    /// Notices that wait for a connection: at most one bulletin, the last, and none twice. (The PE
    /// gets what came before it as the answer to its heartbeat when the connection begins.)
    pub(super) outbox: Vec<Notice>,
    /// The connections with the PE, open or not yet, the oldest first. Mostly there is one.
    pub(super) connections: SmallVec<[PeerConnection; 1]>,
    /// The PE has been told goodbye, or is gone.
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
            called: None,
            is_met: false,
            is_stalled: false,
            purpose: ConnectionPurpose::Contact,
            dial_at: None,
            dialled: Duration::ZERO,
            dials: 0,
            answer_time: Duration::ZERO,
            failures: 0,
            outbox: Vec::new(),
            connections: SmallVec::new(),
            needs_no_goodbye: false,
        }
    }

    /// Whether there is an open connection.
    pub(super) fn has_open(&self) -> bool {
        self.connections.iter().any(PeerConnection::is_open)
    }

    /// The connection of this number.
    pub(super) fn connection_mut(
        &mut self,
        number: ConnectionNumber,
    ) -> Option<&mut PeerConnection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }

    /// Whether an answer of the PE matters.
    pub(super) fn is_wanted(&self) -> bool {
        self.purpose != ConnectionPurpose::None && (self.is_watched() || !self.outbox.is_empty())
    }

    /// Whether it matters for more than the notices that wait for it.
    pub(super) fn is_watched(&self) -> bool {
        let is_suspect = self.reachability != Reachability::InContact;
        let is_asked_for = self.probed_since.is_some() || self.called.is_some();
        self.role != DialRole::None || is_asked_for || is_suspect
    }

    /// Whether its process is gone, as a witness says, or its host, which may be wrong.
    pub(super) fn seems_gone(&self) -> bool {
        self.contact.is_gone || self.contact.is_refused
    }

    /// Whether there is nothing left to remember about the PE.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_watched() && self.outbox.is_empty() && self.connections.is_empty()
    }

    /// From now on the two PEs watch each other in this role.
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

    /// Membership, or the link, asks whether there is contact. A PE that is not watched counts as
    /// unreached for `head_start` already.
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

    /// Calls the PE, also if there are connections. What comes over them may have been on its way
    /// for long; only a connection that is begun now, or later, shows that the PE lives.
    pub(super) fn call(&mut self, now: Duration) {
        self.called = Some(now);
    }

    /// Whether an answer to a call is awaited.
    pub(super) fn is_called(&self) -> bool {
        self.called.is_some()
    }

    /// Whether a call has had no answer for this long.
    pub(super) fn is_call_overdue(&self, now: Duration, patience: Duration) -> bool {
        self.called.is_some_and(|called| now.saturating_sub(called) >= patience)
    }

    /// Whether a connection that was begun at this moment answers the call.
    pub(super) fn answers_call(&self, begun: Duration) -> bool {
        self.called.is_some_and(|called| begun >= called)
    }

    /// The PE has answered the call.
    pub(super) fn end_call(&mut self) {
        self.called = None;
    }

    /// Assesses whether there is contact. Returns the result if membership does not know it yet.
    pub(super) fn assess(
        &mut self,
        now: Duration,
        limits: &ContactLimits,
        grace: Duration,
    ) -> Option<Reachability> {
        let grace = if self.is_met { Duration::ZERO } else { grace };
        let reachability = self.contact.reachability(now, limits, grace);
        let reachability =
            if self.contact.is_gone { Reachability::Lost(LossReason::Gone) } else { reachability };
        let is_reached = self.asked.is_some_and(|asked| self.contact.heard > asked);
        let is_news = match reachability {
            Reachability::InContact => self.reachability != Reachability::InContact || is_reached,
            _ => !self.reachability.is_same_kind(reachability),
        };
        if reachability == Reachability::InContact && is_reached {
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

    /// Whether to dial the PE now.
    pub(super) fn is_to_be_dialled(&self, now: Duration, pace: &DialPace) -> bool {
        self.is_wanted() && self.dial_due(pace).is_some_and(|due| due <= now)
    }

    /// When to dial the PE: as scheduled, or because it is silent.
    fn dial_due(&self, pace: &DialPace) -> Option<Duration> {
        let is_contact = self.purpose == ConnectionPurpose::Contact;
        let is_probed = is_contact && self.is_wanted() && !self.contact.is_gone;
        let probe_at = self.contact.last().saturating_add(pace.after);
        let every = pace.every.saturating_mul(self.dials).max(self.answer_time).min(pace.every_max);
        let probe_at = probe_at.max(self.dialled.saturating_add(every));
        let call_at = self.call_due(pace);
        [self.dial_at, is_probed.then_some(probe_at), call_at].into_iter().flatten().min()
    }

    /// When to make the call, if it is not under way.
    fn call_due(&self, pace: &DialPace) -> Option<Duration> {
        let called = self.called?;
        let is_under_way = |connection: &PeerConnection| {
            connection.state == ConnectionState::Dialling && connection.used >= called
        };
        let is_made = self.connections.iter().any(is_under_way);
        let again_at = self.dialled.saturating_add(pace.every_max);
        (!is_made).then_some(if self.dialled < called { called } else { again_at })
    }

    /// The PE is being dialled.
    pub(super) fn note_dial(&mut self, now: Duration) {
        (self.dial_at, self.dialled) = (None, now);
        self.dials += 1;
    }

    /// There was no room to dial the PE.
    pub(super) fn note_no_room(&mut self, now: Duration) {
        (self.dial_at, self.dialled) = (None, now);
    }

    /// When something is due about this PE.
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

    /// When its connections have been unused for this long, if nothing is wanted of it.
    pub(super) fn unused_at(&self, limit: Duration) -> Option<Duration> {
        let is_kept = |connection: &&PeerConnection| connection.state != ConnectionState::Closing;
        let kept = self.connections.iter().filter(is_kept).filter(|_| !self.is_wanted());
        kept.map(|connection| connection.used.saturating_add(limit)).min()
    }

    /// The connections to close, since they have been unused for this long.
    pub(super) fn close_unused(
        &mut self,
        now: Duration,
        limit: Duration,
    ) -> SmallVec<[ConnectionNumber; 2]> {
        let mut unused = SmallVec::new();
        if self.unused_at(limit).is_some_and(|at| at <= now) {
            for connection in &mut self.connections {
                let is_unused = connection.used.saturating_add(limit) <= now;
                if is_unused && connection.state != ConnectionState::Closing {
                    connection.state = ConnectionState::Closing;
                    unused.push(connection.number);
                }
            }
        }
        unused
    }

    /// The PE is in the list of the dead: all that matters is that it hears so.
    pub(super) fn mark_dead(&mut self) {
        self.role = DialRole::None;
        if self.purpose == ConnectionPurpose::Contact {
            self.purpose = ConnectionPurpose::News;
        }
        (self.probed_since, self.asked, self.called) = (None, None, None);
        self.reachability = Reachability::InContact;
    }

    /// Queues a notice until there is a connection.
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

    /// The PE's host answers a dial that began at `begun`.
    pub(super) fn note_answer(&mut self, now: Duration, begun: Duration) {
        self.contact.answer(now);
        self.dials = 0;
        let took = now.saturating_sub(begun);
        // One lost packet makes one answer late. On a network that is full all of them are.
        self.answer_time = took.min((self.answer_time + took) / 2);
    }

    /// The PE was heard.
    pub(super) fn note_heard(&mut self, now: Duration) {
        self.contact = LastContact::at(now);
        self.is_met = true;
        (self.dials, self.failures) = (0, 0);
    }

    /// This host could not dial, which says nothing about the PE: its silence begins anew.
    pub(super) fn postpone(&mut self, now: Duration) {
        self.contact = LastContact::at(now);
        self.asked = self.asked.map(|_| now);
        self.probed_since = self.probed_since.map(|_| now);
    }

    /// A connection with the PE has ended; `None`: it could not even be begun.
    pub(super) fn note_closed(
        &mut self,
        connection: Option<ConnectionNumber>,
        now: Duration,
        heartbeat: Duration,
    ) {
        self.connections.retain(|other| Some(other.number) != connection);
        if self.connections.is_empty() && self.is_wanted() {
            let doubled = REDIAL_AFTER_MIN.saturating_mul(1 << self.failures.min(16));
            let delay = if self.failures == 0 { Duration::ZERO } else { doubled.min(heartbeat) };
            self.dial_at = Some(now.saturating_add(delay));
            self.failures += 1;
        }
    }
}
