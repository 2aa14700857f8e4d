//! How a job ends.
//!
//! As long as no PE has died, the end is orderly. SHUTDOWN goes down the tree of the PEs. A PE
//! sends FAREWELL up the tree once all PEs below it have, and all that it sent has arrived. When
//! the root has heard from all, no message is on its way anywhere, and RELEASE goes down the tree.
//!
//! After a death, SHUTDOWN goes down the tree of the living PEs, and each PE leaves as soon as it
//! knows that its SHUTDOWNs have arrived.

use super::message::Message;
use super::node::{Host, Node};
use super::phase::Phase;
use std::time::Duration;
use ultramarine_topology::Pe;

/// After a death, a PE that leaves gives the others this long to acknowledge what it sent them
/// last, apart from SHUTDOWN, which must have arrived.
const LINGER: Duration = Duration::from_millis(50);

/// Nor does it wait longer than this for others then: they may have left in the same way. A PE that
/// missed SHUTDOWN hears of the end from their goodbyes, and waits no longer either. (Else 42 of
/// 3000 simulated jobs ended late, with deaths at their ends, instead of 12.)
const LINGER_MAX: Duration = Duration::from_millis(500);

/// When a PE leaves. It belongs to the owner of the [`Node`], who knows the time and what has
/// arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    /// When the end of the job began here.
    since: Option<Duration>,
    /// When another PE was heard to leave in order.
    over_since: Option<Duration>,
    leaves_unanswered: bool,
}

impl Leaving {
    /// Another PE has left in order, so the job is over. What this PE still waits for may have been
    /// sent by a PE that has died since: it does not wait for long.
    pub fn hear_goodbye(&mut self, now: Duration) {
        self.over_since.get_or_insert(now);
    }

    /// Takes leave if the job has ended and nothing is left to wait for. The owner calls this after
    /// whatever it does, with the time since its start.
    ///
    /// `is_idle` says that everything that this PE sent has arrived; `has_reached` says it of what
    /// it sent some PEs.
    pub fn try_take_leave(
        &mut self,
        node: &mut Node,
        now: Duration,
        is_idle: bool,
        has_reached: impl FnOnce(Vec<Pe>) -> bool,
        host: &mut impl Host,
    ) {
        if node.phase() == Phase::Running {
            return;
        }
        let since = *self.since.get_or_insert(now);
        // After a death others may have left already, and acknowledge nothing any more.
        let has_failures = node.has_failures();
        let over_since = self.over_since.or(has_failures.then_some(since));
        if over_since.is_some_and(|over| now >= over.max(since) + LINGER_MAX) {
            self.leave_unanswered(node, host);
        } else if is_idle || has_failures && now >= since + LINGER && has_reached(node.children()) {
            node.take_leave(host);
        }
    }

    /// Leaves without waiting for the others: they have left, or do not answer.
    pub fn leave_unanswered(&mut self, node: &mut Node, host: &mut impl Host) {
        node.leave_unanswered(host);
        self.leaves_unanswered = true;
    }

    /// Whether the PE leaves without an answer of the others.
    pub fn leaves_unanswered(&self) -> bool {
        self.leaves_unanswered
    }

    /// Whether the PE may go.
    pub fn may_leave(&self, node: &Node, is_idle: bool) -> bool {
        node.phase() == Phase::Released
            && (node.has_failures() || self.leaves_unanswered || is_idle)
    }
}

impl Node {
    /// Ends the job on this PE: the main task has ended. The owner calls this on the root;
    /// elsewhere SHUTDOWN does.
    pub fn end(&mut self, host: &mut impl Host) {
        if self.ending.phase != Phase::Running {
            return;
        }
        self.ending.phase = Phase::Ending;
        self.clear_board(host);
        host.shut_down();
        self.ending.farewells_awaited = self.pass_down(&Message::Shutdown, host);
    }

    /// Sends FAREWELL, once all PEs below in the tree have. The owner calls this while the job is
    /// ending, whenever everything that this PE sent has arrived. So when the root sends RELEASE,
    /// no message is on its way anywhere.
    pub fn take_leave(&mut self, host: &mut impl Host) {
        if self.ending.phase != Phase::Ending {
            return;
        }
        if !self.living.are_all() {
            self.ending.phase = Phase::Released;
            return;
        }
        if self.ending.farewells_awaited > 0 || self.ending.said_farewell {
            return;
        }
        self.ending.said_farewell = true;
        match self.living.parent(self.me) {
            Some(parent) => host.send(parent, Message::Farewell),
            None => self.release(host),
        }
    }

    pub(super) fn release(&mut self, host: &mut impl Host) {
        self.ending.phase = Phase::Released;
        self.pass_down(&Message::Release, host);
    }

    /// Leaves without waiting for the others: they have left, or do not answer.
    pub fn leave_unanswered(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.release(host);
        }
    }

    pub(super) fn handle_farewell(&mut self) {
        self.ending.farewells_awaited = self.ending.farewells_awaited.saturating_sub(1);
    }

    /// A PE has died while the job ends: sends SHUTDOWN again, down the tree of the living. The PEs
    /// below the dead one may not have heard of the end yet.
    pub(super) fn end_anew(&mut self, host: &mut impl Host) {
        if self.ending.phase == Phase::Ending {
            self.pass_down(&Message::Shutdown, host);
        }
    }

    /// Sends a message to the children in the tree of the living PEs. Returns their number.
    fn pass_down(&self, message: &Message, host: &mut impl Host) -> usize {
        let children = self.living.children(self.me);
        children.map(|child| host.send(child, message.clone())).count()
    }

    /// The PEs that hear of the end from this PE.
    pub fn children(&self) -> Vec<Pe> {
        self.living.children(self.me).collect()
    }
}
