//! The PE as the protocol sees it during a turn.

use super::arrival::Guest;
use super::engine::Results;
use super::failure::JobError;
use super::packing::{Effort, Own, Packed};
use super::processor::Processor;
use super::queues::Common;
use super::send_queue::SendQueue;
use super::standby::Urgent;
use super::task::{Fill, Start};
use crate::error::TaskError;
use crate::numbered::Numbered;
use crate::protocol::message::Bytes;
use crate::protocol::{Fish, Host, Message, Outcome, Parcel, Pool, TaskId, Version};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::{Distance, Pe};

/// What the protocol uses of the PE, apart from the queues.
pub(super) struct EngineState {
    pub(super) me: Pe,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) pool: Pool<Common>,
    /// Futures whose tasks are elsewhere, by number.
    pub(super) futures: Numbered<Arc<dyn Fill>>,
    pub(super) last_future: u64,
    pub(super) send_queue: SendQueue,
    pub(super) results: Results,
    pub(super) tasks_came: bool,
    pub(super) took_a_part: bool,
    /// How long this turn may take to pack what is stolen.
    pub(super) effort: Effort,
    /// A task that is to be packed apart from the engine.
    pub(super) put_off: Option<Arc<dyn Start>>,
    pub(super) failure: Option<JobError>,
}

impl EngineState {
    /// Takes note of the future of a task that leaves, unless it is not wanted any more.
    #[inline]
    pub(super) fn enter(&mut self, pe: &Processor, own: Own) -> Option<Parcel> {
        let Own { future, radius, is_supervised, body } = own;
        self.last_future += 1;
        if !future.leaves(pe, self.last_future) {
            return None;
        }
        self.futures.insert(self.last_future, future);
        let task = TaskId { home: self.me, future: self.last_future };
        Some(Parcel { task, radius, supervised: is_supervised, version: Version::default(), body })
    }
}

/// The PE during one turn, as the protocol sees it.
pub(super) struct EngineHost<'a> {
    pub(super) state: &'a mut EngineState,
    pub(super) pe: &'a Arc<Processor>,
}

impl Host for EngineHost<'_> {
    fn random(&mut self) -> u64 {
        self.state.random.next_u64()
    }

    fn send(&mut self, to: Pe, message: Message) {
        self.state.send_queue.push(to, message);
    }

    fn queued(&self) -> usize {
        self.state.pool.len() + self.pe.late.load(Ordering::Relaxed)
    }

    fn take(&mut self, at_least: Distance) -> Option<Parcel> {
        let nearest = self.pe.queues.radii.shelf(at_least);
        loop {
            let task = self.state.pool.select_remote(nearest)?;
            self.state.took_a_part = task.is_fork();
            match task.pack(self.pe, self.state.effort) {
                Some(Packed::Own(task)) => {
                    if let Some(parcel) = self.state.enter(self.pe, task) {
                        return Some(parcel);
                    }
                }
                Some(Packed::Guest(parcel)) => return Some(parcel),
                Some(Packed::Later(task)) => {
                    self.state.put_off = Some(task);
                    return None;
                }
                None => {}
            }
        }
    }

    fn puts_off(&mut self, fish: &Fish) -> bool {
        let task = self.state.put_off.take();
        let is_there = task.is_some();
        task.into_iter().for_each(|task| self.pe.pack_later(*fish, task));
        is_there
    }

    fn took_a_part(&self) -> bool {
        self.state.took_a_part
    }

    fn accept(&mut self, parcel: Parcel) {
        let shelf = self.pe.queues.radii.shelf(parcel.radius);
        self.pe.queues.push(shelf, Arc::new(Guest::stolen(parcel)));
        self.state.tasks_came = true;
        self.pe.summon();
    }

    fn place(&mut self, parcel: Parcel) {
        self.pe.queues.place(Arc::new(Guest::placed(parcel)));
        self.state.tasks_came = true;
        self.pe.summon();
    }

    fn ask(&mut self, parcel: Parcel) {
        self.pe.queues.place_first(Arc::new(Urgent(Arc::new(Guest::placed(parcel)))));
        self.state.tasks_came = true;
        self.pe.summon();
    }

    fn hear(&mut self, body: Bytes) {
        self.pe.hear(body);
        self.state.tasks_came = true;
    }

    fn cancel(&mut self, home: Pe, futures: Vec<u64>) {
        self.pe.cancel_guests(home, &futures);
    }

    fn fill(&mut self, future: u64, outcome: Outcome) {
        // A second result of the same task finds no future any more.
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
