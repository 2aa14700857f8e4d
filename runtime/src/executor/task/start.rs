//! Tasks as queues, workers and the engine see them.

use super::future::Promise;
use crate::code::Name;
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Outcome, Parcel};
use std::sync::Arc;
use ultramarine_topology::Distance;

/// A task that waits for a thread to start it.
pub(crate) type Waiting<S> = Arc<dyn Start<S>>;

/// A task that can be started here, or sent to another PE.
pub(crate) trait Start<S>: Send + Sync {
    /// Runs the task.
    fn start(self: Arc<Self>, site: &Arc<S>);

    /// Packs the task for another PE, with user code. Returns `None` if the task could not be
    /// packed (its future has ended with the reason), or if no one waits for it.
    fn pack(self: Arc<Self>, site: &S, effort: Effort) -> Option<Packed<Waiting<S>>>;

    /// Ends a task that will not be run. Nothing is to be done where no one waits for its result.
    fn call_off(&self) {}

    /// The name of its function, if that is known before the start.
    fn function(&self) -> Option<Name> {
        None
    }

    /// Whether it is a fork: its parent means to take it back.
    fn is_fork(&self) -> bool {
        false
    }
}

/// A future whose task is on another PE.
pub trait Fill: Send + Sync {
    /// The task leaves the PE of this slot, and its future has this number. Returns whether the
    /// task is still wanted.
    fn note_departure(&self, slot: u64, future: u64) -> bool;

    /// Ends the future with the result that came back. Only the first result counts.
    fn fill(&self, outcome: Outcome);

    /// Whether the result must be decoded.
    fn is_decoded(&self) -> bool;

    /// Whether the task is the program's, and counts among those that have ended.
    fn is_counted(&self) -> bool {
        true
    }

    /// The name of the task's function, for people to read.
    fn name(&self) -> &'static str;
}

/// A task of this PE, and its result.
pub(crate) trait Spawned<S, R>: Promise<R> + Start<S> {
    /// Ends the task, which has not been queued, with this error.
    fn refuse(&self, error: TaskError);
}

/// A task whose argument can be taken back until a thread starts it.
pub(crate) trait TakeBack<S, A, R>: Spawned<S, R> {
    /// Takes the argument out. No thread can start the task after that.
    fn take_back(&self) -> Option<A>;
}

/// A task in bytes.
pub enum Packed<T> {
    /// A task of this PE, whose future the engine does not know yet.
    Own(OwnTask),
    /// A guest.
    Guest(Parcel),
    /// The task, unpacked: packing it would take more than a brief effort.
    Later(T),
}

/// A packed task of this PE that is about to leave it.
pub struct OwnTask {
    /// The future that the result will end.
    pub future: Arc<dyn Fill>,
    /// The PEs within this distance of its home may run it.
    pub radius: Distance,
    /// Whether it is run again if the PE that has it dies.
    pub is_supervised: bool,
    /// Its code and its argument.
    pub body: Bytes,
}

/// How long packing may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// As long as it takes.
    Full,
    /// As long as messages can wait.
    Brief,
    /// None: no user code may run now.
    None,
}
