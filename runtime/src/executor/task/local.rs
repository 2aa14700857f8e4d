//! A task on the PE that spawned it.
//!
//! At home a task is its function and its unencoded argument, in one allocation with the room for
//! its result: [`Local`]. It becomes bytes only when another PE takes it. (An [array] as argument
//! is bytes already.) Then its future is entered into the engine's table, where the result will
//! look for it. At the thief the task is a [guest](super::arrival).

use super::activity::note_end;
use super::body::Run;
use super::cancel::{Batch, Mark, new_task};
use super::caught::{discard, discard_with};
use super::end::Settle;
use super::future::Promise;
use super::origin::Origin;
use super::packing::{PackError, PackLimits, WithHandles, drafting, unpack_result};
use super::portable::Portable;
use super::site::Site;
use super::start::{Effort, Fill, OwnTask, Packed, Spawned, Start, TakeBack, Waiting};
use super::task_code::Function;
use super::travel::take_packed_handles;
use crate::array::is_plain;
use crate::code::Name;
use crate::error::TaskError;
use crate::protocol::Outcome;
use crate::protocol::message::Bytes;
use async_task::Task;
use spin::Yield;
use spin::mutex::spin::{SpinMutex, SpinMutexGuard};
use std::sync::Arc;
use std::task::{Poll, Waker};
use ultramarine_topology::{Distance, Pe};

/// A task on the PE that spawned it, with its future.
pub(crate) struct Local<S: 'static, A: 'static, R: 'static> {
    function: &'static dyn Function<S, A, R>,
    /// The PE for which it runs: this PE, or the home of the guest from which it descends.
    home: Pe,
    radius: Distance,
    is_supervised: bool,
    is_fork: bool,
    /// Whether it is the program's, and not the runtime's own.
    is_counted: bool,
    /// Where it is, once it has started.
    mark: Mark,
    /// This lock is released with a plain store. With the standard library's, which exchanges a
    /// value, a task that only computes took 1.16 of the time.
    state: SpinMutex<State<A, R>, Yield>,
}

struct State<A, R> {
    stage: Stage<A, R>,
    /// The task that awaits the future.
    waker: Option<Waker>,
}

enum Stage<A, R> {
    Waiting(A),
    /// Running here, or on another PE. The task is stored if it runs here and waits for something.
    Started(Option<Task<()>>),
    /// The error is boxed to keep successful tasks small.
    Done(Result<R, Box<TaskError>>),
    /// Like an error, but smaller: there may be a million of these.
    Cancelled,
    Taken,
}

impl<S: Site, A: Portable, R: Portable> Local<S, A, R> {
    pub(crate) fn new(
        function: &'static dyn Function<S, A, R>,
        parent: Origin,
        radius: Distance,
        argument: A,
    ) -> Self {
        let state = State { stage: Stage::Waiting(argument), waker: None };
        Local {
            function,
            home: parent.home,
            radius,
            is_supervised: parent.is_supervised,
            is_fork: false,
            is_counted: true,
            mark: Mark::default(),
            state: SpinMutex::new(state),
        }
    }

    /// Makes it a fork: its parent means to take it back.
    pub(crate) fn into_fork(mut self) -> Self {
        self.is_fork = true;
        self
    }

    /// Makes it a task of the runtime, which is not counted.
    pub(crate) fn into_uncounted(mut self) -> Self {
        self.is_counted = false;
        self
    }

    /// It is about to end here. (Before it does, since then a task that waits for it may count.)
    fn note_end(&self) {
        if self.is_counted {
            note_end();
        }
    }

    fn state(&self) -> SpinMutexGuard<'_, State<A, R>, Yield> {
        // No user code runs under the lock, which is held for a few instructions.
        self.state.lock()
    }

    /// Takes the argument out, when the task starts. Only the first call succeeds.
    fn begin(&self) -> Option<A> {
        self.begin_with(|| {})
    }

    /// The same, but runs `note` before other threads can see that the task has started.
    fn begin_with(&self, note: impl FnOnce()) -> Option<A> {
        let mut state = self.state();
        match std::mem::replace(&mut state.stage, Stage::Started(None)) {
            Stage::Waiting(argument) => {
                note();
                Some(argument)
            }
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// Undoes [`begin`](Self::begin).
    fn put_back(&self, argument: A) {
        let mut state = self.state();
        if matches!(state.stage, Stage::Started(_)) {
            state.stage = Stage::Waiting(argument);
        } else {
            drop(state);
            discard(argument);
        }
    }

    /// Ends the future, unless it has ended. No panic of user code gets out.
    fn finish(&self, result: Result<R, TaskError>) {
        let mut ended = match result {
            Err(TaskError::Cancelled) => Stage::Cancelled,
            result => Stage::Done(result.map_err(Box::new)),
        };
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

    /// Stores the task, which waits for something.
    fn stay(&self, task: Task<()>) {
        let mut state = self.state();
        if let Stage::Started(waiting) = &mut state.stage {
            *waiting = Some(task);
        } else {
            // It has ended meanwhile, or was cancelled.
            drop(state);
            discard(task);
        }
    }
}

impl<A, R> Stage<A, R> {
    /// Drops a stage: a running task goes on, a user's value is dropped safely.
    fn discard(self) {
        match self {
            Stage::Started(task) => task.into_iter().for_each(Task::detach),
            value => discard(value),
        }
    }
}

/// The last owner may be a worker between two tasks, or the thread that holds the engine: no panic
/// may get out.
impl<S, A, R> Drop for Local<S, A, R> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        std::mem::replace(&mut state.stage, Stage::Taken).discard();
        if let Some(waker) = state.waker.take() {
            discard(waker);
        }
    }
}

