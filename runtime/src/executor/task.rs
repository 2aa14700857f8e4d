//! A task while it waits to be run.
//!
//! *At home* a task is its function and its argument as they are, in one allocation with the
//! place for its result: [`Local`]. Only when a thief takes it does it become bytes, unless its
//! argument is an [array], which is bytes already, and its
//! future is entered into the engine's table, where the result will look for it. At the thief it
//! stays bytes until a worker starts it, so that the next thief costs nothing: [`Guest`].

use super::body::Body;
use super::caught::{discard, discard_with};
use super::context::Portable;
use super::fork::Loan;
use super::future::Promise;
use super::packing::{
    Effort, Limits, Own, Packed, Unpacked, pack, pack_result, unpack, unpack_result,
};
use super::processor::Processor;
use crate::array::{Array, is_plain};
use crate::code::{Arrive, Code, CodeError, CodeRef};
use crate::error::TaskError;
use crate::protocol::message::{Bytes, Few};
use crate::protocol::{Message, Outcome, Parcel, TaskId};
use crate::wire::Growing;
use async_task::Task;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use ultramarine_topology::{Distance, Pe};

/// A task that can be started here or sent elsewhere.
pub(super) trait Start: Send + Sync {
    /// Runs the task.
    fn start(self: Arc<Self>, pe: &Arc<Processor>);

    /// Makes bytes of the task, for another PE to run, with code of the user's. `None`: the task
    /// could not become bytes, and its future has ended with the reason; or nobody waits for it.
    fn pack(self: Arc<Self>, pe: &Processor, effort: Effort) -> Option<Packed>;

    /// Ends a task that will not be run.
    fn cancel(&self);

    /// Whether its parent means to take it back.
    fn is_fork(&self) -> bool {
        false
    }
}

/// A future whose task is elsewhere.
pub(super) trait Fill: Send + Sync {
    /// Ends the future with the result that came back, as the first or not at all.
    fn fill(&self, outcome: Outcome);

    /// Whether a result has to be decoded.
    fn is_decoded(&self) -> bool;

    /// The name of the task's function, for people to read.
    fn name(&self) -> &'static str;
}

/// A function together with the type of its argument: the code of a task.
pub(super) struct Kind<B, A>(B, PhantomData<fn(A)>);

impl<B: Copy, A> Clone for Kind<B, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Copy, A> Copy for Kind<B, A> {}

impl<B, A> Kind<B, A> {
    pub(super) fn new(body: B) -> Self {
        Kind(body, PhantomData)
    }
}

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
        match unpack("argument", argument, array) {
            Ok(argument) => {
                let Some(task) = task else {
                    let running =
                        self.0.run(&pe, pe.me(), is_supervised, argument, |pe, result| {
                            result
                                .err()
                                .iter()
                                .for_each(|error| pe.message_failed(B::name(), error));
                        });
                    return running.into_iter().for_each(Task::detach);
                };
                let done = move |pe: &Arc<Processor>, result: Result<_, _>| {
                    let bytes_max = pe.value_bytes_max();
                    let outcome = result.and_then(|value| pack_result(value, bytes_max));
                    pe.report(Some(task), outcome);
                };
                let running = self.0.run(&pe, task.home, is_supervised, argument, done);
                running.into_iter().for_each(|running| pe.keep_guest(task.home, running));
            }
            Err(error) => pe.report(task, Err(error)),
        }
    }
}

/// A task on the PE that spawned it, with its future.
pub(super) struct Local<B: Body<A>, A> {
    kind: Kind<B, A>,
    /// On whose behalf it runs: of this PE itself, or of the home of the guest from which it
    /// descends.
    home: Pe,
    radius: Distance,
    is_supervised: bool,
    is_fork: bool,
    state: Mutex<State<A, B::Output>>,
}

struct State<A, R> {
    stage: Stage<A, R>,
    /// Whoever awaits the future.
    waker: Option<Waker>,
}

enum Stage<A, R> {
    Waiting(A),
    /// Running here, or away. The task is there if it runs here for another PE, and waits for
    /// something.
    Started(Option<Task<()>>),
    /// The only one that waited for it has been stopped.
    Abandoned,
    /// The error is boxed to keep small the tasks that do not fail.
    Done(Result<R, Box<TaskError>>),
    Taken,
}

