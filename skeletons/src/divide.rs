//! Divide and conquer (SymGridPar2 §4.4, figure 9; HdpH-RS §6.1.2 and A.9).
//!
//! An algorithm is four functions, [`DivideAndConquer`]; which skeleton runs it decides who does
//! what:
//!
//! ```text
//!  fork: this PE's threads       par: whoever is free             push: dealt out at once
//!
//!          ●  PE 0                       ●  PE 0                         ●  PE 0
//!        ╱   ╲                         ╱   ╲                           ╱   ╲
//!       ●     ●  PE 0's           PE 0 ●     ○ ┈→ stolen, PE 5    PE 3 ●     ● PE 6   within the part's radius
//!      ╱ ╲   ╱ ╲ threads            ╱ ╲   ╱ ╲                        ╱ ╲   ╱ ╲
//!     ●   ● ●   ●                  ●   ● ●   ●  PE 5                ●   ● ●   ●       near their parents
//! ```
//!
//! Whoever divides a problem supervises its parts. So what a death costs depends on how far the
//! parts have gone: work stealing moves few large ones, and what is placed should stay near its
//! parent as the problems become small (HdpH-RS §6.5.3: placing all of them at random made 40,696
//! replicas out of 65,234 tasks). That is what the problem's *radius* is for.

use crate::parts::Parts;
use std::future::ready;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Fork, Portable, Spawner};
use ultramarine_topology::{Distance, Pe};

/// An algorithm that solves a problem by solving parts of it.
///
/// All four functions must capture nothing; what they need is in the problem.
#[derive(Debug)]
pub struct DivideAndConquer<P, R, C, T, S, D, J> {
    is_trivial: T,
    solve: S,
    divide: D,
    combine: J,
    types: PhantomData<fn(P) -> (R, C)>,
}

impl<P, R, C, T: Copy, S: Copy, D: Copy, J: Copy> Clone for DivideAndConquer<P, R, C, T, S, D, J> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P, R, C, T: Copy, S: Copy, D: Copy, J: Copy> Copy for DivideAndConquer<P, R, C, T, S, D, J> {}

impl<P, R, C, T, S, D, J> DivideAndConquer<P, R, C, T, S, D, J>
where
    R: Send,
    C: Parts<Item = P>,
    T: Fn(&P) -> bool,
    S: Fn(P) -> R,
    D: Fn(&P) -> C,
    J: Fn(P, C::With<R>) -> R,
{
    /// Whether a problem is better solved as it is; how; else how to divide it, and how to combine
    /// the parts' solutions, which come in the order of the parts.
    ///
    /// Parts are an array (then dividing allocates nothing) or a vector. Every problem must become
    /// trivial sooner or later; how deep the division goes is limited by the stack of a thread, and
    /// thousands are fine.
    ///
    /// ```
    /// use ultramarine_skeletons::{DivideAndConquer, fork_divide_and_conquer};
    /// let fibonacci = DivideAndConquer::new(
    ///     |n: &u64| *n < 2,
    ///     |n| n,
    ///     |n| [n - 1, n - 2],
    ///     |_, [one_less, two_less]| one_less + two_less,
    /// );
    /// assert_eq!(fork_divide_and_conquer(fibonacci, 20), 6765);
    /// ```
    pub fn new(is_trivial: T, solve: S, divide: D, combine: J) -> Self {
        DivideAndConquer { is_trivial, solve, divide, combine, types: PhantomData }
    }
}

/// What the skeletons know of an algorithm: [`DivideAndConquer`], with its types by name.
pub trait Algorithm: Stateless {
    /// What is to be solved.
    type Problem: Portable;
    /// What comes out.
    type Solution: Portable;
    /// The parts of a problem.
    type Parts: Parts<Item = Self::Problem>;

    /// Whether the problem is to be solved as it is.
    fn is_trivial(&self, problem: &Self::Problem) -> bool;
    /// Solves a trivial problem.
    fn solve(&self, problem: Self::Problem) -> Self::Solution;
    /// The parts of any other.
    fn divide(&self, problem: &Self::Problem) -> Self::Parts;
    /// Makes a solution of the parts' solutions.
    fn combine(
        &self,
        problem: Self::Problem,
        solutions: <Self::Parts as Parts>::With<Self::Solution>,
    ) -> Self::Solution;
}

