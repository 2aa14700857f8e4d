//! Stands for the rest of a PE in the search.

use std::collections::VecDeque;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_runtime::protocol::{Host, Message, Node, Outcome, Parcel, Pool, Radii};
use ultramarine_topology::{Distance, Pe};

/// A PE in a state of the search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PeState {
    pub(super) node: Node,
    pub(super) shelves: Vec<VecDeque<PooledTask>>,
}

/// A task in a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PooledTask {
    pub(super) parcel: Parcel,
    /// It has not left its home yet, so its result needs no message.
    pub(super) is_local: bool,
}

/// The effects of one step of a PE, apart from the change of its own state.
#[derive(Debug, Default)]
pub(super) struct StepOutput {
    pub(super) sent: Vec<(Pe, Message)>,
    pub(super) filled: Vec<(u64, Outcome)>,
}

/// The [`Host`] of one step.
pub(super) struct StepHost<'a> {
    pub(super) radii: &'a Radii,
    pub(super) shelves: &'a mut Vec<VecDeque<PooledTask>>,
    pub(super) output: &'a mut StepOutput,
}

impl StepHost<'_> {
    /// Runs `act` on the shelves as the runtime's own pool.
    fn with_pool<R>(&mut self, act: impl FnOnce(&mut Pool<VecDeque<PooledTask>>) -> R) -> R {
        let count = self.shelves.len();
        let mut pool = Pool::new(std::mem::take(self.shelves));
        let result = act(&mut pool);
        *self.shelves = (0..count).map(|index| std::mem::take(pool.shelf(index))).collect();
        result
    }

    pub(super) fn put(&mut self, parcel: Parcel, is_local: bool) {
        let shelf = self.radii.shelf(parcel.radius);
        self.shelves[shelf].push_back(PooledTask { parcel, is_local });
    }

    /// Takes the task that a worker would run next.
    pub(super) fn next(&mut self) -> Option<PooledTask> {
        self.with_pool(Pool::select_local)
    }
}

impl Host for StepHost<'_> {
    /// Nothing depends on it: the search itself chooses thief and victim.
    fn random(&mut self) -> u64 {
        0
    }
    fn send(&mut self, to: Pe, message: Message) {
        // FISHes come from the search, so no PE waits for their answers.
        if !matches!(message, Message::Fish(_) | Message::NoWork { .. }) {
            self.output.sent.push((to, message));
        }
    }
    fn queued(&self) -> usize {
        self.shelves.iter().map(VecDeque::len).sum()
    }
    fn take(&mut self, at_least: Distance) -> Option<Parcel> {
        let nearest = self.radii.shelf(at_least);
        self.with_pool(|pool| pool.select_remote(nearest)).map(|pooled| pooled.parcel)
    }
    fn accept(&mut self, parcel: Parcel) {
        self.put(parcel, false);
    }
    fn place(&mut self, parcel: Parcel) {
        // In the pool it can be stolen, which a placed task cannot: the search covers more.
        self.put(parcel, false);
    }
    fn fill(&mut self, future: u64, outcome: Outcome) {
        self.output.filled.push((future, outcome));
    }
    fn name(&self, future: u64) -> String {
        format!("task {future}")
    }
    fn deliver(&mut self, _: Bytes) {
        unreachable!("no program sends messages here");
    }
    fn failed(&mut self, pe: Pe, reason: String) {
        unreachable!("no PE reports a failure here, but {pe} does: {reason}");
    }
    fn shut_down(&mut self) {
        unreachable!("the job does not end here");
    }
}
