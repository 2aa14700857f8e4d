//! The PE as the floors below see it: it implements their traits.

use super::processor::{Processor, Task, value_bytes_max};
use super::standby::Urgent;
use super::worker::has_short_tasks;
use crate::executor::engine::liveness::Liveness;
use crate::executor::engine::site::{EngineSite, Outgoing};
use crate::executor::keep::inbox::InboxItem;
use crate::executor::schedule::queues::CommonShelf;
use crate::executor::task::cancel::{Cancelled, Canceller};
use crate::executor::task::guest::Guest;
use crate::executor::task::site::Site;
use crate::executor::task::start::{Effort, Packed};
use crate::executor::task::travel::DelayedStart;
use crate::protocol::message::Bytes;
use crate::protocol::{Fish, Message, Parcel, TaskId};
use crate::transport::Sleeper;
use crossbeam_queue::SegQueue;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

impl Site for Processor {
    fn root(&self) -> Pe {
        self.liveness.root()
    }

    fn slot(&self) -> u64 {
        self.guests.cancelled().slot()
    }

    fn value_bytes_max(&self) -> usize {
        value_bytes_max(&self.settings)
    }

    fn is_dead(&self, pe: Pe) -> bool {
        self.liveness.is_dead(pe)
    }

    fn count_orphans(&self, tasks: u64) {
        self.counts.add_orphans(tasks);
    }

    fn send(&self, to: Pe, message: Message) {
        self.send_message(to, message);
    }

    fn keep_guest(&self, id: TaskId, task: async_task::Task<()>) {
        self.guests.add(id, task);
        // Either this sees the death, or the thread that handles that sees the task.
        if self.is_dead(id.home) {
            self.guests.stop_those_of(id.home);
        }
    }

    fn begin_later(self: &Arc<Self>, guest: Guest, delayed: DelayedStart) {
        self.put_back_later(guest, delayed);
    }
}

impl Canceller for Processor {
    fn me(&self) -> Pe {
        Processor::me(self)
    }

    fn cancelled(&self) -> &Cancelled {
        self.guests.cancelled()
    }

    fn cancel_away(&self, futures: Vec<u64>) {
        self.send_later(Outgoing::Cancel(futures));
    }
}

impl EngineSite for Processor {
    type Task = Task;
    type Shelf = CommonShelf<Task>;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn outbox(&self) -> &SegQueue<Outgoing> {
        self.turns.outbox()
    }

    fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    fn slot(&self) -> u64 {
        Site::slot(self)
    }

    fn patience(&self) -> Duration {
        self.settings.port.patience()
    }

    fn is_ending(&self) -> bool {
        Processor::is_ending(self)
    }

    fn start_ending(&self) {
        Processor::start_ending(self);
        if !self.is_root() {
            self.ending.main.iter().for_each(|main| (main.ended_elsewhere)());
        }
    }

    fn waiting_for_values(&self) -> usize {
        self.guests.without_values()
    }

    fn note_away(&self, futures: usize) {
        self.turns.note_away(futures);
    }

    fn shelf(&self, radius: Distance) -> usize {
        self.queues.radii.shelf(radius)
    }

    fn is_fork(task: &Task) -> bool {
        task.is_fork()
    }

    fn pack(&self, task: Task, effort: Effort) -> Option<Packed<Task>> {
        task.pack(self, effort)
    }

    fn pack_later(self: &Arc<Self>, fish: Fish, task: Task) {
        self.pack_apart(fish, task);
    }

    fn want_work(&self) {
        self.queues.wanted.set();
    }

    fn has_short_tasks(&self) -> bool {
        has_short_tasks()
    }

    fn accept(self: &Arc<Self>, parcel: Parcel) {
        let shelf = self.queues.radii.shelf(parcel.radius);
        self.queues.push(shelf, Arc::new(Guest::stolen(parcel)));
        self.wake_worker();
    }

    fn place(self: &Arc<Self>, parcel: Parcel) {
        self.queues.place(Arc::new(Guest::placed(parcel)));
        self.wake_worker();
    }

    fn ask(self: &Arc<Self>, parcel: Parcel) {
        self.queues.place_first(Arc::new(Urgent(Arc::new(Guest::placed(parcel)))));
        self.wake_worker();
    }

    fn deliver(self: &Arc<Self>, body: Bytes) {
        self.read(InboxItem::Message(body));
    }

    fn cancel_guests(&self, home: Pe, futures: &[u64]) {
        self.guests.cancel(home, futures);
    }

    fn accept_root(self: &Arc<Self>, root: Pe) -> bool {
        let Some(main) = self.ending.main.as_ref().filter(|main| (main.may_go_on)(root)) else {
            return false;
        };
        if root == self.me() {
            (main.start)(self);
        }
        true
    }

    fn note_agreement(&self) {
        self.ending.agreement.reach();
    }

    fn forget_dead(self: &Arc<Self>, dead: Pe) {
        self.kept.forget_those_of(dead);
        self.read(InboxItem::Death(dead));
        self.guests.stop_those_of(dead);
    }

    fn abandon_mpi(self: &Arc<Self>) {
        Processor::abandon_mpi(self);
    }

    fn leave_lane(&self, sleeper: &Arc<dyn Sleeper>) {
        self.turns.mpi_gate.seal();
        self.driver.set_sleeper(sleeper);
    }
}