impl<B: Body<A>, A: Portable> Local<B, A> {
    pub(super) fn new(
        body: B,
        home: Pe,
        radius: Distance,
        is_supervised: bool,
        argument: A,
    ) -> Self {
        let state = State { stage: Stage::Waiting(argument), waker: None };
        Local {
            kind: Kind::new(body),
            home,
            radius,
            is_supervised,
            is_fork: false,
            state: Mutex::new(state),
        }
    }

    /// The same, but that its parent means to take it back.
    pub(super) fn into_fork(mut self) -> Self {
        self.is_fork = true;
        self
    }

    fn state(&self) -> MutexGuard<'_, State<A, B::Output>> {
        // No code of the user's runs under the lock, so it is never poisoned half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the argument out, as whoever starts the task. Nobody else does after that.
    fn begin(&self) -> Option<A> {
        let mut state = self.state();
        match std::mem::replace(&mut state.stage, Stage::Started(None)) {
            Stage::Waiting(argument) => Some(argument),
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// Puts the argument back, to be taken out again.
    fn put_back(&self, argument: A) {
        let mut state = self.state();
        if matches!(state.stage, Stage::Started(_)) {
            state.stage = Stage::Waiting(argument);
        } else {
            drop(state);
            discard(argument);
        }
    }

    /// Ends the future, unless it has ended. No panic of the user's code passes.
    fn finish(&self, result: Result<B::Output, TaskError>) {
        let mut ended = Stage::Done(result.map_err(Box::new));
        let mut state = self.state();
        if matches!(state.stage, Stage::Waiting(_) | Stage::Started(_)) {
            std::mem::swap(&mut state.stage, &mut ended);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            discard_with(|| waker.wake());
        }
        ended.discard();
    }

    /// The task, which runs here for another PE, waits for something.
    fn stay(&self, task: Task<()>) {
        let mut state = self.state();
        match &mut state.stage {
            Stage::Started(waiting) => *waiting = Some(task),
            Stage::Abandoned => {
                drop(state);
                discard(task);
            }
            _ => task.detach(),
        }
    }
}

impl<A, R> Stage<A, R> {
    /// Lets a task that runs go on, and drops the user's value that may be here.
    fn discard(self) {
        match self {
            Stage::Started(task) => task.into_iter().for_each(Task::detach),
            value => discard(value),
        }
    }
}

/// The last owner may be a worker between two tasks, or the thread that holds the engine.
impl<B: Body<A>, A> Drop for Local<B, A> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut state.stage, Stage::Taken).discard();
        if let Some(waker) = state.waker.take() {
            discard(waker);
        }
    }
}

impl<B: Body<A>, A: Portable> Start for Local<B, A> {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        let Some(argument) = self.begin() else {
            if matches!(self.state().stage, Stage::Abandoned) {
                pe.orphans.fetch_add(1, Ordering::Relaxed);
            }
            return;
        };
        let (body, home, is_supervised) = (self.kind.0, self.home, self.is_supervised);
        let guest = (home != pe.me()).then(|| self.clone());
        let done = move |_: &Arc<Processor>, result| self.finish(result);
        let running = body.run(pe, home, is_supervised, argument, done);
        match (guest, running) {
            (Some(guest), Some(running)) => guest.stay(running),
            (_, running) => running.into_iter().for_each(Task::detach),
        }
    }

    fn pack(self: Arc<Self>, pe: &Processor, effort: Effort) -> Option<Packed> {
        if effort == Effort::None {
            return Some(Packed::Later(self));
        }
        let argument = self.begin()?;
        match pack_task(self.kind, argument, pe, effort) {
            Ok(body) => {
                let (radius, is_supervised) = (self.radius, self.is_supervised);
                Some(Packed::Own(Own { future: self, radius, is_supervised, body }))
            }
            Err(Unpacked::TooLong(argument)) => {
                self.put_back(argument);
                Some(Packed::Later(self))
            }
            Err(Unpacked::Failed(error)) => {
                self.finish(Err(error));
                None
            }
        }
    }

    fn cancel(&self) {
        self.finish(Err(TaskError::ShuttingDown));
    }

    fn is_fork(&self) -> bool {
        self.is_fork
    }
}

