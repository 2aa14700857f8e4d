//! When the judge sends bulletins.
//!
//! The first death is announced at once. Deaths that follow it closely wait a little and go
//! together: when a rack of 512 PEs loses its power, all PEs get a few bulletins instead of 512.

use std::collections::BTreeSet;
use std::time::Duration;
use ultramarine_topology::Pe;

/// How long the judge waits between two bulletins. For about that long the first is on its way
/// through the tree of 10^5 PEs, 17 steps of a few milliseconds, so waiting hardly delays the last
/// PE. And it is short against the seconds that it takes to notice a silent host.
pub(super) const ANNOUNCE_EVERY: Duration = Duration::from_millis(100);

/// What the judge has announced of its list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Announcements {
    /// The length of the part of the list that was sent.
    pub(super) announced: usize,
    /// PEs that wait for the next bulletin, apart from the children in the tree.
    waiting: BTreeSet<Pe>,
    /// No bulletin is sent before this moment.
    next_at: Duration,
}

impl Announcements {
    /// These get the next bulletin, too.
    pub(super) fn wait(&mut self, pes: impl IntoIterator<Item = Pe>) {
        self.waiting.extend(pes);
    }

    /// When to send the next bulletin, for a list of this length; `None` if there is nothing new.
    pub(super) fn due(&self, length: usize) -> Option<Duration> {
        (self.announced < length).then_some(self.next_at)
    }

    /// The whole list of this length is announced now. Returns those that waited.
    pub(super) fn announce(&mut self, now: Duration, length: usize) -> BTreeSet<Pe> {
        self.announced = length;
        self.next_at = now.saturating_add(ANNOUNCE_EVERY);
        std::mem::take(&mut self.waiting)
    }
}
