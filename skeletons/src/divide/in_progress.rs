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
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
struct Solve<R> {
    /// No other solve of this PE has it: one that was cancelled may end when the next one of the
    /// same problem has begun.
    number: u64,
    state: Mutex<State<R>>,
}

impl<R> Solve<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        locked(&self.state)
    }
}

/// The number of the next solve.
static NEXT: AtomicU64 = AtomicU64::new(0);

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

    /// Waits for a problem's solution, which this PE begins to find if it does not so yet. The task
    /// that finds it [ends](End) the solve of this number.
    pub(super) fn wait_for(
        self: Arc<Self>,
        cx: Context,
        id: ProblemId<K>,
        table: Arc<dyn Any + Send + Sync>,
        begin: impl FnOnce(u64) -> TaskFuture<()>,
    ) -> Waiting<K, R> {
        let mut is_new = false;
        let mut all = locked(&self.0);
        let solve = all.entry(id).or_insert_with(|| {
            is_new = true;
            let (outcome, waiting, wakers, alone_since, task) = (None, 0, Vec::new(), None, None);
            let state = State { outcome, waiting, wakers, alone_since, task, table };
            Arc::new(Solve { number: NEXT.fetch_add(1, Relaxed), state: Mutex::new(state) })
        });
        let solve = solve.clone();
        {
            let mut state = solve.state();
            (state.waiting, state.alone_since) = (state.waiting + 1, None);
        }
        drop(all);
        if is_new {
            let task = AbortOnDrop::new(begin(solve.number));
            solve.state().task = Some(task);
        }
        Waiting { cx, all: self, solve }
    }

    /// A solve has ended, which may have been cancelled before.
    fn end(&self, id: &ProblemId<K>, number: u64, outcome: Outcome<R>) {
        let removed = {
            let mut all = locked(&self.0);
            let is_it = all.get(id).is_some_and(|solve| solve.number == number);
            is_it.then(|| all.remove_entry(id)).flatten()
        };
        let Some((id, solve)) = removed else { return discard(outcome) };
        let wakers = {
            let mut state = solve.state();
            state.outcome = Some(outcome);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        discard((id, solve));
    }

    /// Cancels the solves that no task has waited for since [`GRACE`].
    fn cancel_unwanted(&self) {
        let is_unwanted = |solve: &Solve<R>| {
            let state = solve.state();
            let is_unwanted = state.alone_since.is_some_and(|since| since.elapsed() >= GRACE);
            debug_assert!(!is_unwanted || state.waiting == 0, "a task waits for it");
            is_unwanted
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
    number: u64,
    pub(super) outcome: Outcome<R>,
}

impl<K: TableKey, R: TableValue> End<K, R> {
    pub(super) fn of(all: Arc<InProgress<K, R>>, id: ProblemId<K>, number: u64) -> Self {
        End { all, id, number, outcome: Err(TaskError::Cancelled.into()) }
    }
}

impl<K: TableKey, R: TableValue> Drop for End<K, R> {
    fn drop(&mut self) {
        let cancelled = Err(TaskError::Cancelled.into());
        self.all.end(&self.id, self.number, std::mem::replace(&mut self.outcome, cancelled));
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
        let mut state = self.solve.state();
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
            let mut state = self.solve.state();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::job_of_two;

    type All = InProgress<u32, u64>;

    const ID: ProblemId<u32> = (0, 7, false);

    /// Begins a solve that blocks its thread, and has this solution.
    fn begin(cx: &Context, solution: u64) -> Waiting<u32, u64> {
        let solve = async |cx: Context, (number, solution): (u64, u64)| {
            let mut end = End::of(cx.pe_local::<All>(), ID, number);
            std::thread::sleep(Duration::from_millis(50));
            cx.yield_now().await;
            end.outcome = Ok(solution);
        };
        let begin = |number| cx.spawn_at(cx.pe(), solve, (number, solution));
        cx.pe_local::<All>().wait_for(cx.clone(), ID, Arc::new(()), begin)
    }

    #[test]
    fn the_late_end_of_a_solve_that_was_cancelled_does_not_end_the_next() {
        job_of_two(async |cx| {
            let first = begin(&cx, 1);
            // It is in the middle.
            cx.sleep(Duration::from_millis(10)).await;
            let solve = first.solve.clone();
            drop(first);
            solve.state().alone_since = Instant::now().checked_sub(2 * GRACE);
            drop(solve);
            cx.pe_local::<All>().cancel_unwanted();
            assert_eq!(begin(&cx, 2).await, Ok(2));
            assert_eq!(cx.pe_local::<All>().len(), 0);
        });
    }
}