impl<S: Site, A: Portable, R: Portable> Start<S> for Local<S, A, R> {
    fn start(self: Arc<Self>, pe: &Arc<S>) {
        let note = || {
            if self.function.may_wait() {
                self.mark.runs_as(new_task(pe.me(), pe.slot()));
            }
        };
        let Some(argument) = self.begin_with(note) else {
            if pe.is_orphaned(self.home) {
                pe.count_orphans(1);
            }
            return;
        };
        let begins = || {
            let task = self.mark.task(pe.me());
            let origin = Origin { task, home: self.home, is_supervised: self.is_supervised };
            (origin, self.clone() as _)
        };
        match self.function.run(pe, argument, &begins) {
            Run::Computed(result) => {
                self.note_end();
                self.finish(result);
            }
            Run::Ended => {}
            Run::Waits(task) => self.stay(task),
        }
    }

    fn pack(self: Arc<Self>, pe: &S, effort: Effort) -> Option<Packed<Waiting<S>>> {
        if effort == Effort::None {
            return Some(Packed::Later(self));
        }
        let argument = self.begin()?;
        match pack_task(self.function, argument, pe, effort) {
            Ok(body) => {
                let (radius, is_supervised) = (self.radius, self.is_supervised);
                Some(Packed::Own(OwnTask {
                    future: keep_handles(self),
                    radius,
                    is_supervised,
                    body,
                }))
            }
            Err(PackError::TooLong(argument)) => {
                self.put_back(argument);
                Some(Packed::Later(self))
            }
            Err(PackError::Failed(error)) => {
                self.finish(Err(error));
                None
            }
        }
    }

    fn call_off(&self) {
        self.refuse(TaskError::ShuttingDown);
    }

    fn function(&self) -> Option<Name> {
        Some(self.function.name())
    }

    fn is_fork(&self) -> bool {
        self.is_fork
    }
}

impl<S: Site, A: Portable, R: Portable> Settle<R> for Local<S, A, R> {
    fn settle(&self, result: Result<R, TaskError>) {
        self.note_end();
        self.finish(result);
        self.mark.note_end();
    }
}

impl<S: Site, A: Portable, R: Portable> Fill for Local<S, A, R> {
    fn note_departure(&self, slot: u64, future: u64) -> bool {
        self.mark.note_departure(slot, future)
    }

    fn fill(&self, outcome: Outcome) {
        self.finish(outcome.and_then(|bytes| unpack_result(Fill::name(self), bytes)));
    }

    fn is_decoded(&self) -> bool {
        !is_plain::<R>()
    }

    fn is_counted(&self) -> bool {
        self.is_counted
    }

    fn name(&self) -> &'static str {
        self.function.name()()
    }
}

impl<S: Site, A: Portable, R: Portable> Promise<R> for Local<S, A, R> {
    fn poll(&self, waker: &Waker) -> Poll<Result<R, TaskError>> {
        let mut state = self.state();
        match std::mem::replace(&mut state.stage, Stage::Taken) {
            Stage::Done(result) => Poll::Ready(result.map_err(|error| *error)),
            Stage::Cancelled => Poll::Ready(Err(TaskError::Cancelled)),
            Stage::Taken => panic!("a future is polled again after it has ended"),
            running => {
                state.stage = running;
                if !state.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                    let old = state.waker.replace(waker.clone());
                    // After the lock is released: a waker may own tasks.
                    drop(state);
                    drop(old);
                }
                Poll::Pending
            }
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.state().stage, Stage::Done(_) | Stage::Cancelled)
    }

    fn cancel(&self, batch: &mut Batch) {
        let mut state = self.state();
        if !matches!(state.stage, Stage::Waiting(_) | Stage::Started(_)) {
            return;
        }
        let old = std::mem::replace(&mut state.stage, Stage::Cancelled);
        let waker = state.waker.take();
        drop(state);
        match old {
            Stage::Started(task) => self.mark.cancel(task, batch),
            argument => discard(argument),
        }
        waker.into_iter().for_each(|waker| discard_with(|| waker.wake()));
    }
}

impl<S: Site, A: Portable, R: Portable> TakeBack<S, A, R> for Local<S, A, R> {
    fn take_back(&self) -> Option<A> {
        self.begin()
    }
}

impl<S: Site, A: Portable, R: Portable> Spawned<S, R> for Local<S, A, R> {
    fn refuse(&self, error: TaskError) {
        self.finish(Err(error));
    }
}

/// A future whose task was packed just now. It keeps the handles that the task takes along.
fn keep_handles(future: Arc<dyn Fill>) -> Arc<dyn Fill> {
    match take_packed_handles() {
        handles if handles.is_empty() => future,
        handles => Arc::new(WithHandles { future, _handles: handles }),
    }
}

/// Encodes a task: its code reference, and its argument.
pub(crate) fn pack_task<S: Site, A: Portable, R: Portable>(
    function: &dyn Function<S, A, R>,
    argument: A,
    pe: &S,
    effort: Effort,
) -> Result<Bytes, PackError<A>> {
    let code = match function.code().reference() {
        Ok(code) => code,
        Err(error) => {
            discard(argument);
            let reason = error.to_string();
            return Err(PackError::Failed(TaskError::UnknownCode { pe: pe.me(), reason }));
        }
    };
    let limits = PackLimits { effort, bytes_max: pe.value_bytes_max() };
    let packed = drafting(|draft| {
        draft.extend_from_slice(&code.to_bytes());
        function.pack(argument, draft, limits)
    });
    if packed.is_err() {
        // The argument is not sent, so its handles need not be kept.
        drop(take_packed_handles());
    }
    packed
}
