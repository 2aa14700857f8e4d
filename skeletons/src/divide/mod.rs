//! Divide and conquer (SymGridPar2 §4.4, figure 9; HdpH-RS §6.1.2 and A.9).
//!
//! An algorithm is four functions, [`DivideAndConquer`]; which skeleton runs it decides who does
//! what:
//!
//! ```text
//!  fork: this PE's threads       par: any free PE                 push: dealt out within a radius
//!
//!          ●  PE 0                       ●  PE 0                         ●  PE 0
//!        ╱   ╲                         ╱   ╲                           ╱   ╲
//!       ●     ●  PE 0's           PE 0 ●     ○ ┈→ stolen, PE 5    PE 3 ●     ● PE 6
//!      ╱ ╲   ╱ ╲ threads            ╱ ╲   ╱ ╲                        ╱ ╲   ╱ ╲
//!     ●   ● ●   ●                  ●   ● ●   ●  PE 5                ●   ● ●   ●
//! ```
//!
//! The PE that divides a problem supervises its parts. So what a death costs depends on how far the
//! parts have gone: work stealing moves few large ones, and what is placed should stay near its
//! parent as the problems become small (HdpH-RS §6.5.3: placing all of them at random made 40,696
//! replicas out of 65,234 tasks). That is what the problem's *radius* is for.

mod backlog;
mod conquer;

pub(crate) use conquer::{conquer, place_on};

use crate::parts::Parts;
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Placement, Portable};
use ultramarine_topology::Distance;

/// An algorithm that solves a problem by solving parts of it.
///
/// All four functions must capture nothing; what they need is in the problem. What all parts need
/// goes there as a [`Shared`](ultramarine_runtime::executor::Shared): each part has the handle, and
/// each process gets the value once.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// A table, and the part of it to be summed up.
/// type Part = (Shared<Vec<u64>>, usize, usize);
///
/// async fn sum(cx: &Context, table: Vec<u64>) -> Result<u64, TaskError> {
///     let sum = DivideAndConquer::new(
///         |(_, begin, end): &Part| end - begin < 1000,
///         |(table, begin, end)| table[begin..end].iter().sum::<u64>(),
///         |(table, begin, end)| {
///             let (begin, end) = (*begin, *end);
///             let middle = begin.midpoint(end);
///             [(table.clone(), begin, middle), (table.clone(), middle, end)]
///         },
///         |_, [left, right]| left + right,
///     );
///     let all = table.len();
///     par_divide_and_conquer(cx, |_| Distance::ONE, sum, (cx.share(table), 0, all)).await
/// }
/// ```
#[derive(Debug)]
pub struct DivideAndConquer<P, R, C, T, S, D, J, X = ()> {
    is_trivial: T,
    solve: S,
    divide: D,
    combine: J,
    types: PhantomData<fn(P, X, C) -> R>,
}

impl<P, R, C, T: Copy, S: Copy, D: Copy, J: Copy, X> Clone
    for DivideAndConquer<P, R, C, T, S, D, J, X>
{
    fn clone(&self) -> Self {
        *self
    }
}
impl<P, R, C, T: Copy, S: Copy, D: Copy, J: Copy, X> Copy
    for DivideAndConquer<P, R, C, T, S, D, J, X>
{
}

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
    /// trivial sooner or later; how often it is divided is limited by memory alone, not by a
    /// thread's stack.
    ///
    /// ```
    /// use ultramarine::prelude::*;
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

