//! The PE as its engine sees it: the trait [`EngineSite`].

use super::liveness::Liveness;
use crate::executor::task::start::{Effort, Fill, OwnTask, Packed};
use crate::protocol::message::Bytes;
use crate::protocol::{Fish, Message, Parcel, Shelf};
use crate::transport::Sleeper;
use crossbeam_queue::SegQueue;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::{Distance, Pe, Topology};

/// Something that workers leave for the next turn to send.
pub enum Outgoing {
    /// A message for another PE.
    Message(Pe, Message),
    /// A task to be placed on another PE.
    Task(Pe, OwnTask),
    /// A task of the runtime that another PE runs before all others.
    Ask(Pe, OwnTask),
    /// A task for the thief that sent this FISH.
    Stolen(Fish, OwnTask),
    /// The tasks of these futures are not wanted any more.
    Cancel(Vec<u64>),
    /// A message of the program for these PEs.
    Tell(Range<u32>, Bytes),
}

impl Outgoing {
    /// The future that cannot end if this never leaves.
    pub(crate) fn into_future(self) -> Option<Arc<dyn Fill>> {
        match self {
            Outgoing::Task(_, task) | Outgoing::Ask(_, task) | Outgoing::Stolen(_, task) => {
                Some(task.future)
            }
            Outgoing::Message(..) | Outgoing::Cancel(_) | Outgoing::Tell(..) => None,
        }
    }
}

/// What an engine needs of its PE. No method may wait or use the engine.
pub trait EngineSite {
    /// A task in the queues.
    type Task;
    /// The tasks of one radius.
    type Shelf: Shelf<Task = Self::Task>;

    /// The place of each PE.
    fn topology(&self) -> &Topology;

    /// What workers leave for the next turn.
    fn outbox(&self) -> &SegQueue<Outgoing>;

    /// What the failure detector has reported.
    fn liveness(&self) -> &Liveness;

    /// The PE's number among those of this process.
    fn slot(&self) -> u64;

    /// How long a PE without a failure detector waits for one that acknowledges nothing.
    fn patience(&self) -> Duration;

    /// Whether no more tasks are started.
    fn is_ending(&self) -> bool;

    /// Starts no more tasks: the job is over.
    fn start_ending(&self);

    /// The number of tasks here that cannot start before values arrive that are being fetched.
    fn waiting_for_values(&self) -> usize;

    /// Notes the number of futures whose tasks are on other PEs, after a turn.
    fn note_away(&self, futures: usize);

    /// The shelf of a radius.
    fn shelf(&self, radius: Distance) -> usize;

    /// Whether the parent of a task means to take it back.
    fn is_fork(task: &Self::Task) -> bool;

    /// Packs a task. `None`: it is not wanted any more, or its future has ended.
    fn pack(&self, task: Self::Task, effort: Effort) -> Option<Packed<Self::Task>>;

    /// Has another thread pack a task and give it to the thief that sent this FISH.
    fn pack_later(self: &Arc<Self>, fish: Fish, task: Self::Task);

    /// Asks the workers for a part of what they divide.
    fn want_work(&self);

    /// Whether the calling thread is between tasks that take less time than it takes to hand one
    /// over.
    fn has_short_tasks(&self) -> bool {
        false
    }

    /// Takes in a stolen task.
    fn accept(self: &Arc<Self>, parcel: Parcel);

    /// Takes in a task that was placed here.
    fn place(self: &Arc<Self>, parcel: Parcel);

    /// Takes in a task of the runtime that comes before all others.
    fn ask(self: &Arc<Self>, parcel: Parcel);

    /// Takes in a message of the program.
    fn deliver(self: &Arc<Self>, body: Bytes);

    /// The PE `home` has cancelled these of its tasks.
    fn cancel_guests(&self, home: Pe, futures: &[u64]);

    /// The root has died, and this PE takes its place: if it is this one, starts the main task.
    /// Returns whether the job goes on.
    fn accept_root(self: &Arc<Self>, root: Pe) -> bool;

    /// Enough of the others have agreed that the job ends here.
    fn note_agreement(&self);

    /// Another PE has died: drops what is here because of it.
    fn forget_dead(self: &Arc<Self>, dead: Pe);

    /// Gives up the thread that drives the PE, which may be inside MPI for ever: another takes
    /// over.
    fn abandon_mpi(self: &Arc<Self>);

    /// The engine leaves its lane, over which nothing must be sent or received any more, for
    /// another. The driver sleeps in this from now on.
    fn leave_lane(&self, sleeper: &Arc<dyn Sleeper>);
}
