//! Tasks that have come from other PEs. They stay bytes until a worker starts them, so that the
//! next thief costs nothing.

use super::body::{Body, Origin, Run};
use super::caught::discard;
use super::context::Portable;
use super::packing::{Effort, Packed, Which, pack_result, unpack};
use super::processor::Processor;
use super::queues::goes_into;
use super::standby::urgently;
use super::task::{Kind, Start};
use super::values::{Late, arrive, is_late, why_late};
use crate::array::Array;
use crate::code::{Arrive, Code, CodeError, CodeRef};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Message, Outcome, Parcel, TaskId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::Pe;

/// Where a task in bytes is started, and whose it is.
pub(super) struct Arrival {
    pub(super) pe: Arc<Processor>,
    /// `None` for a message, which has no result.
    pub(super) task: Option<TaskId>,
    pub(super) is_supervised: bool,
    /// Its argument, if that is an array.
    pub(super) array: Option<Array>,
}

impl<B: Body<A>, A: Portable> Arrive<Arrival> for Kind<B, A> {
    fn arrive(self, arrival: Arrival, argument: &[u8]) {
        let Arrival { pe, task, is_supervised, array } = arrival;
        goes_into(Some(B::name));
        let unpacked = unpack(Which::argument_of(B::name()), argument, array);
        match (unpacked, arrive(&pe)) {
            (Ok(argument), None) => self.begin(&pe, task, is_supervised, argument),
            (Ok(argument), Some(coming)) => is_late(Late { coming, argument: Box::new(argument) }),
            (Err(error), _) => pe.report(task, Err(error)),
        }
    }
}

impl<B: Body<A>, A: Portable> Kind<B, A> {
    /// Runs a task that has come from elsewhere, or does what a message says.
    fn begin(self, pe: &Arc<Processor>, task: Option<TaskId>, is_supervised: bool, argument: A) {
        match task {
            Some(task) => self.begin_task(pe, task, is_supervised, argument),
            None => self.begin_message(pe, is_supervised, argument),
        }
    }

    fn begin_task(self, pe: &Arc<Processor>, task: TaskId, is_supervised: bool, argument: A) {
        let begins = || {
            let here = pe.clone();
            let done = move |result| here.end_guest(B::name(), task, result);
            (Origin { task, home: task.home, is_supervised }, done)
        };
        match self.0.run(pe, argument, begins) {
            Run::Computed(result) => pe.end_guest(B::name(), task, result),
            Run::Ended => {}
            Run::Waits(running) => pe.keep_guest(task, running),
        }
    }

    fn begin_message(self, pe: &Arc<Processor>, is_supervised: bool, argument: A) {
        let ends = |pe: &Processor, result: Result<_, _>| {
            result.err().iter().for_each(|error| pe.message_failed(B::name(), error));
        };
        let begins = || {
            let here = pe.clone();
            let origin = Origin { is_supervised, ..pe.own_origin() };
            (origin, move |result| ends(&here, result))
        };
        match self.0.run(pe, argument, begins) {
            Run::Computed(result) => ends(pe, result),
            Run::Ended => {}
            Run::Waits(running) => running.detach(),
        }
    }
}

/// A task from another PE, still in bytes.
#[derive(Clone)]
pub(super) struct Guest {
    parcel: Parcel,
    /// Whether no other PE may take it.
    is_placed: bool,
}

impl Guest {
    pub(super) fn placed(parcel: Parcel) -> Self {
        Guest { parcel, is_placed: true }
    }

    pub(super) fn stolen(parcel: Parcel) -> Self {
        Guest { parcel, is_placed: false }
    }
}

impl Start for Guest {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        let task = self.parcel.task;
        if pe.is_dead(task.home) {
            pe.orphans.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if pe.cancelled.take(task) {
            return;
        }
        let mut guest = Arc::unwrap_or_clone(self);
        let Parcel { supervised, body, .. } = &mut guest.parcel;
        if let Some(late) = pe.start_in_bytes(Some(task), *supervised, body) {
            pe.begin_later(guest, late);
        }
    }

    fn pack(self: Arc<Self>, pe: &Processor, _: Effort) -> Option<Packed> {
        let task = self.parcel.task;
        let is_wanted = !pe.is_dead(task.home) && !pe.cancelled.take(task);
        is_wanted.then(|| Packed::Guest(Arc::unwrap_or_clone(self).parcel))
    }

