//! Divide and conquer with a memo: a table of solutions, in which problems are looked up before
//! they are solved.
//!
//! ```text
//!        ●  has a key: it is solved on the PE to which the key belongs, by one task at a time;
//!      ╱   ╲  all others wait for that one
//!     ●     ●
//!    ╱ ╲   ╱ ╲
//!   ○   ○ ◆   ○    ○ has no key: any PE steals it, with all that is below
//!                  ◆ is in the table already
//! ```
//!
//! That a problem is being solved is known where its key belongs, and only there. If that PE dies,
//! the tasks that wait for it are run again by their supervisors, and find the next PE. What others
//! solve for a PE that has died goes on for a while, until they are asked again. The table has its
//! own copies.
//!
//! (Memo functions: Michie, *"Memo" functions and machine learning*, 1968.) A memo must never know
//! what a problem is.

use super::conquer::{begin, conquer};
use super::division::{placed, stolen};
use super::in_progress::{End, InProgress, Outcome};
use super::{Algorithm, AlgorithmContext, Division};
use crate::parts::Parts;
use crate::table::{Table, TableError, TableKey, TableRef, TableValue};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{
    AbortOnDrop, Context, Placement, Portable, discard, panic_message,
};
use ultramarine_topology::{Distance, Pe};

/// How often a problem is asked for again without supervision if its owner dies, and how soon.
const LOSSES_MAX: u32 = 4;
const AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A PE that solves this number of problems with keys asks for further ones one after another.
const IN_PROGRESS_MAX: usize = 1000;

/// A divide and conquer with a memo, which has not started: made by [`Division::memo`].
#[must_use = "a problem is not solved until it is run"]
pub struct MemoisedDivision<A: Algorithm<X>, W, K, F, X: AlgorithmContext = ()> {
    division: Division<A, W, X>,
    table: TableRef<K, A::Solution>,
    key: F,
}

impl<A: Algorithm<X>, W, K, F, X: AlgorithmContext> std::fmt::Debug
    for MemoisedDivision<A, W, K, F, X>
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoisedDivision").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<A, W, X> Division<A, W, X>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    /// Looks problems up in a table before they are solved, and puts their solutions there. `key`
    /// gives a problem's key. A problem without one is solved without the table, with all parts of
    /// its parts. Two problems with the same key must have the same solution.
    ///
    /// Each problem with a key is solved once, however many ask for it on however many PEs. (After
    /// a death some are solved again, and if some that ask are supervised and others are not.) It
    /// is divided and combined on the PE to which the key belongs, by its hash; parts without keys
    /// may be stolen from there. So give keys to problems that take far longer than two messages,
    /// some tens of microseconds; those with a key should be many times as many as PEs.
    ///
    /// If the table is [full](TableError::Full), further solutions are not kept, and solved again
    /// each time. A problem that is a part of itself waits for itself for ever. If the run is
    /// dropped, what it has begun is cancelled (after a death some seconds later).
    ///
    /// ```
    /// use ultramarine::prelude::*;
    /// use ultramarine::skeletons::table::{TableError, table};
    ///
    /// /// The number of ways to cut a stick into pieces of 1, 2 and 3.
    /// async fn ways(cx: &Context, length: u64) -> Result<u64, TableError> {
    ///     let ways = DivideAndConquer::new(
    ///         |n: &u64| *n < 3,
    ///         |n| n.max(1),
    ///         |n| [n - 1, n - 2, n - 3],
    ///         |_, [one, two, three]| one + two + three,
    ///     );
    ///     let known = table(cx, "ways").open()?;
    ///     let problem = divide_and_conquer(|_: &u64| Distance::ONE, ways, length);
    ///     problem.memo(&known, |n| Some(*n)).run(&cx.supervised()).await
    /// }
    /// ```
    pub fn memo<K, F>(
        self,
        table: &Table<K, A::Solution>,
        key: F,
    ) -> MemoisedDivision<A, W, K, F, X>
    where
        A::Problem: Clone,
        A::Solution: TableValue,
        K: TableKey,
        F: Fn(&A::Problem) -> Option<K> + Stateless,
    {
        const { F::CHECKED };
        MemoisedDivision { division: self, table: table.reference(), key }
    }
}

