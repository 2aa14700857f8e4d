//! Runs a PE from its start to its end.

use super::context::Context;
use crate::error::TaskError;
use crate::executor::engine::failure::JobError;
use crate::executor::pe::ending::RestartableMain;
use crate::executor::pe::leave::{Leave, Parting};
use crate::executor::pe::processor::{Job, Processor};
use crate::executor::task::activity::{MAIN_TASK, enter_function};
use crate::executor::task::body::CatchPanic;
use crate::executor::task::caught::caught;
use crate::executor::task::site::Site;
use crate::lock::Lock;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use ultramarine_topology::Pe;

/// A main task whose type is gone but for that of its result: what starts and ends it is compiled
/// once.
pub struct BoxedMain<T>(Pin<Box<dyn std::future::Future<Output = T> + Send>>);

impl<T> BoxedMain<T> {
    /// The main task of this future.
    pub fn new<F>(future: F) -> Self
    where
        F: std::future::Future<Output = T> + Send + 'static,
    {
        BoxedMain(Box::pin(future))
    }
}

impl<T> std::future::Future for BoxedMain<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<T> {
        enter_function(Some(|| MAIN_TASK));
        self.0.as_mut().poll(cx)
    }
}

/// What ends with the main task's result, boxed so that what follows is compiled once for each type
/// of result.
type MainFuture<T> = Pin<Box<dyn std::future::Future<Output = Result<T, TaskError>> + Send>>;

/// What became of the main task, once it has ended on this PE.
type Outcome<T> = Lock<Option<Result<T, TaskError>>>;

/// Runs the root PE. `main` is the job's main task; when it ends, the job ends. Blocks until all
/// PEs have left. The failure detector keeps running until the [`Parting`]'s goodbye.
///
/// # Errors
///
/// Why the job could not go on, unless the main task had ended by then: its result counts.
pub fn lead<F, T>(job: Job, main: F) -> (Result<T::Output, JobError>, Parting)
where
    F: FnOnce(Context) -> T,
    T: std::future::Future + Send + 'static,
    T::Output: Send + 'static,
{
    let pe = match Processor::start(job, None) {
        Ok(pe) => pe,
        Err(error) => return (Err(error), NOT_STARTED),
    };
    let outcome = Arc::new(Lock::new(None));
    let me = pe.me();
    // No panic may keep this thread from driving the PE: the others would wait for it.
    let future = caught(MAIN_TASK, || main(Context::of(&pe, pe.own_origin())));
    let main: MainFuture<T::Output> = match future {
        Ok(future) => Box::pin(CatchPanic::of_main(me, future)),
        Err(message) => Box::pin(ready(Err(TaskError::Panicked { pe: me, message }))),
    };
    run_main(&pe, outcome.clone(), main);
    let (result, parting) = see_to_the_end(&pe, &outcome);
    let without = || Err(JobError::MainPanicked("it ended without a result".to_owned()));
    (result.and_then(|value| value.map_or_else(without, Ok)), parting)
}

/// Runs any PE of a job whose main task may be started again: first on [`Pe::ROOT`], and when that
/// dies, on the PE that takes its place, provided that the job `may_go_on` with it. Otherwise as
/// [`lead`] and [`serve`]. The result is `None` on a PE on which the main task has not ended. Such
/// a one calls `ended_elsewhere` as soon as it hears of the end: the job needs it no more. (The
/// others may leave as soon as they know that it has heard.)
///
/// # Errors
///
/// Why this PE could not go on, unless the main task had ended here by then.
pub fn take_part<F, T>(
    job: Job,
    main: F,
    may_go_on: impl Fn(Pe) -> bool + Send + Sync + 'static,
    ended_elsewhere: impl Fn() + Send + Sync + 'static,
) -> (Result<Option<T::Output>, JobError>, Parting)
where
    F: Fn(Context) -> T + Send + Sync + 'static,
    T: std::future::Future + Send + 'static,
    T::Output: Send + 'static,
{
    let outcome = Arc::new(Lock::new(None));
    let (main, result) = (Arc::new(main), outcome.clone());
    let start = move |pe: &Arc<Processor>| {
        let (main, context) = (main.clone(), Context::of(pe, pe.own_origin()));
        let future = async move { main(context).await };
        run_main(pe, result.clone(), Box::pin(CatchPanic::of_main(pe.me(), future)));
    };
    let main = RestartableMain {
        start: Box::new(start),
        may_go_on: Box::new(may_go_on),
        ended_elsewhere: Box::new(ended_elsewhere),
    };
    let pe = match Processor::start(job, Some(main)) {
        Ok(pe) => pe,
        Err(error) => return (Err(error), NOT_STARTED),
    };
    // Any other hears of a succession first.
    if pe.me() == Pe::ROOT {
        pe.start_main();
    }
    see_to_the_end(&pe, &outcome)
}

/// Runs the main task, which ends the job. If another PE could take this one's place, its result
/// counts once enough of the others have agreed.
fn run_main<T: Send + 'static>(pe: &Arc<Processor>, outcome: Arc<Outcome<T>>, main: MainFuture<T>) {
    let home = pe.clone();
    pe.run_main(async move {
        let ended = main.await;
        *outcome.lock() = Some(ended);
        home.agree_to_end().await;
        home.end_main();
    });
}

/// Has the PE driven to its end. Returns what the main task has returned, if it ended here.
fn see_to_the_end<T>(
    pe: &Arc<Processor>,
    outcome: &Outcome<T>,
) -> (Result<Option<T>, JobError>, Parting) {
    let (failure, leave) = pe.run_to_the_end();
    let counts = pe.has_main_ended();
    let ended = outcome.lock().take();
    let ended = ended.filter(|_| counts);
    let result = match (failure, ended) {
        (_, Some(Ok(value))) => Ok(Some(value)),
        (Some(failure), _) => Err(failure),
        (None, Some(Err(TaskError::Panicked { message, .. }))) => {
            Err(JobError::MainPanicked(message))
        }
        (None, _) => Ok(None),
    };
    (result, pe.parting(leave))
}

/// Runs a PE other than the root, until the root's main task has ended.
///
/// # Errors
///
/// Why this PE could not go on.
pub fn serve(job: Job) -> (Result<(), JobError>, Parting) {
    match Processor::start(job, None) {
        Err(error) => (Err(error), NOT_STARTED),
        Ok(pe) => {
            let (failure, leave) = pe.run_to_the_end();
            (failure.map_or(Ok(()), Err), pe.parting(leave))
        }
    }
}

/// As [`serve`], for one of several PEs of a process: says first whether the PE has started, so
/// that no other waits for one that has not; and in the end why it could not go on, if that was so.
pub fn serve_once_started(
    job: Job,
    started: impl FnOnce(Result<(), JobError>),
    failed: impl FnOnce(&JobError),
) {
    // The thread that drives it is the last that can be missing.
    match Processor::start(job, None).and_then(|pe| pe.start_driver().map(|()| pe)) {
        Err(error) => started(Err(error)),
        Ok(pe) => {
            started(Ok(()));
            let (failure, leave) = pe.wait_for_end();
            drop(pe.parting(leave));
            if let Some(error) = &failure {
                failed(error);
            }
        }
    }
}

/// Ends the job of this context, which is the root's, since another PE of the process cannot go on:
/// without a failure detector the root may not hear of that in another way.
pub fn end_because_of(cx: &Context, pe: Pe, error: &JobError) {
    if !cx.pe.is_ending() {
        cx.pe.fail(JobError::Elsewhere { pe, reason: error.to_string() });
    }
}

const NOT_STARTED: Parting = Parting { leave: Leave::Hasty, liveness: None };
