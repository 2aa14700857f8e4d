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
//! That a problem is being solved is known where its key belongs, and only there: if that PE dies,
//! the tasks that wait for it are run again by their supervisors, and find the next PE. The table
//! has its own copies. So a death costs what was being solved there.

use super::conquer::{begin, conquer};
use super::division::{placed, stolen};
use super::{Algorithm, AlgorithmContext, Division};
use crate::parts::Parts;
use crate::table::{Table, TableError, TableKey, TableRef, TableValue};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use ultramarine_group::GroupId;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Placement, discard, panic_message};
use ultramarine_topology::{Distance, Pe};

/// What comes of looking a problem up.
type Memoised<R> = Result<R, TableError>;

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
    /// a death some are solved again.) It is divided and combined on the PE to which the key
    /// belongs, by its hash; parts without keys may be stolen from there. So give keys to problems
    /// that take far longer than two messages, some tens of microseconds; those with a key should
    /// be many times as many as PEs.
    ///
    /// If the table is [full](TableError::Full), further solutions are not kept.
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

/// Solves a problem on the PE to which its key belongs, unless it is in the table, or being solved.
fn look_up<A, W, K, F, X>(
    cx: Context,
    functions: (W, A, F),
    table: TableRef<K, A::Solution>,
    problem: A::Problem,
) -> BoxFuture<'static, Memoised<A::Solution>>
where
    A: Algorithm<X>,
    A::Solution: TableValue,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
    K: TableKey,
    F: Fn(&A::Problem) -> Option<K> + Stateless,
    X: AlgorithmContext,
{
    let (placement, algorithm, key_of) = functions;
    Box::pin(async move {
        let Some(key) = key_of(&problem) else {
            return Ok(conquer(&cx, placement, algorithm, problem).await?);
        };
        let open = table.on(&cx)?;
        if open.owner(&key) != cx.pe() {
            return look_up_there(&cx, functions, &open, &key, problem).await;
        }
        let under_way = cx.pe_local::<UnderWay<K, A::Solution>>();
        let solving = under_way.join((open.id(), key.clone()), || {
            // It goes on though the task that has begun it is cancelled, if others wait for it.
            let own = cx.independent();
            let cx = if cx.is_supervised() { own.supervised() } else { own };
            let pe = cx.pe();
            let solved = AssertUnwindSafe(solve(cx, functions, open, problem, key)).catch_unwind();
            // All that wait for it get the panic.
            solved.map(move |solved| solved.unwrap_or_else(|panic| Err(panicked(pe, panic))))
        });
        solving.await
    })
}

fn panicked(pe: Pe, panic: Box<dyn Any + Send>) -> TableError {
    let message = panic_message(panic.as_ref());
    discard(panic);
    TaskError::Panicked { pe, message }.into()
}

/// Has the PE look a problem up to which its key belongs.
fn look_up_there<A, W, K, F, X>(
    cx: &Context,
    functions: (W, A, F),
    table: &Table<K, A::Solution>,
    key: &K,
    problem: A::Problem,
) -> BoxFuture<'static, Memoised<A::Solution>>
where
    A: Algorithm<X>,
    A::Solution: TableValue,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
    K: TableKey,
    F: Fn(&A::Problem) -> Option<K> + Stateless,
    X: AlgorithmContext,
{
    let task = move |cx, (table, problem)| look_up(cx, functions, table, problem);
    let pe = table.owner(key);
    let solution = AbortOnDrop::new(cx.spawn_at(pe, task, (table.reference(), problem)));
    Box::pin(async { solution.await? })
}

/// A part of a problem.
enum Part<P, R> {
    Solved(R),
    /// It has a key, and may be in the table.
    Keyed(P),
    Awaited(BoxFuture<'static, Memoised<R>>),
}

/// Solves a problem that nobody solves yet.
async fn solve<A, W, K, F, X>(
    cx: Context,
    functions: (W, A, F),
    table: Table<K, A::Solution>,
    problem: A::Problem,
    key: K,
) -> Memoised<A::Solution>
where
    A: Algorithm<X>,
    A::Solution: TableValue,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
    K: TableKey,
    F: Fn(&A::Problem) -> Option<K> + Stateless,
    X: AlgorithmContext,
{
    let (placement, algorithm, key_of) = functions;
    if let Some(known) = table.get(key.clone()).await? {
        return Ok(known);
    }
    let solution = if algorithm.is_trivial(X::of(&cx), &problem) {
        algorithm.solve(X::of(&cx), problem)
    } else {
        let mut keys = Vec::new();
        let parts = algorithm.divide(X::of(&cx), &problem).map_each(|part| {
            if algorithm.is_trivial(X::of(&cx), &part) {
                return Part::Solved(algorithm.solve(X::of(&cx), part));
            }
            if let Some(key) = key_of(&part) {
                keys.push(key);
                return Part::Keyed(part);
            }
            let place = placement(&cx, &part);
            let solution = begin(&cx, place, placement, algorithm, part);
            Part::Awaited(Box::pin(async { Ok(solution.await?) }))
        });
        let known = table.get_all(keys.iter().cloned()).await?;
        let mut known = keys.iter().zip(known);
        let mut parts = A::Parts::map(parts, |part| match part {
            Part::Keyed(part) => match known.next() {
                Some((_, Some(solution))) => Part::Solved(solution),
                Some((key, None)) => {
                    Part::Awaited(look_up_there(&cx, functions, &table, key, part))
                }
                None => unreachable!("each of these parts has a key"),
            },
            part => part,
        });
        for part in parts.as_mut() {
            if let Part::Awaited(solution) = part {
                *part = Part::Solved(solution.as_mut().await?);
            }
        }
        let solutions = A::Parts::map(parts, |part| match part {
            Part::Solved(solution) => solution,
            _ => unreachable!("all solutions have been awaited"),
        });
        algorithm.combine(X::of(&cx), problem, solutions)
    };
    match table.insert_if_absent(key, solution.clone()).await {
        Ok(_) | Err(TableError::Full { .. }) => Ok(solution),
        Err(error) => Err(error),
    }
}

/// What is being solved on this PE, by tables and keys.
struct UnderWay<K, R>(Mutex<HashMap<(GroupId, K), WeakShared<Solving<R>>>>);

type Solving<R> = BoxFuture<'static, Memoised<R>>;

impl<K, R> Default for UnderWay<K, R> {
    fn default() -> Self {
        UnderWay(Mutex::default())
    }
}

impl<K: TableKey, R: TableValue> UnderWay<K, R> {
    /// Waits for what is under way, or begins it. Each that waits drives it on.
    fn join<S>(self: Arc<Self>, of: (GroupId, K), solve: impl FnOnce() -> S) -> Shared<Solving<R>>
    where
        S: Future<Output = Memoised<R>> + Send + 'static,
    {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(solving) = all.get(&of).and_then(WeakShared::upgrade) {
            return solving;
        }
        let (solve, done) = (solve(), Done(self.clone(), of.clone()));
        let solving = async move {
            let _done = done;
            solve.await
        };
        let solving = solving.boxed().shared();
        all.extend(solving.downgrade().map(|weak| (of, weak)));
        solving
    }
}

/// When it is dropped, what was under way is no more: it is solved, or nobody waits for it.
struct Done<K: TableKey, R>(Arc<UnderWay<K, R>>, (GroupId, K));

impl<K: TableKey, R> Drop for Done<K, R> {
    fn drop(&mut self) {
        let Done(under_way, of) = self;
        let removed = under_way.0.lock().unwrap_or_else(PoisonError::into_inner).remove(of);
        drop(removed);
    }
}