impl<A, W, K, F, X> MemoisedDivision<A, W, K, F, X>
where
    A: Algorithm<X>,
    A::Problem: Clone,
    A::Solution: TableValue,
    W: Fn(&A::Problem) -> Distance + Stateless,
    K: TableKey,
    F: Fn(&A::Problem) -> Option<K> + Stateless,
    X: AlgorithmContext,
{
    /// Solves the problem.
    ///
    /// # Errors
    ///
    /// The task of a part ended without a result, or any error of the table but that it is full.
    pub async fn run(self, cx: &Context) -> Result<A::Solution, TableError> {
        let MemoisedDivision { division, table, key } = self;
        let Division { radius, algorithm, problem, is_pushed } = division;
        if is_pushed {
            look_up(cx.clone(), (placed(radius), algorithm, key), table, problem).await
        } else {
            look_up(cx.clone(), (stolen(radius), algorithm, key), table, problem).await
        }
    }
}

/// The functions of a run: where parts without keys are solved, an algorithm, and which problems
/// have keys.
trait Functions<X: AlgorithmContext>: Stateless {
    type Problem: Portable + Clone;
    type Solution: TableValue;
    type Key: TableKey;
    type Algorithm: Algorithm<X, Problem = Self::Problem, Solution = Self::Solution>;

    fn algorithm(self) -> Self::Algorithm;

    fn placement(self) -> impl Fn(&Context, &Self::Problem) -> Placement + Stateless;

    fn key_of(self, problem: &Self::Problem) -> Option<Self::Key>;
}

impl<W, A, F, K, X> Functions<X> for (W, A, F)
where
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
    A: Algorithm<X, Problem: Clone, Solution: TableValue>,
    F: Fn(&A::Problem) -> Option<K> + Stateless,
    K: TableKey,
    X: AlgorithmContext,
{
    type Problem = A::Problem;
    type Solution = A::Solution;
    type Key = K;
    type Algorithm = A;

    fn algorithm(self) -> A {
        self.1
    }

    fn placement(self) -> impl Fn(&Context, &A::Problem) -> Placement + Stateless {
        self.0
    }

    fn key_of(self, problem: &A::Problem) -> Option<K> {
        (self.2)(problem)
    }
}

/// Solves a problem on the PE to which its key belongs, unless it is in the table, or being solved.
fn look_up<M: Functions<X>, X: AlgorithmContext>(
    cx: Context,
    functions: M,
    table: TableRef<M::Key, M::Solution>,
    problem: M::Problem,
) -> BoxFuture<'static, Outcome<M::Solution>> {
    Box::pin(async move {
        let Some(key) = functions.key_of(&problem) else {
            let (placement, algorithm) = (functions.placement(), functions.algorithm());
            return Ok(conquer(&cx, placement, algorithm, problem).await?);
        };
        let open = table.on(&cx)?;
        if open.owner(&key) != cx.pe() {
            return look_up_at_owner(&cx, functions, &open, key, problem).await;
        }
        let entries = open.entries()?;
        let (place, is_supervised) = (Arc::as_ptr(&entries).addr(), cx.is_supervised());
        // It goes on though the task that has begun it is cancelled, if others wait for it.
        let own = cx.independent();
        let begin = |number| {
            let task = move |cx: Context, (solve, table, problem)| {
                solve_as_task(cx, functions, solve, table, problem)
            };
            own.spawn_at(own.pe(), task, ((place, is_supervised, number), table, problem))
        };
        let all = cx.pe_local::<InProgress<M::Key, M::Solution>>();
        all.wait_for(cx.clone(), (place, key, is_supervised), entries, begin).await
    })
}

/// Solves a problem, and tells all that wait for it.
fn solve_as_task<M: Functions<X>, X: AlgorithmContext>(
    cx: Context,
    functions: M,
    (place, is_supervised, number): (usize, bool, u64),
    table: TableRef<M::Key, M::Solution>,
    problem: M::Problem,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(key) = functions.key_of(&problem) else {
            unreachable!("a problem without a key is solved without the table")
        };
        let all = cx.pe_local::<InProgress<M::Key, M::Solution>>();
        let mut end = End::of(all, (place, key.clone(), is_supervised), number);
        let cx = if is_supervised { cx.supervised() } else { cx };
        let pe = cx.pe();
        let solved = AssertUnwindSafe(solve(cx, functions, table, problem, key)).catch_unwind();
        end.outcome = solved.await.unwrap_or_else(|panic| Err(panicked(pe, panic)));
    })
}

fn panicked(pe: Pe, panic: Box<dyn Any + Send>) -> TableError {
    let message = panic_message(panic.as_ref());
    discard(panic);
    TaskError::Panicked { pe, message }.into()
}

