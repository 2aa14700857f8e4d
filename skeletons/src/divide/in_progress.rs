//! What is being solved on a PE, so that it is solved once, however many ask for it.
//!
//! A solve is a task of its own. If the last that waits for it leaves, it is cancelled, and so are
//! those that only it waits for. But for [`GRACE`] after this PE has heard of a death it goes on:
//! most often those that waited have died, and their supervisors ask again.
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

/// For how long after a death solves go on that no task waits for.
const GRACE: Duration = Duration::from_secs(2);

/// What comes of a problem.
pub(super) type Outcome<R> = Result<R, TableError>;

/// A problem: the place of its table on this PE, its key, and whether its parts are supervised.
pub(super) type ProblemId<K> = (usize, K, bool);

/// The solves of this PE.
pub(super) struct InProgress<K, R> {
    solves: Mutex<Solves<K, R>>,
    deaths: Mutex<Deaths>,
}

type Solves<K, R> = HashMap<ProblemId<K>, Arc<Solve<R>>>;

/// The number of PEs of whose death this one has heard, and when it has heard of the last.
#[derive(Default)]
struct Deaths(u32, Option<Instant>);

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
    /// Until when it goes on, if no task waits.
    alone_until: Option<Instant>,
    /// It is cancelled when this is dropped.
    task: Option<AbortOnDrop<TaskFuture<()>>>,
    /// As long as this lives, no other table has its place.
    #[expect(dead_code, reason = "it is there to be kept")]
    table: Arc<dyn Any + Send + Sync>,
}

impl<K, R> Default for InProgress<K, R> {
    fn default() -> Self {
        InProgress { solves: Mutex::default(), deaths: Mutex::default() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: TableKey, R: TableValue> InProgress<K, R> {
    /// The number of problems that are being solved.
    pub(super) fn len(&self) -> usize {
        locked(&self.solves).len()
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
        self.go_on_until(&cx);
        let mut is_new = false;
        let mut all = locked(&self.solves);
        let solve = all.entry(id).or_insert_with(|| {
            is_new = true;
            let (outcome, waiting, wakers, alone_until, task) = (None, 0, Vec::new(), None, None);
            let state = State { outcome, waiting, wakers, alone_until, task, table };
            Arc::new(Solve { number: NEXT.fetch_add(1, Relaxed), state: Mutex::new(state) })
        });
        let solve = solve.clone();
        {
            let mut state = solve.state();
            (state.waiting, state.alone_until) = (state.waiting + 1, None);
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
            let mut all = locked(&self.solves);
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

    /// Until when a solve goes on that no task waits for from now on.
    fn go_on_until(&self, cx: &Context) -> Instant {
        let (dead, now) = (cx.dead(), Instant::now());
        let mut deaths = locked(&self.deaths);
        if deaths.0 < dead {
            *deaths = Deaths(dead, Some(now));
        }
        deaths.1.map_or(now, |heard| now.max(heard + GRACE))
    }

    /// Cancels the solves that no task waits for, and that do not go on.
    fn cancel_unwanted(&self) {
        let now = Instant::now();
        let is_unwanted = |solve: &Solve<R>| {
            let state = solve.state();
            let is_unwanted = state.alone_until.is_some_and(|until| until <= now);
            debug_assert!(!is_unwanted || state.waiting == 0, "a task waits for it");
            is_unwanted
        };
        let unwanted =
            locked(&self.solves).extract_if(|_, solve| is_unwanted(solve)).collect::<Vec<_>>();
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
        let alone_until = {
            // No task joins meanwhile.
            let _all = locked(&self.all.solves);
            let mut state = self.solve.state();
            state.waiting -= 1;
            let is_unwanted = state.waiting == 0 && state.outcome.is_none();
            state.alone_until = is_unwanted.then(|| self.all.go_on_until(&self.cx));
            state.alone_until
        };
        if let Some(until) = alone_until {
            let cancel_unwanted = async |cx: Context, after: Duration| {
                cx.sleep(after).await;
                cx.pe_local::<InProgress<K, R>>().cancel_unwanted();
            };
            let after = until.saturating_duration_since(Instant::now());
            // A task that is spawned here would be cancelled with the one that drops this.
            drop(self.cx.tell(self.cx.pe(), cancel_unwanted, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divide::{DivideAndConquer, divide_and_conquer};
    use crate::table::{job_of_two, table};
    use std::sync::atomic::AtomicBool;
    use ultramarine_topology::{Distance, Pe};

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
            solve.state().alone_until = Some(Instant::now());
            drop(solve);
            cx.pe_local::<All>().cancel_unwanted();
            assert_eq!(begin(&cx, 2).await, Ok(2));
            assert_eq!(cx.pe_local::<All>().len(), 0);
        });
    }

    static IS_AT_THE_END: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(false);

    /// Each problem waits for the next. A while for each would take longer than the test may.
    #[test]
    fn a_run_that_is_dropped_ends_at_once_however_deep_it_is() {
        job_of_two(async |cx| {
            let wait = |_| {
                IS_AT_THE_END.store(true, Relaxed);
                while !MAY_END.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                0
            };
            let chain = DivideAndConquer::new(
                |n: &u64| *n == 0,
                wait,
                |n| [n - 1],
                |_, [below]: [u64; 1]| below + 1,
            );
            let known = table(&cx, "chain").open().unwrap();
            let problem = divide_and_conquer(|_: &u64| Distance::ONE, chain, 200);
            let run = problem.memo(&known, |n| Some(*n)).run(&cx);
            let is_at_the_end = async {
                while !IS_AT_THE_END.load(Relaxed) {
                    cx.sleep(Duration::from_millis(1)).await;
                }
            };
            futures_util::future::select(Box::pin(run), Box::pin(is_at_the_end)).await;
            let in_progress = async |cx: Context, ()| cx.pe_local::<InProgress<u64, u64>>().len();
            for pe in [0, 1].map(Pe::new) {
                while cx.spawn_at(pe, in_progress, ()).await.unwrap() > 0 {
                    cx.sleep(Duration::from_millis(1)).await;
                }
            }
            MAY_END.store(true, Relaxed);
        });
    }
}
