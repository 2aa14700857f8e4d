//! Tasks as those see them that queue, run and send them.

use super::future::Promise;
use crate::code::Name;
use crate::protocol::message::Bytes;
use crate::protocol::{Outcome, Parcel};
use std::sync::Arc;
use ultramarine_topology::Distance;

/// A task that no thread has started.
pub(crate) type Waiting<S> = Arc<dyn Start<S>>;

/// A task that can be started here or sent elsewhere.
pub(crate) trait Start<S>: Send + Sync {
    /// Runs the task.
    fn start(self: Arc<Self>, site: &Arc<S>);

    /// Makes bytes of the task, for another PE to run, with code of the user's. `None`: the task
    /// could not become bytes, and its future has ended with the reason; or nobody waits for it.
    fn pack(self: Arc<Self>, site: &S, effort: Effort) -> Option<Packed<Waiting<S>>>;

    /// Ends a task that will not be run.
    fn call_off(&self);

    /// What says the name of its function, where that is known before it is started.
    fn function(&self) -> Option<Name> {
        None
    }

    /// Whether its parent means to take it back.
    fn is_fork(&self) -> bool {
        false
    }
}

/// A future whose task is elsewhere.
pub(crate) trait Fill: Send + Sync {
    /// The task leaves the PE of this slot, and its future has this number. Whether it is still
    /// wanted.
    fn leaves(&self, slot: u64, future: u64) -> bool;

    /// Ends the future with the result that came back, as the first or not at all.
    fn fill(&self, outcome: Outcome);

    /// Whether a result has to be decoded.
    fn is_decoded(&self) -> bool;

    /// The name of the task's function, for people to read.
    fn name(&self) -> &'static str;
}

/// A task whose argument is still there as long as nobody has started it.
pub(crate) trait Loan<S, A, R>: Promise<R> + Start<S> {
    /// Takes the argument out. Nobody else can start the task after that.
    fn take_back(&self) -> Option<A>;
}

/// A task in bytes.
pub(crate) enum Packed<T> {
    /// One of this PE's own, whose future is not known to the engine yet.
    Own(Own),
    /// One that is another's.
    Guest(Parcel),
    /// It is not in bytes yet: that would take more than a brief effort.
    Later(T),
}

/// A task of this PE's own that leaves it.
pub(crate) struct Own {
    /// What the result will fill.
    pub(crate) future: Arc<dyn Fill>,
    pub(crate) radius: Distance,
    pub(crate) is_supervised: bool,
    pub(crate) body: Bytes,
}

/// How long it may take to make bytes of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// As long as it takes.
    Full,
    /// So long as messages can wait.
    Brief,
    /// None: no code of the user's may run now.
    None,
}