impl<B: Body<A>, A: Portable> Fill for Local<B, A> {
    fn fill(&self, outcome: Outcome) {
        self.finish(outcome.and_then(unpack_result));
    }

    fn is_decoded(&self) -> bool {
        !is_plain::<B::Output>()
    }

    fn name(&self) -> &'static str {
        B::name()
    }
}

impl<B: Body<A>, A: Portable> Promise<B::Output> for Local<B, A> {
    fn poll(&self, waker: &Waker) -> Poll<Result<B::Output, TaskError>> {
        let mut state = self.state();
        match std::mem::replace(&mut state.stage, Stage::Taken) {
            Stage::Done(result) => Poll::Ready(result.map_err(|error| *error)),
            Stage::Taken => panic!("a future is polled again after it has ended"),
            running => {
                state.stage = running;
                if !state.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                    let old = state.waker.replace(waker.clone());
                    // After the lock: a waker may own tasks.
                    drop(state);
                    drop(old);
                }
                Poll::Pending
            }
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.state().stage, Stage::Done(_))
    }

    fn abandon(&self) {
        let mut state = self.state();
        if matches!(state.stage, Stage::Waiting(_) | Stage::Started(_)) {
            let old = std::mem::replace(&mut state.stage, Stage::Abandoned);
            // After the lock: this drops the argument, or stops the task.
            drop(state);
            discard(old);
        }
    }
}

impl<B: Body<A>, A: Portable> Loan<A, B::Output> for Local<B, A> {
    fn take_back(&self) -> Option<A> {
        self.begin()
    }
}

/// Makes bytes of a function and its argument.
pub(super) fn pack_task<B: Body<A>, A: Portable>(
    kind: Kind<B, A>,
    argument: A,
    pe: &Processor,
    effort: Effort,
) -> Result<Bytes, Unpacked<A>> {
    match Code::of(kind).reference() {
        Ok(code) => {
            let limits = Limits { effort, bytes_max: pe.value_bytes_max() };
            let mut few = Few::default();
            few.append(&code.to_bytes());
            pack("argument", argument, few, limits)
        }
        Err(error) => {
            discard(argument);
            let (pe, reason) = (pe.me(), error.to_string());
            Err(Unpacked::Failed(TaskError::UnknownCode { pe, reason }))
        }
    }
}

/// A task from another PE, still in bytes.
pub(super) struct Guest(pub(super) Parcel);

impl Start for Guest {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        let Parcel { task, supervised, body, .. } = Arc::unwrap_or_clone(self).0;
        if pe.is_dead(task.home) {
            pe.orphans.fetch_add(1, Ordering::Relaxed);
            return;
        }
        pe.start_in_bytes(Some(task), supervised, body);
    }

    fn pack(self: Arc<Self>, pe: &Processor, _: Effort) -> Option<Packed> {
        let is_orphan = pe.is_dead(self.0.task.home);
        (!is_orphan).then(|| Packed::Guest(Arc::unwrap_or_clone(self).0))
    }

    /// The job is ending: nobody waits for the result any more.
    fn cancel(&self) {}
}

impl Clone for Guest {
    fn clone(&self) -> Self {
        Guest(self.0.clone())
    }
}

impl Processor {
    /// Starts a task in bytes, or does what a message says.
    pub(super) fn start_in_bytes(
        self: &Arc<Self>,
        task: Option<TaskId>,
        is_supervised: bool,
        body: Bytes,
    ) {
        let start = |code: &[u8], array| {
            let (code, argument) = CodeRef::split(code)?;
            let code = Code::<Arrival>::resolve(code)?;
            code.arrive(Arrival { pe: self.clone(), task, is_supervised, array }, argument);
            Ok::<_, CodeError>(())
        };
        let started = match body {
            Bytes { few, many: Some(all) } if few.is_empty() => start(all.bytes(), None),
            Bytes { few, many } => start(&few, many),
        };
        if let Err(error) = started {
            let error = TaskError::UnknownCode { pe: self.me(), reason: error.to_string() };
            self.report(task, Err(error));
        }
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