    /// The job is ending: nobody waits for the result any more.
    fn call_off(&self) {}
}

/// A task that waits for values which are on their way.
struct OnItsWay(Arc<Processor>);

impl OnItsWay {
    fn new(pe: &Arc<Processor>) -> Self {
        pe.late.fetch_add(1, Ordering::Relaxed);
        OnItsWay(pe.clone())
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Processor {
    /// Starts a task in bytes, or does what a message says. If it cannot begin yet, the bytes stay
    /// as they are; why not.
    pub(super) fn start_in_bytes(
        self: &Arc<Self>,
        task: Option<TaskId>,
        is_supervised: bool,
        body: &mut Bytes,
    ) -> Option<Late> {
        let Bytes { few, many } = body;
        let (code, array) = match many {
            // An array has no handles, and is begun at once.
            Some(_) if !few.is_empty() => (&few[..], many.take()),
            Some(all) => (all.bytes(), None),
            None => (&few[..], None),
        };
        if let Err(error) = self.arrive(task, is_supervised, code, array) {
            let error = TaskError::UnknownCode { pe: self.me(), reason: error.to_string() };
            self.report(task, Err(error));
        }
        why_late()
    }

    fn arrive(
        self: &Arc<Self>,
        task: Option<TaskId>,
        is_supervised: bool,
        code: &[u8],
        array: Option<Array>,
    ) -> Result<(), CodeError> {
        let (code, argument) = CodeRef::split(code)?;
        let code = Code::<Arrival>::resolve(code)?;
        code.arrive(Arrival { pe: self.clone(), task, is_supervised, array }, argument);
        Ok(())
    }

    /// Puts a task back, for any PE to take, when the values are there that it waits for. Until
    /// then the PE counts it among those that it has to do, if the values are on their way: else it
    /// would go on to steal tasks that wait for the same. (400 tasks with a value of 128 MiB on two
    /// PEs: 163–435 ms without that.) For a value that has yet to be made it looks for other work.
    fn begin_later(self: &Arc<Self>, guest: Guest, late: Late) {
        self.uncounted.fetch_add(1, Ordering::SeqCst);
        let (id, here) = (guest.parcel.task, self.clone());
        let on_its_way = late.coming.is_made.then(|| OnItsWay::new(self));
        let wait = async move {
            let came = late.coming.end.await;
            drop(on_its_way);
            match came {
                Err(error) => here.report(Some(id), Err(error)),
                Ok(()) if guest.is_placed => here.queues.place(Arc::new(guest)),
                Ok(()) => {
                    let shelf = here.queues.radii.shelf(guest.parcel.radius);
                    here.queues.push(shelf, Arc::new(guest));
                }
            }
            here.summon();
            discard(late.argument);
        };
        let waiting = urgently(|| self.run_async(wait));
        waiting.into_iter().for_each(|waiting| self.keep_guest(id, waiting));
    }

    /// A guest has ended.
    fn end_guest<R: Portable>(
        &self,
        name: &'static str,
        task: TaskId,
        result: Result<R, TaskError>,
    ) {
        if self.is_orphaned(task.home) {
            let was_stopped = matches!(result, Err(TaskError::ShuttingDown));
            self.orphans.fetch_add(u64::from(was_stopped), Ordering::Relaxed);
            return;
        }
        if self.cancelled.take(task) {
            return;
        }
        let bytes_max = self.value_bytes_max();
        let outcome = result.and_then(|value| pack_result(name, value, bytes_max));
        self.report(Some(task), outcome);
    }

    /// Sends the result of a guest home.
    fn report(&self, task: Option<TaskId>, outcome: Outcome) {
        match (task, outcome) {
            (Some(TaskId { home, future }), outcome) => {
                self.send(home, Message::Result { future, outcome });
            }
            (None, Err(error)) => self.message_failed("unknown function", &error),
            (None, Ok(_)) => {}
        }
    }

    /// Ends the job because of a message: no future could end with the error, and the job
    /// would go on as if it were done.
    fn message_failed(&self, function: &str, error: &TaskError) {
        let reason = format!("a message for it failed ({function}): {error}");
        self.send(Pe::ROOT, Message::Failed { reason });
    }
}
