//! What is being solved on a PE, so that it is solved once, however many ask for it.
//!
//! A solve is a task of its own. If the last that waits for it leaves, it goes on for [`GRACE`]:
//! most often a PE has died with those that waited, and their supervisors ask again.
//!
//! This must never know what a problem is, nor what a table does.

use crate::table::{TableError, TableKey, TableValue};
use std::any::Any;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future as TaskFuture, discard};

/// For how long a solve goes on that no task waits for.
const GRACE: Duration = Duration::from_secs(2);

/// What comes of a problem.
pub(super) type Outcome<R> = Result<R, TableError>;

/// A problem: the place of its table on this PE, its key, and whether its parts are supervised.
pub(super) type ProblemId<K> = (usize, K, bool);

/// The solves of this PE.
pub(super) struct InProgress<K, R>(Mutex<HashMap<ProblemId<K>, Arc<Solve<R>>>>);

/// A problem that is being solved.
struct Solve<R>(Mutex<State<R>>);

struct State<R> {
    outcome: Option<Outcome<R>>,
    waiting: usize,
    wakers: Vec<Waker>,
    /// Since when no task waits.
    alone_since: Option<Instant>,
    /// It is cancelled when this is dropped.
    task: Option<AbortOnDrop<TaskFuture<()>>>,
    /// As long as this lives, no other table has its place.
    #[expect(dead_code, reason = "it is there to be kept")]
    table: Arc<dyn Any + Send + Sync>,
}

impl<K, R> Default for InProgress<K, R> {
    fn default() -> Self {
        InProgress(Mutex::default())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: TableKey, R: TableValue> InProgress<K, R> {
    /// The number of problems that are being solved.
    pub(super) fn len(&self) -> usize {
        locked(&self.0).len()
    }

    /// Waits for a problem's solution, which this PE begins to find if it does not so yet.
    pub(super) fn wait_for(
        self: Arc<Self>,
        cx: Context,
        id: ProblemId<K>,
        table: Arc<dyn Any + Send + Sync>,
        begin: impl FnOnce() -> TaskFuture<()>,
    ) -> Waiting<K, R> {
        let mut is_new = false;
        let mut all = locked(&self.0);
        let solve = all.entry(id).or_insert_with(|| {
            is_new = true;
            let (outcome, waiting, wakers, alone_since, task) = (None, 0, Vec::new(), None, None);
            Arc::new(Solve(Mutex::new(State {
                outcome,
                waiting,
                wakers,
                alone_since,
                task,
                table,
            })))
        });
        let solve = solve.clone();
        {
            let mut state = locked(&solve.0);
            (state.waiting, state.alone_since) = (state.waiting + 1, None);
        }
        drop(all);
        if is_new {
            let task = AbortOnDrop::new(begin());
            locked(&solve.0).task = Some(task);
        }
        Waiting { cx, all: self, solve }
    }

    /// A solve has ended.
    fn end(&self, id: &ProblemId<K>, outcome: Outcome<R>) {
        let removed = locked(&self.0).remove_entry(id);
        let Some((id, solve)) = removed else { return discard(outcome) };
        let wakers = {
            let mut state = locked(&solve.0);
            state.outcome = Some(outcome);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        discard((id, solve));
    }

    /// Cancels the solves that no task has waited for since [`GRACE`].
    fn cancel_unwanted(&self) {
        let is_unwanted = |solve: &Solve<R>| {
            let since = locked(&solve.0).alone_since;
            since.is_some_and(|since| since.elapsed() >= GRACE)
        };
        let unwanted =
            locked(&self.0).extract_if(|_, solve| is_unwanted(solve)).collect::<Vec<_>>();
        discard(unwanted);
    }
}

/// The end of a solve, whatever comes of it.
pub(super) struct End<K: TableKey, R: TableValue> {
    all: Arc<InProgress<K, R>>,
    id: ProblemId<K>,
    pub(super) outcome: Outcome<R>,
}

impl<K: TableKey, R: TableValue> End<K, R> {
    pub(super) fn of(all: Arc<InProgress<K, R>>, id: ProblemId<K>) -> Self {
        End { all, id, outcome: Err(TaskError::Cancelled.into()) }
    }
}

impl<K: TableKey, R: TableValue> Drop for End<K, R> {
    fn drop(&mut self) {
        let cancelled = Err(TaskError::Cancelled.into());
        self.all.end(&self.id, std::mem::replace(&mut self.outcome, cancelled));
    }
}

/// Waits for a solve.
pub(super) struct Waiting<K: TableKey, R: TableValue> {
    cx: Context,
    all: Arc<InProgress<K, R>>,
    solve: Arc<Solve<R>>,
}

impl<K: TableKey, R: TableValue> Future for Waiting<K, R> {
    type Output = Outcome<R>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Outcome<R>> {
        let mut state = locked(&self.solve.0);
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(task.waker())) {
            state.wakers.push(task.waker().clone());
        }
        Poll::Pending
    }
}

impl<K: TableKey, R: TableValue> Drop for Waiting<K, R> {
    fn drop(&mut self) {
        let is_unwanted = {
            // No task joins meanwhile.
            let _all = locked(&self.all.0);
            let mut state = locked(&self.solve.0);
            state.waiting -= 1;
            let is_unwanted = state.waiting == 0 && state.outcome.is_none();
            state.alone_since = is_unwanted.then(Instant::now);
            is_unwanted
        };
        if is_unwanted {
            let cancel_unwanted = async |cx: Context, ()| {
                cx.sleep(GRACE).await;
                cx.pe_local::<InProgress<K, R>>().cancel_unwanted();
            };
            let own = self.cx.independent();
            drop(own.spawn_at(own.pe(), cancel_unwanted, ()));
        }
    }
}