impl<P, R, C, T, S, D, J> Algorithm for DivideAndConquer<P, R, C, T, S, D, J>
where
    P: Portable,
    R: Portable,
    C: Parts<Item = P> + 'static,
    T: Fn(&P) -> bool + Stateless,
    S: Fn(P) -> R + Stateless,
    D: Fn(&P) -> C + Stateless,
    J: Fn(P, C::With<R>) -> R + Stateless,
{
    type Problem = P;
    type Solution = R;
    type Parts = C;

    fn is_trivial(&self, problem: &P) -> bool {
        (self.is_trivial)(problem)
    }

    fn solve(&self, problem: P) -> R {
        (self.solve)(problem)
    }

    fn divide(&self, problem: &P) -> C {
        (self.divide)(problem)
    }

    fn combine(&self, problem: P, solutions: C::With<R>) -> R {
        (self.combine)(problem, solutions)
    }
}

/// Divides and conquers on the threads of this PE, with `rayon::join`.
pub fn fork_divide_and_conquer<A: Algorithm>(algorithm: A, problem: A::Problem) -> A::Solution {
    if algorithm.is_trivial(&problem) {
        return algorithm.solve(problem);
    }
    let parts = algorithm.divide(&problem);
    let solutions = parts.join_each(&|part| fork_divide_and_conquer(algorithm, part));
    algorithm.combine(problem, solutions)
}