impl<P, R, C, T, S, D, J> DivideAndConquer<P, R, C, T, S, D, J, Context>
where
    R: Send,
    C: Parts<Item = P>,
    T: Fn(&Context, &P) -> bool,
    S: Fn(&Context, P) -> R,
    D: Fn(&Context, &P) -> C,
    J: Fn(&Context, P, C::With<R>) -> R,
{
    /// [`new`](DivideAndConquer::new) with functions that also get the context of the task that
    /// calls them: to make a value once per process, to see whether they are
    /// [cancelled](Context::is_cancelled), or on which PE they are.
    ///
    /// ```
    /// use std::ops::Range;
    /// use ultramarine::Key;
    /// use ultramarine::prelude::*;
    ///
    /// /// How many numbers of a range are prime. Each process makes its table once.
    /// async fn primes(cx: &Context, all: Range<u64>) -> Result<usize, TaskError> {
    ///     let key = cx.new_key();
    ///     let primes = DivideAndConquer::with_context(
    ///         |_, (_, part): &(Key, Range<u64>)| part.end - part.start < 1000,
    ///         |cx, (key, part)| {
    ///             let small = cx.shared(key, || sieve(1 << 16));
    ///             part.filter(|n| small.iter().all(|p| n % p > 0)).count()
    ///         },
    ///         |_, (key, part)| {
    ///             let middle = part.start.midpoint(part.end);
    ///             [(*key, part.start..middle), (*key, middle..part.end)]
    ///         },
    ///         |_, _, [low, high]| low + high,
    ///     );
    ///     par_divide_and_conquer(cx, |_| Distance::ONE, primes, (key, all)).await
    /// }
    /// # fn sieve(end: u64) -> Vec<u64> {
    /// #     vec![2, end]
    /// # }
    /// ```
    pub fn with_context(is_trivial: T, solve: S, divide: D, combine: J) -> Self {
        DivideAndConquer { is_trivial, solve, divide, combine, types: PhantomData }
    }
}

/// What the skeletons know of an algorithm: [`DivideAndConquer`], with its types by name. `X` is
/// what its functions see of the task that calls them: the [`Context`], or nothing.
pub trait Algorithm<X: View = ()>: Stateless {
    /// What is to be solved.
    type Problem: Portable;
    /// What comes out.
    type Solution: Portable;
    /// The parts of a problem.
    type Parts: Parts<Item = Self::Problem>;

    /// Whether the problem is to be solved as it is.
    fn is_trivial(&self, cx: &X, problem: &Self::Problem) -> bool;
    /// Solves a trivial problem.
    fn solve(&self, cx: &X, problem: Self::Problem) -> Self::Solution;
    /// The parts of any other.
    fn divide(&self, cx: &X, problem: &Self::Problem) -> Self::Parts;
    /// Makes a solution of the parts' solutions.
    fn combine(
        &self,
        cx: &X,
        problem: Self::Problem,
        solutions: <Self::Parts as Parts>::With<Self::Solution>,
    ) -> Self::Solution;
}

/// What an [`Algorithm`]'s functions see of the task that calls them: the [`Context`], or nothing.
pub trait View: Clone + Send + Sync + 'static {
    /// What they see of this one.
    fn of(cx: &Context) -> &Self;
}

impl View for () {
    fn of(_: &Context) -> &() {
        &()
    }
}

impl View for Context {
    fn of(cx: &Context) -> &Context {
        cx
    }
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

    fn is_trivial(&self, (): &(), problem: &P) -> bool {
        (self.is_trivial)(problem)
    }

    fn solve(&self, (): &(), problem: P) -> R {
        (self.solve)(problem)
    }

    fn divide(&self, (): &(), problem: &P) -> C {
        (self.divide)(problem)
    }

    fn combine(&self, (): &(), problem: P, solutions: C::With<R>) -> R {
        (self.combine)(problem, solutions)
    }
}

impl<P, R, C, T, S, D, J> Algorithm<Context> for DivideAndConquer<P, R, C, T, S, D, J, Context>
where
    P: Portable,
    R: Portable,
    C: Parts<Item = P> + 'static,
    T: Fn(&Context, &P) -> bool + Stateless,
    S: Fn(&Context, P) -> R + Stateless,
    D: Fn(&Context, &P) -> C + Stateless,
    J: Fn(&Context, P, C::With<R>) -> R + Stateless,
{
    type Problem = P;
    type Solution = R;
    type Parts = C;

    fn is_trivial(&self, cx: &Context, problem: &P) -> bool {
        (self.is_trivial)(cx, problem)
    }

    fn solve(&self, cx: &Context, problem: P) -> R {
        (self.solve)(cx, problem)
    }

    fn divide(&self, cx: &Context, problem: &P) -> C {
        (self.divide)(cx, problem)
    }

    fn combine(&self, cx: &Context, problem: P, solutions: C::With<R>) -> R {
        (self.combine)(cx, problem, solutions)
    }
}

