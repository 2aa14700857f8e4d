//! The runs of graphs that a PE knows. What arrives for a run may be there before the run has begun
//! here, or after it is over.
//!
//! A run is named by the digest of its graph. So two runs of the same graph are one, and a root
//! that takes another's place joins what the others still compute. What belongs to a graph is right
//! for each run of it: a pure builder makes the same nodes, and they have the same results. Only
//! what is over must be told from what is still to begin, since a request that is dropped too early
//! is never answered: so each [opening](Opening) of a run comes after those before. And what has
//! failed in one is tried again in the next.

use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use ultramarine_runtime::executor::Key;
use ultramarine_topology::Pe;

/// How many runs that are over a PE remembers. What arrives later than that is kept as if it were
/// early, a few bytes each.
const CLOSED_MAX: usize = 4096;

/// What all PEs call a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct RunName {
    /// The graph.
    pub(super) digest: u128,
    /// A key of its own, if the run was not begun by the root: it ends with the PE that began it.
    pub(super) key: Option<Key>,
}

/// When a run was begun: later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    /// How often the main task had been started, with this time, as far as its PE knew.
    pub(super) attempt: u32,
    /// The PE that began the run. Of two roots that know of the same attempts the one with the
    /// greater number came later.
    pub(super) root: Pe,
    /// The number of the opening on its root.
    pub(super) number: u64,
}

/// A run, as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct RunId {
    pub(super) name: RunName,
    pub(super) opening: Opening,
}

/// The runs that a PE knows. `R` is its part of one.
#[derive(Debug)]
pub(super) struct RunTable<R> {
    known: HashMap<RunName, KnownRun<R>>,
    /// Runs that are over, the newest first.
    closed: VecDeque<RunId>,
    /// The number of openings on this PE.
    openings: u64,
}

#[derive(Debug)]
struct KnownRun<R> {
    opening: Opening,
    /// How many programs on this PE wait for it.
    users: u32,
    part: R,
}

impl<R: Clone> KnownRun<R> {
    fn join(&mut self, opening: Opening) -> R {
        self.opening = opening.max(self.opening);
        self.part.clone()
    }
}

impl<R> Default for RunTable<R> {
    fn default() -> Self {
        RunTable { known: HashMap::new(), closed: VecDeque::new(), openings: 0 }
    }
}

impl<R: Clone> RunTable<R> {
    /// A program on this PE begins a run, in this attempt of the main task.
    pub(super) fn begin(
        &mut self,
        name: RunName,
        (attempt, root): (u32, Pe),
        make: impl FnOnce() -> R,
    ) -> (RunId, R) {
        self.openings += 1;
        let id = RunId { name, opening: Opening { attempt, root, number: self.openings } };
        let known = self.entry(id, make);
        known.users += 1;
        (id, known.join(id.opening))
    }

    /// A program on this PE needs its run no more. Returns the run if no other does.
    pub(super) fn leave(&mut self, name: RunName) -> Option<RunId> {
        let known = self.known.get_mut(&name)?;
        known.users -= 1;
        (known.users == 0).then_some(RunId { name, opening: known.opening })
    }

    /// The run that this PE is invited to, or for which something has arrived. `None`: it is over.
    pub(super) fn join(&mut self, id: RunId, make: impl FnOnce() -> R) -> Option<R> {
        (!self.is_over(id)).then(|| self.entry(id, make).join(id.opening))
    }

    /// The run of this name, if this PE has a part of it.
    pub(super) fn get(&self, name: RunName) -> Option<R> {
        self.known.get(&name).map(|known| known.part.clone())
    }

    /// The run as of its last opening that this PE knows.
    pub(super) fn newest(&self, id: RunId) -> RunId {
        let known = self.known.get(&id.name).map(|known| known.opening);
        RunId { opening: known.map_or(id.opening, |known| known.max(id.opening)), ..id }
    }

    /// A run is over, unless it has been opened again. Returns this PE's part.
    pub(super) fn close(&mut self, id: RunId) -> Option<R> {
        let is_needed = |known: &KnownRun<R>| known.users > 0 || known.opening > id.opening;
        if self.known.get(&id.name).is_some_and(is_needed) {
            return None;
        }
        if !self.closed.contains(&id) {
            self.closed.truncate(CLOSED_MAX - 1);
            self.closed.push_front(id);
        }
        self.known.remove(&id.name).map(|known| known.part)
    }

