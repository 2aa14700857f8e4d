//! Divide and conquer on several PEs: by work stealing, or by placement.

use super::conquer::{conquer, place_on};
use super::{Algorithm, AlgorithmContext};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Placement};
use ultramarine_topology::Distance;

/// Divides and conquers by work stealing: each part but the first waits until its parent gets to it
/// or a PE within the radius of this part steals it.
///
/// The radius says how far a problem is worth sending: [`Distance::ONE`] for large problems,
/// [`Distance::ZERO`] for problems that take less time than a message (SymGridPar2 figure 9). A
/// part that is not stolen costs little more than a function call, so the algorithm needs no
/// threshold to keep the division cheap.
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
/// The task of a part ended without a result.
pub async fn par_divide_and_conquer<A, W, X>(
    cx: &Context,
    radius: W,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    // Here, so that the compiler's error names the caller's line.
    const { (A::CHECKED, W::CHECKED) };
    divide_and_conquer(radius, algorithm, problem).run(cx).await
}

/// Divides and conquers by placement: each part but the first is placed at once on a random PE
/// within the radius of this part around its parent. A part of radius [`Distance::ZERO`] stays on
/// its parent's PE, where other threads may take it. No part is stolen by another PE.
///
/// A PE that has 250 tasks on other PEs keeps further parts. So the number of tasks in existence
/// grows with the number of PEs, and not with the problem.
///
/// The radius decides how evenly the work is spread and how much a death costs. Use
/// [`Distance::ONE`] on the first few levels and [`Distance::ZERO`] below.
///
/// ```
/// use ultramarine::prelude::*;
/// use ultramarine::skeletons::push_divide_and_conquer;
///
/// /// A number, and how often the first one was divided to get here.
/// async fn fibonacci(cx: &Context, n: u64) -> Result<u64, TaskError> {
///     let fibonacci = DivideAndConquer::new(
///         |(n, _): &(u64, u32)| *n < 2,
///         |(n, _)| n,
///         |(n, level)| [(n - 1, level + 1), (n - 2, level + 1)],
///         |_, [one_less, two_less]| one_less + two_less,
///     );
///     let radius =
///         |(_, level): &(u64, u32)| if *level < 6 { Distance::ONE } else { Distance::ZERO };
///     push_divide_and_conquer(&cx.supervised(), radius, fibonacci, (n, 0)).await
/// }
/// ```
///
/// # Errors
///
/// The task of a part ended without a result.
pub async fn push_divide_and_conquer<A, W, X>(
    cx: &Context,
    radius: W,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    // Here, so that the compiler's error names the caller's line.
    const { (A::CHECKED, W::CHECKED) };
    divide_and_conquer(radius, algorithm, problem).push().run(cx).await
}

/// [`par_divide_and_conquer`] with the context last, for a problem with a
/// [journal](Division::journal).
///
/// ```no_run
/// use ultramarine::prelude::*;
///
/// async fn fibonacci(cx: &Context, n: u64) -> Result<u64, JournalError> {
///     let fibonacci = DivideAndConquer::new(
///         |n: &u64| *n < 2,
///         |n| n,
///         |n| [n - 1, n - 2],
///         |_, [one_less, two_less]| one_less + two_less,
///     );
///     let number = divide_and_conquer(|_: &u64| Distance::ONE, fibonacci, n);
///     number.journal("fibonacci.journal").run(&cx.supervised()).await
/// }
/// ```
pub fn divide_and_conquer<A, W, X>(
    radius: W,
    algorithm: A,
    problem: A::Problem,
) -> Division<A, W, X>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    const { (A::CHECKED, W::CHECKED) };
    Division { radius, algorithm, problem, is_pushed: false }
}

/// A divide and conquer that has not started: made by [`divide_and_conquer`]. [`run`](Self::run)
/// starts it, and [`journal`](Self::journal) keeps its results in a file.
#[must_use = "a problem is not solved until it is run"]
#[derive(Debug)]
pub struct Division<A: Algorithm<X>, W, X: AlgorithmContext = ()> {
    pub(super) radius: W,
    pub(super) algorithm: A,
    pub(super) problem: A::Problem,
    /// Whether parts are placed, and not stolen.
    pub(super) is_pushed: bool,
}

impl<A, W, X> Division<A, W, X>
where
    A: Algorithm<X>,
    W: Fn(&A::Problem) -> Distance + Stateless,
    X: AlgorithmContext,
{
    /// Places parts at once, as [`push_divide_and_conquer`], instead of leaving them to thieves.
    pub fn push(mut self) -> Self {
        self.is_pushed = true;
        self
    }

    /// Solves the problem.
    ///
    /// # Errors
    ///
    /// The task of a part ended without a result.
    pub async fn run(self, cx: &Context) -> Result<A::Solution, TaskError> {
        let Division { radius, algorithm, problem, is_pushed } = self;
        if is_pushed {
            conquer(cx, placed(radius), algorithm, problem).await
        } else {
            conquer(cx, stolen(radius), algorithm, problem).await
        }
    }
}

/// Any PE within the radius of a part may steal it.
pub(super) fn stolen<P>(
    radius: impl Fn(&P) -> Distance + Stateless,
) -> impl Fn(&Context, &P) -> Placement + Stateless {
    move |_, part| Placement::Within(radius(part))
}

/// A part is placed on a random PE within its radius.
pub(super) fn placed<P>(
    radius: impl Fn(&P) -> Distance + Stateless,
) -> impl Fn(&Context, &P) -> Placement + Stateless {
    move |cx, part| place_on(cx, cx.random_within(radius(part)))
}
