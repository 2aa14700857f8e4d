//! The PEs that a watch knows something about, and at which of them its next turn looks.
//!
//! A watch may know very many PEs: if the root is slow, all PEs of the job call it. So a turn looks
//! only at the PEs that have changed since they were last assessed, and at those whose timer is
//! due. To change a PE is to mark it; so none can be forgotten.

use super::peer::PeerView;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use ultramarine_topology::Pe;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// Boxed, since a node of the map has room for eleven and most PEs have four partners.
    entries: BTreeMap<Pe, Box<PeerEntry>>,
    /// The PEs to look at, in no order. Some may have been removed, or be here twice.
    changed: Vec<Pe>,
    /// When to look at the other PEs, if at all.
    timers: BTreeSet<(Duration, Pe)>,
}

#[derive(Debug)]
struct PeerEntry {
    view: PeerView,
    /// It is among the changed, and has no timer.
    is_changed: bool,
    /// When it was last assessed, if it has not changed since.
    assessed: Option<Duration>,
    timer: Option<Duration>,
}

impl Peers {
    pub(super) fn get(&self, pe: Pe) -> Option<&PeerView> {
        self.entries.get(&pe).map(|entry| &entry.view)
    }

    /// A PE that is about to be changed.
    pub(super) fn get_mut(&mut self, pe: Pe) -> Option<&mut PeerView> {
        let entry = self.entries.get_mut(&pe)?;
        entry.mark(pe, &mut self.changed, &mut self.timers);
        Some(&mut entry.view)
    }

    /// The same, also of a PE about which nothing was known.
    pub(super) fn get_or_insert(&mut self, pe: Pe, now: Duration) -> &mut PeerView {
        let entry = self.entries.entry(pe).or_insert_with(|| {
            let view = PeerView::new(now);
            Box::new(PeerEntry { view, is_changed: false, assessed: None, timer: None })
        });
        entry.mark(pe, &mut self.changed, &mut self.timers);
        &mut entry.view
    }

    /// A PE that is about to be changed in a way that is no reason for another look: the look of
    /// this turn makes the change, or no look depends on it.
    pub(super) fn get_unmarked(&mut self, pe: Pe) -> Option<&mut PeerView> {
        self.entries.get_mut(&pe).map(|entry| &mut entry.view)
    }

    /// A PE is assessed now, with all that has changed so far.
    pub(super) fn note_assessed(&mut self, pe: Pe, now: Duration) {
        if let Some(entry) = self.entries.get_mut(&pe) {
            entry.assessed = Some(now);
        }
    }

    pub(super) fn remove(&mut self, pe: Pe) {
        if let Some(entry) = self.entries.remove(&pe)
            && let Some(at) = entry.timer
        {
            self.timers.remove(&(at, pe));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Pe, &PeerView)> {
        self.entries.iter().map(|(pe, entry)| (*pe, &entry.view))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &PeerView> {
        self.iter().map(|(_, view)| view)
    }

    /// The PEs at which to look now, each once, by number.
    pub(super) fn turn(&mut self, now: Duration) -> Vec<Pe> {
        while let Some((at, pe)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(entry) = self.entries.get_mut(&pe) {
                entry.timer = None;
                entry.mark(pe, &mut self.changed, &mut self.timers);
            }
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        self.changed.clone()
    }

    /// Ends a turn. PEs that were assessed in it, and have not changed since, get a timer, if `due`
    /// says when. The others stay for the next turn.
    pub(super) fn end_turn(
        &mut self,
        now: Duration,
        due: impl Fn(Pe, &PeerView) -> Option<Duration>,
    ) {
        let Peers { entries, changed, timers } = self;
        changed.retain(|pe| {
            let Some(entry) = entries.get_mut(pe) else { return false };
            if entry.assessed == Some(now) {
                entry.is_changed = false;
                entry.timer = due(*pe, &entry.view);
                timers.extend(entry.timer.map(|at| (at, *pe)));
            }
            entry.is_changed
        });
    }

    /// The PEs that have no timer, since they have changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (Pe, &PeerView)> {
        self.changed.iter().filter_map(|pe| Some((*pe, self.get(*pe)?)))
    }

    /// The first timer.
    pub(super) fn first_timer(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The PEs that have not changed, with their timers.
    #[cfg(test)]
    pub(super) fn unchanged(&self) -> impl Iterator<Item = (Pe, &PeerView, Option<Duration>)> {
        let is_unchanged = |entry: &&PeerEntry| !entry.is_changed;
        self.entries.iter().filter_map(move |(pe, entry)| {
            Some(&**entry).filter(is_unchanged).map(|entry| (*pe, &entry.view, entry.timer))
        })
    }
}

impl PeerEntry {
    fn mark(&mut self, pe: Pe, changed: &mut Vec<Pe>, timers: &mut BTreeSet<(Duration, Pe)>) {
        self.assessed = None;
        if !std::mem::replace(&mut self.is_changed, true) {
            changed.push(pe);
        }
        if let Some(at) = self.timer.take() {
            timers.remove(&(at, pe));
        }
    }
}
