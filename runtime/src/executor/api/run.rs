//! Runs a PE from its start to its end.

use super::context::Context;
use crate::error::TaskError;
use crate::executor::engine::failure::JobError;
use crate::executor::pe::leave::{Leave, Parting};
use crate::executor::pe::processor::{Job, Processor};
use crate::executor::task::body::CatchPanic;
use crate::executor::task::caught::caught;
use crate::executor::task::site::Site;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

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
    let pe = match Processor::start(job) {
        Ok(pe) => pe,
        Err(error) => return (Err(error), NOT_STARTED),
    };
    let outcome = Arc::new(Mutex::new(None));
    let (result, home) = (outcome.clone(), pe.clone());
    // No panic may keep this thread from driving the PE: the others would wait for it.
    let me = pe.me();
    let future = caught(|| CatchPanic::of_main(me, main(Context::of(&pe, pe.own_origin()))));
    pe.run_main(async move {
        let ended = match future {
            Ok(future) => future.await,
            Err(message) => Err(TaskError::Panicked { pe: me, message }),
        };
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        home.main_ended.store(true, Ordering::SeqCst);
        home.nudge();
    });
    let (failure, leave) = pe.run_to_the_end();
    let ended = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let result = match (failure, ended) {
        (_, Some(Ok(value))) => Ok(value),
        (Some(failure), _) => Err(failure),
        (None, Some(Err(TaskError::Panicked { message, .. }))) => {
            Err(JobError::MainPanicked(message))
        }
        (None, _) => Err(JobError::MainPanicked("it ended without a result".to_owned())),
    };
    (result, pe.parting(leave))
}

/// Runs a PE other than the root, until the root's main task has ended.
///
/// # Errors
///
/// Why this PE could not go on.
pub fn serve(job: Job) -> (Result<(), JobError>, Parting) {
    match Processor::start(job) {
        Err(error) => (Err(error), NOT_STARTED),
        Ok(pe) => {
            let (failure, leave) = pe.run_to_the_end();
            (failure.map_or(Ok(()), Err), pe.parting(leave))
        }
    }
}

/// As [`serve`], for one of several PEs of a process: says first whether the PE has started, so
/// that no other waits for one that has not. The root is told what goes wrong later.
pub fn serve_once_started(job: Job, started: impl FnOnce(Result<(), JobError>)) {
    // The thread that drives it is the last that can be missing.
    match Processor::start(job).and_then(|pe| pe.start_driver().map(|()| pe)) {
        Err(error) => started(Err(error)),
        Ok(pe) => {
            started(Ok(()));
            let (_, leave) = pe.wait_for_end();
            drop(pe.parting(leave));
        }
    }
}

const NOT_STARTED: Parting = Parting { leave: Leave::Hasty, liveness: None };