    /// All runs that are not over.
    pub(super) fn all(&self) -> Vec<(RunId, R)> {
        let id = |(name, known): (&RunName, &KnownRun<R>)| {
            (RunId { name: *name, opening: known.opening }, known.part.clone())
        };
        self.known.iter().map(id).collect()
    }

    /// The last runs that are over, the newest first.
    pub(super) fn closed(&self) -> impl Iterator<Item = RunId> + '_ {
        self.closed.iter().copied()
    }

    fn is_over(&self, id: RunId) -> bool {
        let is_later = |closed: &RunId| closed.name == id.name && closed.opening >= id.opening;
        !self.known.contains_key(&id.name) && self.closed.iter().any(is_later)
    }

    fn entry(&mut self, id: RunId, make: impl FnOnce() -> R) -> &mut KnownRun<R> {
        let made = || KnownRun { opening: id.opening, users: 0, part: make() };
        self.known.entry(id.name).or_insert_with(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digest: u128, attempt: u32, number: u64) -> RunId {
        let name = RunName { digest, key: None };
        RunId { name, opening: Opening { attempt, root: Pe::ROOT, number } }
    }

    #[test]
    fn what_is_early_waits_and_what_is_late_is_dropped() {
        let mut table = RunTable::default();
        assert_eq!(table.join(id(1, 1, 1), || 'a'), Some('a'), "early");
        assert_eq!(table.join(id(1, 1, 1), || 'b'), Some('a'));
        assert_eq!(table.close(id(1, 1, 1)), Some('a'));
        assert_eq!(table.join(id(1, 1, 1), || 'c'), None, "late");
        assert_eq!(table.join(id(2, 1, 1), || 'd'), Some('d'), "another graph");
    }

    #[test]
    fn a_run_that_is_opened_again_is_not_closed_by_its_former_end() {
        let mut table = RunTable::default();
        table.join(id(1, 1, 1), || 'a');
        assert_eq!(table.close(id(1, 1, 1)), Some('a'));
        assert_eq!(table.join(id(1, 1, 2), || 'b'), Some('b'), "it is of the next opening");
        assert_eq!(table.join(id(1, 1, 2), || 'c'), Some('b'));
        assert_eq!(table.close(id(1, 1, 1)), None);
        assert_eq!(table.close(id(1, 1, 2)), Some('b'));
        assert_eq!(table.join(id(1, 1, 2), || 'd'), None, "the invitation is late");
    }

    #[test]
    fn another_root_joins_what_goes_on() {
        let mut table = RunTable::default();
        table.join(id(1, 1, 7), || 'a');
        let (opened, part) = table.begin(id(1, 1, 7).name, (2, Pe::ROOT), || 'b');
        assert_eq!((opened, part), (id(1, 2, 1), 'a'));
        assert_eq!(table.close(id(1, 1, 7)), None, "the former root's end comes late");
        assert_eq!(table.leave(opened.name), Some(opened));
    }

    #[test]
    fn two_programs_share_a_run_of_the_same_graph() {
        let mut table = RunTable::default();
        let name = id(1, 0, 0).name;
        table.begin(name, (1, Pe::ROOT), || 'a');
        let (second, _) = table.begin(name, (1, Pe::ROOT), || 'b');
        assert_eq!(table.leave(name), None, "the other needs it");
        assert_eq!(table.leave(name), Some(second));
    }

    /// A request of the next opening has overtaken the end of the former.
    #[test]
    fn what_arrives_for_a_later_opening_keeps_the_run() {
        let mut table = RunTable::default();
        table.join(id(1, 1, 1), || 'a');
        assert_eq!(table.join(id(1, 1, 2), || 'b'), Some('a'));
        assert_eq!(table.close(id(1, 1, 1)), None);
        assert_eq!(table.newest(id(1, 1, 1)), id(1, 1, 2), "an invitation to the former is late");
        assert_eq!(table.join(id(1, 1, 2), || 'c'), Some('a'), "it is invited");
    }
}