/// Divides and conquers wherever a PE is free: each part but the first waits to be stolen, by PEs
/// within the radius of that part, until its parent gets to it.
///
/// The radius says how far a problem is worth sending: of large ones [`Distance::ONE`], of ones that
/// take less time than a message [`Distance::ZERO`] (SymGridPar2 figure 9). A problem that nobody
/// steals costs little more than a call, so that no threshold is needed for the sake of the
/// dividing itself.
///
/// ```
/// use ultramarine_runtime::{error::TaskError, executor::Context};
/// use ultramarine_skeletons::{DivideAndConquer, par_divide_and_conquer};
/// use ultramarine_topology::Distance;
///
/// async fn fibonacci(cx: &Context, n: u64) -> Result<u64, TaskError> {
///     let fibonacci = DivideAndConquer::new(
///         |n: &u64| *n < 2,
///         |n| n,
///         |n| [n - 1, n - 2],
///         |_, [one_less, two_less]| one_less + two_less,
///     );
///     let radius = |n: &u64| match n {
///         0..12 => Distance::ZERO,
///         12..20 => Distance::ONE.half(),
///         _ => Distance::ONE,
///     };
///     par_divide_and_conquer(&cx.supervised(), radius, fibonacci, n).await
/// }
/// ```
///
/// # Errors
///
/// A part's task ended without a result.
pub async fn par_divide_and_conquer<S, A>(
    spawner: &S,
    radius: impl Fn(&A::Problem) -> Distance + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    S: Spawner,
    A: Algorithm,
{
    conquer(spawner, radius, algorithm, problem).into_future().await
}

/// Divides and conquers on PEs that are chosen at once: each part but the first is placed on a PE
/// drawn from those within the radius of that part around its parent. A part of radius
/// [`Distance::ZERO`] stays with its parent, where other threads may take it.
///
/// Nothing is stolen. So the radius decides how evenly the work is spread, and how much a death
/// costs: [`Distance::ONE`] for the few first levels, [`Distance::ZERO`] below.
///
/// # Errors
///
/// A part's task ended without a result.
pub async fn push_divide_and_conquer<S, A>(
    spawner: &S,
    radius: impl Fn(&A::Problem) -> Distance + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    S: Spawner,
    A: Algorithm,
{
    let placing = Placing {
        stays: move |problem: &A::Problem| radius(problem) == Distance::ZERO,
        whither: move |cx: &Context, part: &A::Problem| cx.random_within(radius(part)),
    };
    place(spawner, placing, algorithm, problem).into_future().await
}

pub(crate) type Ending<R> = Pin<Box<dyn Future<Output = Result<R, TaskError>> + Send>>;

/// A solution, or how to wait for it.
pub(crate) enum Solved<R> {
    Now(R),
    Later(Ending<R>),
}

impl<R: Portable> Solved<R> {
    pub(crate) fn into_future(self) -> Ending<R> {
        match self {
            Solved::Now(solution) => Box::pin(ready(Ok(solution))),
            Solved::Later(ending) => ending,
        }
    }
}

/// What has become of a part.
enum Branch<'pe, P, R> {
    /// It is this task's to solve.
    Own(P),
    /// It waits for a thief.
    Forked(Fork<'pe, P, Result<R, TaskError>>),
    Solved(Solved<R>),
    /// Somebody is just looking after it.
    Taken,
}

impl<P, R: Portable> Branch<'_, P, R> {
    /// Sees to it that the part is solved sooner or later.
    fn settle(&mut self, solve: impl FnOnce(P) -> Solved<R>) {
        *self = Branch::Solved(match mem::replace(self, Branch::Taken) {
            Branch::Own(part) => solve(part),
            Branch::Forked(fork) => match fork.take_back() {
                Ok(part) => solve(part),
                Err(stolen) => Solved::Later(Box::pin(async { stolen.await? })),
            },
            Branch::Solved(solved) => solved,
            Branch::Taken => unreachable!("it is put back at once"),
        });
    }

    fn solved(self) -> Solved<R> {
        match self {
            Branch::Solved(solved) => solved,
            _ => unreachable!("all branches have been settled"),
        }
    }
}

/// Solves a problem as this task's own, except for the parts that others steal meanwhile. Only if
/// there are any does anything have to be awaited.
fn conquer<S, A, F>(
    spawner: &S,
    radius: F,
    algorithm: A,
    problem: A::Problem,
) -> Solved<A::Solution>
where
    S: Spawner,
    A: Algorithm,
    F: Fn(&A::Problem) -> Distance + Stateless,
{
    if algorithm.is_trivial(&problem) {
        return Solved::Now(algorithm.solve(problem));
    }
    let is_only_worker = spawner.context().threads() == 1;
    let mut is_first = true;
    let mut branches = algorithm.divide(&problem).map_each(|part| {
        let radius_of_part = radius(&part);
        if mem::take(&mut is_first) || is_only_worker && radius_of_part == Distance::ZERO {
            return Branch::Own(part);
        }
        let task = move |cx, part| conquer(&S::on(cx), radius, algorithm, part).into_future();
        Branch::Forked(spawner.fork(radius_of_part, task, part))
    });
    let solve = |part| conquer(spawner, radius, algorithm, part);
    if let Some((first, others)) = branches.as_mut().split_first_mut() {
        first.settle(solve);
        // The youngest first: the oldest is the likeliest to be stolen.
        others.iter_mut().rev().for_each(|branch| branch.settle(solve));
    }
    combine::<A>(algorithm, problem, A::Parts::turn(branches, Branch::solved))
}

/// Where problems go.
#[derive(Clone, Copy)]
pub(crate) struct Placing<T, W> {
    /// Whether all parts of a problem stay where it is.
    pub(crate) stays: T,
    /// Else, where one goes.
    pub(crate) whither: W,
}

/// Places a problem's parts but the first, and theirs in turn.
pub(crate) fn place<S, A, T, W>(
    spawner: &S,
    placing: Placing<T, W>,
    algorithm: A,
    problem: A::Problem,
) -> Solved<A::Solution>
where
    S: Spawner,
    A: Algorithm,
    T: Fn(&A::Problem) -> bool + Stateless,
    W: Fn(&Context, &A::Problem) -> Pe + Stateless,
{
    if algorithm.is_trivial(&problem) || (placing.stays)(&problem) {
        return conquer(spawner, |_| Distance::ZERO, algorithm, problem);
    }
    let cx = spawner.context();
    let mut is_first = true;
    let mut branches = algorithm.divide(&problem).map_each(|part| {
        let pe = (placing.whither)(cx, &part);
        if mem::take(&mut is_first) || pe == cx.pe() {
            return Branch::Own(part);
        }
        let task = move |cx, part| place(&S::on(cx), placing, algorithm, part).into_future();
        let placed = spawner.spawn_at(pe, task, part);
        Branch::Solved(Solved::Later(Box::pin(async { placed.await? })))
    });
    // Now that the others are on their way.
    branches.as_mut().iter_mut().for_each(|branch| {
        branch.settle(|part| place(spawner, placing, algorithm, part));
    });
    combine::<A>(algorithm, problem, A::Parts::turn(branches, Branch::solved))
}

/// Combines the solutions, at once if they are all there.
fn combine<A: Algorithm>(
    algorithm: A,
    problem: A::Problem,
    mut parts: <A::Parts as Parts>::With<Solved<A::Solution>>,
) -> Solved<A::Solution> {
    let now = |part: Solved<_>| match part {
        Solved::Now(solution) => solution,
        Solved::Later(_) => unreachable!("all solutions are there"),
    };
    if parts.as_mut().iter().all(|part| matches!(part, Solved::Now(_))) {
        return Solved::Now(algorithm.combine(problem, A::Parts::turn(parts, now)));
    }
    Solved::Later(Box::pin(async move {
        for part in parts.as_mut() {
            if let Solved::Later(ending) = part {
                *part = Solved::Now(ending.as_mut().await?);
            }
        }
        Ok(algorithm.combine(problem, A::Parts::turn(parts, now)))
    }))
}
