//! The end of a job that can outlive its root: the result counts once enough PEs have agreed to it.
//!
//! ```text
//!  the judge                         the tree of its list
//!    | its main task has ended           |
//!    |-- BULLETIN, it ends ------------> child -> its children …
//!    |<- FOLLOW 3, it ends ------------- child <- its children …
//!    | at least half agree: the result counts
//! ```
//!
//! Without that, a judge on the smaller side of a partition could have a result before it hears
//! that it has lost the others, and those would have a second one. A PE that has agreed to the end
//! stays with its judge: it votes for another only when it is certain that the judge's process is
//! gone. So if the end is agreed and the judge lives, no other can have more than half of the
//! votes. (To follow one that is in office already is no vote.)
//!
//! If the judge falls silent at this moment, those that have agreed leave: it has the result.

use super::{Membership, MembershipMutant, MembershipStatus, Notice};
use std::time::Duration;
use ultramarine_topology::Pe;

impl Membership {
    /// On the judge: its main task has ended. Asks the others whether the result counts. (It may be
    /// out of office for a while: then it asks for both, now or when it calls again.)
    pub fn ask_end(&mut self, now: Duration, out: &mut dyn FnMut(Pe, Notice)) {
        let has_other_judge = !self.is_judge() && self.list.heading.in_office;
        let Some(succession) = self.succession.as_mut().filter(|_| !has_other_judge) else {
            return;
        };
        succession.has_ended = true;
        if self.is_judge() && !self.list.heading.ends && self.status == MembershipStatus::Member {
            self.list.heading.ends = true;
            self.tell_children(self.list.len(), out);
            self.begin_vote(now, out);
        }
    }

    /// On the judge: whether the result counts. In a job without succession it always does.
    pub fn is_end_agreed(&self) -> bool {
        self.succession.as_ref().is_none_or(|succession| succession.is_end_agreed)
    }

    /// Whether this PE has agreed that the job ends with its judge, which may live.
    pub(super) fn stays_with_judge(&self) -> bool {
        let leaves = self.is_mutant(MembershipMutant::LeavesAtTheEnd);
        self.list.heading.ends && !self.has_seen_end_of(self.judge()) && !leaves
    }
}
