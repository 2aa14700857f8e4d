//! The PE as the protocol sees it during a turn.

use super::boards::EngineBoards;
use super::failure::JobError;
use super::send_queue::SendQueue;
use super::site::EngineSite;
use crate::error::TaskError;
use crate::executor::task::start::{Effort, Fill, OwnTask, Packed};
use crate::numbered::Numbered;
use crate::protocol::message::Bytes;
use crate::protocol::{Boards, Fish, Host, Message, Outcome, Parcel, Pool, TaskId, Version};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use ultramarine_topology::{Distance, Pe};

/// Futures and their results. They are filled after the engine's lock is released, since that
/// decodes the results and wakes the tasks that wait, with user code.
pub type Results = Vec<(Arc<dyn Fill>, Outcome)>;

/// What the protocol uses of the PE, except the queues.
pub(crate) struct EngineState<S: EngineSite> {
    pub(crate) me: Pe,
    pub(crate) random: Xoshiro256PlusPlus,
    pub(crate) pool: Pool<S::Shelf>,
    /// Futures whose tasks are on other PEs, by number.
    pub(crate) futures: Numbered<Arc<dyn Fill>>,
    pub(crate) last_future: u64,
    pub(crate) send_queue: SendQueue,
    /// The boards of this host, if there are several.
    pub(crate) boards: Option<EngineBoards>,
    pub(crate) results: Results,
    pub(crate) tasks_came: bool,
    pub(crate) took_fork: bool,
    /// How long this turn may take to pack stolen tasks.
    pub(crate) effort: Effort,
    /// A stolen task that another thread must pack.
    pub(crate) to_pack_later: Option<S::Task>,
    pub(crate) failure: Option<JobError>,
}

impl<S: EngineSite> EngineState<S> {
    /// Enters the future of a task that leaves. `None`: the task is not wanted any more.
    #[inline]
    pub(crate) fn add_future(&mut self, slot: u64, own: OwnTask) -> Option<Parcel> {
        let OwnTask { future, radius, is_supervised, body } = own;
        self.last_future += 1;
        if !future.note_departure(slot, self.last_future) {
            return None;
        }
        self.futures.insert(self.last_future, future);
        let task = TaskId { home: self.me, future: self.last_future };
        Some(Parcel { task, radius, supervised: is_supervised, version: Version::default(), body })
    }

    /// Ends these futures, whose tasks are not wanted any more.
    pub(crate) fn cancel(&mut self, futures: &[u64]) {
        let known = futures.iter().filter_map(|future| self.futures.remove(*future));
        self.results.extend(known.map(|future| (future, Err(TaskError::Cancelled))));
    }
}

/// The PE during one turn, as the protocol sees it.
pub(crate) struct EngineHost<'a, S: EngineSite> {
    pub(crate) state: &'a mut EngineState<S>,
    pub(crate) pe: &'a Arc<S>,
}

impl<S: EngineSite> Host for EngineHost<'_, S> {
    fn random(&mut self) -> u64 {
        self.state.random.next_u64()
    }

    fn send(&mut self, to: Pe, message: Message) {
        self.state.send_queue.push(to, message);
    }

    fn queued(&self) -> usize {
        self.state.pool.len() + self.pe.waiting_for_values()
    }

    fn take(&mut self, at_least: Distance) -> Option<Parcel> {
        let nearest = self.pe.shelf(at_least);
        loop {
            let task = self.state.pool.select_remote(nearest)?;
            self.state.took_fork = S::is_fork(&task);
            match self.pe.pack(task, self.state.effort) {
                Some(Packed::Own(task)) => {
                    if let Some(parcel) = self.state.add_future(self.pe.slot(), task) {
                        return Some(parcel);
                    }
                }
                Some(Packed::Guest(parcel)) => return Some(parcel),
                Some(Packed::Later(task)) => {
                    debug_assert!(self.state.to_pack_later.is_none(), "a task would be lost");
                    self.state.to_pack_later = Some(task);
                    return None;
                }
                None => {}
            }
        }
    }

    fn packs_later(&mut self, fish: &Fish) -> bool {
        let task = self.state.to_pack_later.take();
        let is_there = task.is_some();
        task.into_iter().for_each(|task| self.pe.pack_later(*fish, task));
        is_there
    }

    fn has_to_pack(&self) -> bool {
        self.state.to_pack_later.is_some()
    }

    fn took_fork(&self) -> bool {
        self.state.took_fork
    }

    fn may_pack(&self) -> bool {
        self.state.effort != Effort::None
    }

    fn boards(&mut self) -> Option<&mut dyn Boards> {
        self.state.boards.as_mut().map(|boards| boards as &mut dyn Boards)
    }

    fn want_work(&mut self) {
        self.pe.want_work();
    }

    fn accept(&mut self, parcel: Parcel) {
        self.state.tasks_came = true;
        self.pe.accept(parcel);
    }

    fn place(&mut self, parcel: Parcel) {
        self.state.tasks_came = true;
        self.pe.place(parcel);
    }

    fn ask(&mut self, parcel: Parcel) {
        self.state.tasks_came = true;
        self.pe.ask(parcel);
    }

    fn deliver(&mut self, body: Bytes) {
        self.pe.deliver(body);
        self.state.tasks_came = true;
    }

    fn cancel(&mut self, home: Pe, futures: Vec<u64>) {
        self.pe.cancel_guests(home, &futures);
    }

    fn fill(&mut self, future: u64, outcome: Outcome) {
        // A second result of the same task finds no future.
        let future = self.state.futures.remove(future);
        self.state.results.extend(future.map(|future| (future, outcome)));
    }

    fn name(&self, future: u64) -> String {
        self.state.futures.get(future).map_or("?", |future| future.name()).to_owned()
    }

    fn failed(&mut self, pe: Pe, reason: String) {
        self.state.failure.get_or_insert(JobError::Elsewhere { pe, reason });
    }

    fn shut_down(&mut self) {
        self.pe.start_ending();
        self.state.send_queue.forget_waiting();
        let futures = std::mem::take(&mut self.state.futures).into_values();
        self.state.results.extend(futures.map(|future| (future, Err(TaskError::ShuttingDown))));
    }
}
