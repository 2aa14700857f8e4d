//! Tasks that have come from other PEs. They stay bytes until a worker starts them, so that the
//! next thief costs nothing.

use super::activity::goes_into;
use super::body::{Body, Run};
use super::guest::Guest;
use super::kind::Kind;
use super::origin::Origin;
use super::packing::{Which, pack_result, unpack};
use super::portable::Portable;
use super::site::Site;
use super::start::{Effort, Packed, Start, Waiting};
use super::travel::{Late, arrive, is_late, why_late};
use crate::array::Array;
use crate::code::{Arrive, Code, CodeError, CodeRef};
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use crate::protocol::{Message, Outcome, Parcel, TaskId};
use std::sync::Arc;
use ultramarine_topology::Pe;

/// Where a task in bytes is started, and whose it is.
pub(crate) struct Arrival<S> {
    pub(crate) site: Arc<S>,
    /// `None` for a message, which has no result.
    pub(crate) task: Option<TaskId>,
    pub(crate) is_supervised: bool,
    /// Its argument, if that is an array.
    pub(crate) array: Option<Array>,
}

impl<S: Site, B: Body<S, A>, A: Portable> Arrive<Arrival<S>> for Kind<B, A> {
    fn arrive(self, arrival: Arrival<S>, argument: &[u8]) {
        let Arrival { site: pe, task, is_supervised, array } = arrival;
        goes_into(Some(B::name));
        let unpacked = unpack(Which::argument_of(B::name()), argument, array);
        match (unpacked, arrive(&pe)) {
            (Ok(argument), None) => self.begin(&pe, task, is_supervised, argument),
            (Ok(argument), Some(coming)) => is_late(Late { coming, argument: Box::new(argument) }),
            (Err(error), _) => report(&*pe, task, Err(error)),
        }
    }
}

impl<B, A: Portable> Kind<B, A> {
    /// Runs a task that has come from elsewhere, or does what a message says.
    fn begin<S>(self, pe: &Arc<S>, task: Option<TaskId>, is_supervised: bool, argument: A)
    where
        S: Site,
        B: Body<S, A>,
    {
        match task {
            Some(task) => self.begin_task(pe, task, is_supervised, argument),
            None => self.begin_message(pe, is_supervised, argument),
        }
    }

    fn begin_task<S>(self, pe: &Arc<S>, task: TaskId, is_supervised: bool, argument: A)
    where
        S: Site,
        B: Body<S, A>,
    {
        let begins = || {
            let here = pe.clone();
            let done = move |result| end_guest(&*here, B::name(), task, result);
            (Origin { task, home: task.home, is_supervised }, done)
        };
        match self.0.run(pe, argument, begins) {
            Run::Computed(result) => end_guest(&**pe, B::name(), task, result),
            Run::Ended => {}
            Run::Waits(running) => pe.keep_guest(task, running),
        }
    }

    fn begin_message<S>(self, pe: &Arc<S>, is_supervised: bool, argument: A)
    where
        S: Site,
        B: Body<S, A>,
    {
        let ends = |pe: &S, result: Result<_, _>| {
            result.err().iter().for_each(|error| message_failed(pe, B::name(), error));
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
        if let Some(late) = start_in_bytes(pe, Some(task), *supervised, body) {
            pe.begin_later(guest, late);
        }
    }

    fn pack(self: Arc<Self>, pe: &S, _: Effort) -> Option<Packed<Waiting<S>>> {
        let task = self.parcel.task;
        let is_wanted = !pe.is_dead(task.home) && !pe.cancelled().take(task);
        is_wanted.then(|| Packed::Guest(Arc::unwrap_or_clone(self).parcel))
    }

    /// The job is ending: nobody waits for the result any more.
    fn call_off(&self) {}
}

/// Starts a task in bytes, or does what a message says. If it cannot begin yet, the bytes stay
/// as they are; why not.
pub(crate) fn start_in_bytes<S: Site>(
    site: &Arc<S>,
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
    if let Err(error) = enter(site, task, is_supervised, code, array) {
        let error = TaskError::UnknownCode { pe: site.me(), reason: error.to_string() };
        report(&**site, task, Err(error));
    }
    why_late()
}

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

/// A guest has ended.
fn end_guest<S: Site, R: Portable>(
    site: &S,
    name: &'static str,
    task: TaskId,
    result: Result<R, TaskError>,
) {
    if site.is_orphaned(task.home) {
        let was_stopped = matches!(result, Err(TaskError::ShuttingDown));
        site.count_orphans(u64::from(was_stopped));
        return;
    }
    if site.cancelled().take(task) {
        return;
    }
    let bytes_max = site.value_bytes_max();
    let outcome = result.and_then(|value| pack_result(name, value, bytes_max));
    report(site, Some(task), outcome);
}

/// Sends the result of a guest home.
pub(crate) fn report<S: Site>(site: &S, task: Option<TaskId>, outcome: Outcome) {
    match (task, outcome) {
        (Some(TaskId { home, future }), outcome) => {
            site.send(home, Message::Result { future, outcome });
        }
        (None, Err(error)) => message_failed(site, "unknown function", &error),
        (None, Ok(_)) => {}
    }
}

/// Ends the job because of a message: no future could end with the error, and the job
/// would go on as if it were done.
fn message_failed<S: Site>(site: &S, function: &str, error: &TaskError) {
    let reason = format!("a message for it failed ({function}): {error}");
    site.send(Pe::ROOT, Message::Failed { reason });
}