/// Has the PE look a problem up to which its key belongs; at once, and not when it is awaited.
///
/// Such a task does next to nothing. If it is lost it is not what killed its PE, so supervision,
/// which lets only one suspect run at a time, does not see it the first times.
fn look_up_at_owner<M: Functions<X>, X: AlgorithmContext>(
    cx: &Context,
    functions: M,
    table: &Table<M::Key, M::Solution>,
    key: M::Key,
    problem: M::Problem,
) -> BoxFuture<'static, Outcome<M::Solution>> {
    let (own, is_supervised) = (cx.unsupervised(), cx.is_supervised());
    let task = move |cx: Context, (table, problem, is_supervised): (_, _, bool)| {
        let cx = if is_supervised { cx.supervised() } else { cx };
        look_up(cx, functions, table, problem)
    };
    let argument = (table.reference(), problem.clone(), is_supervised);
    let asked = own.spawn_at(table.owner(&key), task, argument);
    let (cx, table, mut asked) = (cx.clone(), table.reference(), AbortOnDrop::new(asked));
    Box::pin(async move {
        for losses in 1..=LOSSES_MAX {
            match asked.await {
                Err(TaskError::Lost { .. }) if is_supervised => {}
                outcome => return outcome?,
            }
            // This PE's part of the table may hear of the death a little later.
            cx.sleep(AGAIN_AFTER).await;
            let pe = table.on(&cx)?.owner(&key);
            let spawner = if losses < LOSSES_MAX { &own } else { &cx };
            let argument = (table.clone(), problem.clone(), is_supervised);
            asked = AbortOnDrop::new(spawner.spawn_at(pe, task, argument));
        }
        asked.await?
    })
}

/// The solution of a part, or how to come by it.
enum PartSolution<K, P, R> {
    Solved(R),
    /// It may be in the table.
    Keyed(Option<(K, P)>),
    Awaited(BoxFuture<'static, Outcome<R>>),
}

/// Solves a problem that no task solves yet.
async fn solve<M: Functions<X>, X: AlgorithmContext>(
    cx: Context,
    functions: M,
    table: TableRef<M::Key, M::Solution>,
    problem: M::Problem,
    key: M::Key,
) -> Outcome<M::Solution> {
    let algorithm = functions.algorithm();
    let table = table.on(&cx)?;
    if let Some(known) = table.get(key.clone()).await? {
        return Ok(known);
    }
    let solution = if algorithm.is_trivial(X::of(&cx), &problem) {
        algorithm.solve(X::of(&cx), problem)
    } else {
        let mut parts = algorithm.divide(X::of(&cx), &problem).map_each(|part| {
            if algorithm.is_trivial(X::of(&cx), &part) {
                return PartSolution::Solved(algorithm.solve(X::of(&cx), part));
            }
            if let Some(key) = functions.key_of(&part) {
                return PartSolution::Keyed(Some((key, part)));
            }
            let placement = functions.placement();
            let solution = begin(&cx, placement(&cx, &part), placement, algorithm, part);
            PartSolution::Awaited(Box::pin(async { Ok(solution.await?) }))
        });
        let keys = parts.as_mut().iter().filter_map(|part| match part {
            PartSolution::Keyed(Some((key, _))) => Some(key.clone()),
            _ => None,
        });
        let keys: Vec<_> = keys.collect();
        let mut known = table.get_all(keys).await?.into_iter();
        // One after the other, or all problems would be tasks before the first is solved.
        let are_many = cx.pe_local::<InProgress<M::Key, M::Solution>>().len() >= IN_PROGRESS_MAX;
        for part in parts.as_mut() {
            let PartSolution::Keyed(keyed) = part else { continue };
            *part = match (known.next().flatten(), keyed.take()) {
                (None, Some((key, problem))) => {
                    let solution = look_up_at_owner(&cx, functions, &table, key, problem);
                    if are_many {
                        PartSolution::Solved(solution.await?)
                    } else {
                        PartSolution::Awaited(solution)
                    }
                }
                (Some(solution), _) => PartSolution::Solved(solution),
                (None, None) => unreachable!("each of these parts is looked at once"),
            };
        }
        for part in parts.as_mut() {
            if let PartSolution::Awaited(solution) = part {
                *part = PartSolution::Solved(solution.as_mut().await?);
            }
        }
        let solutions = <M::Algorithm as Algorithm<X>>::Parts::map(parts, |part| match part {
            PartSolution::Solved(solution) => solution,
            _ => unreachable!("all solutions have been awaited"),
        });
        algorithm.combine(X::of(&cx), problem, solutions)
    };
    match table.insert_if_absent(key, solution.clone()).await {
        Ok(_) | Err(TableError::Full { .. }) => Ok(solution),
        Err(error) => Err(error),
    }
}
