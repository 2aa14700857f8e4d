//! Tasks that come from other PEs. They stay bytes until a worker starts them, so that passing them
//! on to another thief costs nothing.

use super::activity::enter_function;
use super::body::{Body, Run};
use super::end::Settle;
use super::guest::Guest;
use super::origin::Origin;
use super::packing::pack_result;
use super::portable::Portable;
use super::site::Site;
use super::start::{Effort, Packed, Start, Waiting};
use super::task_code::{Arrival, Function, TaskCode};
use super::travel::{DelayedStart, attach_handles, delay_start, take_delayed};
use crate::array::Array;
use crate::code::{Arrive, Code, CodeError, CodeRef, Name};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Message, Outcome, Parcel, TaskId};
use std::sync::Arc;

impl<S: Site, B: Body<S, A>, A: Portable> Arrive<Arrival<S>> for TaskCode<B, A> {
    fn arrive(self, arrival: Arrival<S>, argument: &[u8]) {
        arrive(&self, arrival, argument);
    }
}

/// Starts a task from another PE, or the function of a message; later, if it must wait for values.
fn arrive<S: Site, A: Portable, R: Portable>(
    function: &dyn Function<S, A, R>,
    arrival: Arrival<S>,
    argument: &[u8],
) {
    let Arrival { site: pe, task, is_supervised, array } = arrival;
    let name = function.name();
    enter_function(Some(name));
    let argument = match (function.unpack(argument, array), attach_handles(&pe)) {
        (Ok(argument), None) => argument,
        (Ok(argument), Some(pending)) => {
            return delay_start(DelayedStart { pending, argument: Box::new(argument) });
        }
        (Err(error), _) => return cannot_begin(&*pe, name(), task, error),
    };
    let begins = || {
        let origin = match task {
            Some(task) => Origin { task, home: task.home, is_supervised },
            None => Origin { is_supervised, ..pe.own_origin() },
        };
        (origin, Arc::new(ReportHome { site: pe.clone(), function: name, task }) as _)
    };
    match (function.run(&pe, argument, &begins), task) {
        (Run::Computed(result), _) => report_end(&*pe, name(), task, result),
        (Run::Ended, _) => {}
        (Run::Waits(running), Some(task)) => pe.keep_guest(task, running),
        (Run::Waits(running), None) => running.detach(),
    }
}

impl<S: Site> Start<S> for Guest {
    fn start(self: Arc<Self>, pe: &Arc<S>) {
        let task = self.parcel.task;
        if pe.is_dead(task.home) {
            pe.count_orphans(1);
            return;
        }
        if pe.cancelled().take(task) {
            return;
        }
        let mut guest = Arc::unwrap_or_clone(self);
        let Parcel { supervised, body, .. } = &mut guest.parcel;
        if let Some(delayed) = start_in_bytes(pe, Some(task), *supervised, body) {
            pe.begin_later(guest, delayed);
        }
    }

    fn pack(self: Arc<Self>, pe: &S, _: Effort) -> Option<Packed<Waiting<S>>> {
        let task = self.parcel.task;
        let is_wanted = !pe.is_dead(task.home) && !pe.cancelled().take(task);
        is_wanted.then(|| Packed::Guest(Arc::unwrap_or_clone(self).parcel))
    }
}

/// Starts a task in bytes, or calls the function of a message. If it must first wait for values,
/// the bytes stay as they are, and what it waits for is returned.
pub(crate) fn start_in_bytes<S: Site>(
    site: &Arc<S>,
    task: Option<TaskId>,
    is_supervised: bool,
    body: &mut Bytes,
) -> Option<DelayedStart> {
    let Bytes { few, many } = body;
    let (code, array) = match many {
        // An array has no handles, so the task starts at once.
        Some(_) if !few.is_empty() => (&few[..], many.take()),
        Some(all) => (all.bytes(), None),
        None => (&few[..], None),
    };
    if let Err(error) = enter(site, task, is_supervised, code, array) {
        let error = TaskError::UnknownCode { pe: site.me(), reason: error.to_string() };
        cannot_begin(&**site, NOT_IN_THIS_PROGRAM, task, error);
    }
    take_delayed()
}

/// What errors call the function of a message whose code this program does not have.
const NOT_IN_THIS_PROGRAM: &str = "a function that is not in this program";

fn enter<S: Site>(
    site: &Arc<S>,
    task: Option<TaskId>,
    is_supervised: bool,
    code: &[u8],
    array: Option<Array>,
) -> Result<(), CodeError> {
    let (code, argument) = CodeRef::split(code)?;
    let code = Code::<Arrival<S>>::resolve(code)?;
    code.arrive(Arrival { site: site.clone(), task, is_supervised, array }, argument);
    Ok(())
}

/// Reports the end of a guest to its home, unless that has died or cancelled it. A message that
/// failed ends the job.
fn report_end<S: Site, R: Portable>(
    site: &S,
    name: &'static str,
    task: Option<TaskId>,
    result: Result<R, TaskError>,
) {
    let Some(task) = task else {
        result.err().iter().for_each(|error| message_failed(site, name, error));
        return;
    };
    if is_awaited(site, task, matches!(result, Err(TaskError::ShuttingDown))) {
        let bytes_max = site.value_bytes_max();
        let outcome = result.and_then(|value| pack_result(name, value, bytes_max));
        report(site, task, outcome);
    }
}

/// What waits for a task that came from another PE: its result is reported to that.
struct ReportHome<S> {
    site: Arc<S>,
    function: Name,
    /// `None` for a message: no PE waits for its end.
    task: Option<TaskId>,
}

impl<S: Site, R: Portable> Settle<R> for ReportHome<S> {
    fn settle(&self, result: Result<R, TaskError>) {
        report_end(&*self.site, (self.function)(), self.task, result);
    }
}

/// Whether the home of a guest that has ended waits for its result.
fn is_awaited<S: Site>(site: &S, task: TaskId, was_stopped: bool) -> bool {
    if site.is_orphaned(task.home) {
        site.count_orphans(u64::from(was_stopped));
        return false;
    }
    !site.cancelled().take(task)
}

/// Reports that a guest or a message could not begin.
fn cannot_begin<S: Site>(site: &S, function: &str, task: Option<TaskId>, error: TaskError) {
    match task {
        Some(task) => report(site, task, Err(error)),
        None => message_failed(site, function, &error),
    }
}

/// Sends the result of a guest home.
pub(crate) fn report<S: Site>(site: &S, task: TaskId, outcome: Outcome) {
    let TaskId { home, future } = task;
    site.send(home, Message::Result { future, outcome });
}

/// Ends the job because a message failed: no future can end with the error, and the job would go on
/// as if the message had been handled.
fn message_failed<S: Site>(site: &S, function: &str, error: &TaskError) {
    let reason = format!("a message for it failed ({function}): {error}");
    site.send(site.root(), Message::Failed { reason });
}