/// Divides and conquers on the threads of this PE, with `rayon::join`. The example at
/// [`DivideAndConquer::new`] runs it.
///
/// ```text
///             ●          thread 0
///           ╱   ╲
///          ●     ○       thread 0, or whichever thread of this PE is idle; no other PE
///         ╱ ╲   ╱ ╲
///        ●   ○ ●   ○
/// ```
///
/// It needs no job, so that its functions cannot have a context ([`DivideAndConquer::new`]).
///
/// # Panics
///
/// If one of the algorithm's functions panics: with what it says.
pub fn fork_divide_and_conquer<A: Algorithm>(algorithm: A, problem: A::Problem) -> A::Solution {
    fork(algorithm, problem, 0)
}

/// Looking at the stack takes 1 ns or so: it is done once for this many levels.
const LEVELS_BETWEEN_LOOKS: u32 = 16;

/// What must be left of the stack for these levels: 64 KiB for each. A thread of rayon's global
/// pool has 2 MiB.
const STACK_LEFT_BYTES_MIN: usize = 1 << 20;

/// The recursion goes on in pieces of memory of this size.
const STACK_PIECE_BYTES: usize = 16 << 20;

/// Solves a part of a part and so on, `level` times.
fn fork<A: Algorithm>(algorithm: A, problem: A::Problem, level: u32) -> A::Solution {
    if algorithm.is_trivial(&(), &problem) {
        return algorithm.solve(&(), problem);
    }
    let divide = move || {
        let parts = algorithm.divide(&(), &problem);
        let solutions = parts.join_each(&|part| fork(algorithm, part, level.wrapping_add(1)));
        algorithm.combine(&(), problem, solutions)
    };
    if level % LEVELS_BETWEEN_LOOKS == LEVELS_BETWEEN_LOOKS - 1 {
        stacker::maybe_grow(STACK_LEFT_BYTES_MIN, STACK_PIECE_BYTES, divide)
    } else {
        divide()
    }
}

/// Divides and conquers wherever a PE is free: each part but the first waits to be stolen, by PEs
/// within the radius of that part, until its parent gets to it.
///
/// The radius says how far a problem is worth sending: of large ones [`Distance::ONE`], of ones
/// that take less time than a message [`Distance::ZERO`] (SymGridPar2 figure 9). A problem that
/// nobody steals costs little more than a call, so that no threshold is needed for the sake of the
/// dividing itself.
///
/// ```
/// use ultramarine::prelude::*;
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
pub async fn par_divide_and_conquer<A, X>(
    cx: &Context,
    radius: impl Fn(&A::Problem) -> Distance + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    X: View,
{
    const { A::CHECKED };
    let placement = move |_: &Context, part: &A::Problem| Placement::Within(radius(part));
    conquer(cx, placement, algorithm, problem).await
}

/// Divides and conquers on PEs that are chosen at once: each part but the first is placed on a PE
/// drawn from those within the radius of that part around its parent. A part of radius
/// [`Distance::ZERO`] stays with its parent, where other threads may take it.
///
/// While 250 tasks of a PE are on others, it keeps further parts: what is alive at a time grows
/// with the number of PEs, and not with the problem.
///
/// Nothing is stolen. So the radius decides how evenly the work is spread, and how much a death
/// costs: [`Distance::ONE`] for the few first levels, [`Distance::ZERO`] below.
///
/// # Errors
///
/// A part's task ended without a result.
pub async fn push_divide_and_conquer<A, X>(
    cx: &Context,
    radius: impl Fn(&A::Problem) -> Distance + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    X: View,
{
    const { A::CHECKED };
    let placement =
        move |cx: &Context, part: &A::Problem| place_on(cx, cx.random_within(radius(part)));
    conquer(cx, placement, algorithm, problem).await
}
