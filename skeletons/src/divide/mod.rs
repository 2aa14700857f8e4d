//! Divide and conquer (SymGridPar2 §4.4, figure 9; HdpH-RS §6.1.2 and A.9).
//!
//! An algorithm is a [`DivideAndConquer`] of four functions. The skeletons differ in where they
//! solve its parts:
//!
//! ```text
//!  fork: this PE's threads       par: any free PE                 push: random PEs within a radius
//!
//!          ●  PE 0                       ●  PE 0                         ●  PE 0
//!        ╱   ╲                         ╱   ╲                           ╱   ╲
//!       ●     ●  PE 0's           PE 0 ●     ○ ┈→ stolen, PE 5    PE 3 ●     ● PE 6
//!      ╱ ╲   ╱ ╲ threads            ╱ ╲   ╱ ╲                        ╱ ╲   ╱ ╲
//!     ●   ● ●   ●                  ●   ● ●   ●  PE 5                ●   ● ●   ●
//! ```
//!
//! The PE that divides a problem supervises its parts. So the cost of a death depends on how far
//! the parts have gone. Work stealing moves few and large parts. Placed parts should stay nearer to
//! their parent as they become smaller: HdpH-RS §6.5.3 placed all parts at random and had 40,696
//! replicas of 65,234 tasks. This is the purpose of the *radius*, a function of the problem.
//!
//! | question | module |
//! |---|---|
//! | How does a program choose between stealing and placement? | `division` |
//! | How is a problem divided, and when does a task pause? | `conquer` |
//! | How do solutions outlive the job? | `journal` |
//! | How is a problem looked up before it is solved? | `memo` |
//! | How is a problem solved once that many ask for? | `in_progress` |
//!
//! A skeleton must never know what a problem is.

mod conquer;
mod division;
mod in_progress;
mod journal;
mod memo;

pub(crate) use conquer::{conquer, place_on};
pub use division::{Division, divide_and_conquer, par_divide_and_conquer, push_divide_and_conquer};
pub use memo::MemoisedDivision;

use crate::parts::Parts;
use std::marker::PhantomData;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Portable};

/// A divide-and-conquer algorithm: four functions.
///
/// The functions must capture nothing; they get all data from the problem. Data that all parts need
/// goes into the problem as a [`Shared`](ultramarine_runtime::executor::Shared): each part holds
/// the handle, and each process gets the value once.
///
/// ```
/// use ultramarine::prelude::*;
///
/// /// A table, and the range of it to sum up.
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
    J: Fn(P, C::Mapped<R>) -> R,
{
    /// An algorithm of these functions:
    ///
    /// - `is_trivial` decides whether a problem is solved directly;
    /// - `solve` solves a trivial problem;
    /// - `divide` divides any other problem into parts: an array (which allocates nothing) or a
    ///   vector;
    /// - `combine` makes a solution from the solutions of the parts, in the order of the parts.
    ///
    /// Every problem must become trivial after finitely many divisions. Only memory limits their
    /// number, not the stack of a thread.
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
    J: Fn(&Context, P, C::Mapped<R>) -> R,
{
    /// [`new`](DivideAndConquer::new) with functions that also get the context of the task that
    /// calls them. With it they can compute a value once per process, check whether they are
    /// [cancelled](Context::is_cancelled), or find the PE that they run on.
    ///
    /// ```
    /// use std::ops::Range;
    /// use ultramarine::prelude::*;
    ///
    /// /// Counts the primes of a range. Each process computes its table once.
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

/// What the skeletons know of an algorithm. [`DivideAndConquer`] implements it, so programs seldom
/// need to. `X` is what the functions get of the task that calls them: its [`Context`], or nothing.
pub trait Algorithm<X: AlgorithmContext = ()>: Stateless {
    /// A problem.
    type Problem: Portable;
    /// The solution of a problem.
    type Solution: Portable;
    /// The parts of a problem.
    type Parts: Parts<Item = Self::Problem>;

    /// Whether the problem is solved directly.
    fn is_trivial(&self, cx: &X, problem: &Self::Problem) -> bool;
    /// Solves a trivial problem.
    fn solve(&self, cx: &X, problem: Self::Problem) -> Self::Solution;
    /// Divides any other problem into parts.
    fn divide(&self, cx: &X, problem: &Self::Problem) -> Self::Parts;
    /// Makes a solution from the solutions of the parts.
    fn combine(
        &self,
        cx: &X,
        problem: Self::Problem,
        solutions: <Self::Parts as Parts>::Mapped<Self::Solution>,
    ) -> Self::Solution;
}

/// What the functions of an [`Algorithm`] get of the task that calls them: its [`Context`], or
/// nothing. No other type needs to implement it.
pub trait AlgorithmContext: Clone + Send + Sync + 'static {
    /// Borrows it from the context.
    fn of(cx: &Context) -> &Self;
}

impl AlgorithmContext for () {
    fn of(_: &Context) -> &() {
        &()
    }
}

impl AlgorithmContext for Context {
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
    J: Fn(P, C::Mapped<R>) -> R + Stateless,
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

    fn combine(&self, (): &(), problem: P, solutions: C::Mapped<R>) -> R {
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
    J: Fn(&Context, P, C::Mapped<R>) -> R + Stateless,
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

    fn combine(&self, cx: &Context, problem: P, solutions: C::Mapped<R>) -> R {
        (self.combine)(cx, problem, solutions)
    }
}

/// Divides and conquers on the threads of this PE only, with `rayon::join`. The example at
/// [`DivideAndConquer::new`] calls it.
///
/// ```text
///             ●          thread 0
///           ╱   ╲
///          ●     ○       thread 0, or any idle thread of this PE; no other PE
///         ╱ ╲   ╱ ╲
///        ●   ○ ●   ○
/// ```
///
/// It needs no job. So the algorithm's functions get no context ([`DivideAndConquer::new`]).
///
/// # Panics
///
/// If one of the algorithm's functions panics, with its message.
pub fn fork_divide_and_conquer<A: Algorithm>(algorithm: A, problem: A::Problem) -> A::Solution {
    fork(algorithm, problem, 0)
}

/// The number of levels between two checks of the stack. A check takes about 1 ns.
const LEVELS_PER_STACK_CHECK: u32 = 16;

/// The stack that must be left for these levels: 64 KiB for each. A thread of rayon's global pool
/// has 2 MiB.
const STACK_LEFT_BYTES_MIN: usize = 1 << 20;

/// When the stack is short, the recursion continues on a new one of this size.
const STACK_PIECE_BYTES: usize = 16 << 20;

/// Solves a problem that is `level` levels below the first.
fn fork<A: Algorithm>(algorithm: A, problem: A::Problem, level: u32) -> A::Solution {
    if algorithm.is_trivial(&(), &problem) {
        return algorithm.solve(&(), problem);
    }
    let divide = move || {
        let parts = algorithm.divide(&(), &problem);
        let solutions = parts.join_each(&|part| fork(algorithm, part, level.wrapping_add(1)));
        algorithm.combine(&(), problem, solutions)
    };
    if level % LEVELS_PER_STACK_CHECK == LEVELS_PER_STACK_CHECK - 1 {
        stacker::maybe_grow(STACK_LEFT_BYTES_MIN, STACK_PIECE_BYTES, divide)
    } else {
        divide()
    }
}
