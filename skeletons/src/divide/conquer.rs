//! The recursion that divides a problem. Each part is solved by the task itself, by a thief, or by
//! the PE that it is placed on.
//!
//! The recursion is a plain one and awaits nothing as long as no other worker takes part. If urgent
//! tasks wait, it pauses: it leaves its forked parts to whichever worker takes them first, and its
//! unfinished levels become futures, which continue after the urgent tasks.
//!
//! It also pauses at a depth of [`LEVELS_MAX`]: the current part becomes a task, which begins with
//! an empty stack. So only memory limits how often a problem is divided. A stack holds this number
//! of levels, whether they are levels of the recursion, futures that poll each other, or their
//! drops.

use super::backlog::{Backlog, BacklogPart};
use super::{Algorithm, AlgorithmContext};
use crate::parts::Parts;
use crate::result_future::ResultFuture;
use std::future::ready;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{self, AbortOnDrop, Context, Placement, Portable};
use ultramarine_topology::{Distance, Pe};

/// The largest depth of the recursion in one task. A worker's stack of 16 MiB leaves 32 KiB to each
/// level. When the task is woken, at most this number of nested futures is polled.
const LEVELS_MAX: u32 = 500;

/// The number of tasks that a PE may have on other PEs before it stops placing parts and solves
/// them itself. Placed tasks run in the order of their arrival. Without this limit all parts of one
/// size would exist before one of them is solved.
pub(super) const AWAY_MAX: usize = 250;

/// A solution, or how to wait for it.
enum Solved<R> {
    Now(R),
    /// Other tasks solve parts of it.
    Later(ResultFuture<R>),
    /// The caller should wait now, so that other tasks have their turn.
    Paused(ResultFuture<R>),
}

impl<R: Portable> Solved<R> {
    fn into_future(self) -> ResultFuture<R> {
        match self {
            Solved::Now(solution) => Box::pin(ready(Ok(solution))),
            Solved::Later(ending) | Solved::Paused(ending) => ending,
        }
    }
}

fn wait_for<R: Portable>(solution: executor::Future<Result<R, TaskError>>) -> ResultFuture<R> {
    let solution = AbortOnDrop::new(solution);
    Box::pin(async { solution.await? })
}

/// Places a part on this PE. If it is the calling PE, or if [`AWAY_MAX`] tasks are on other PEs,
/// any thread of the calling PE may take it.
pub(crate) fn place_on(cx: &Context, pe: Pe) -> Placement {
    if pe == cx.pe() || cx.away() >= AWAY_MAX {
        Placement::Within(Distance::ZERO)
    } else {
        Placement::On(pe)
    }
}

/// Solves a problem in a separate task, for which the caller waits as for any other.
pub(crate) async fn conquer<A, X>(
    cx: &Context,
    placement: impl Fn(&Context, &A::Problem) -> Placement + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
{
    begin(cx, Distance::ZERO.into(), placement, algorithm, problem).await
}

/// Spawns a task that solves a problem, at this place.
pub(super) fn begin<A, X, W>(
    cx: &Context,
    place: Placement,
    placement: W,
    algorithm: A,
    problem: A::Problem,
) -> ResultFuture<A::Solution>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let task = task(placement, algorithm);
    wait_for(match place {
        Placement::Within(radius) => cx.spawn(radius, task, problem),
        Placement::On(pe) => cx.spawn_at(pe, task, problem),
    })
}

/// The function of a task that solves a problem.
fn task<A, X, W>(
    placement: W,
    algorithm: A,
) -> impl Fn(Context, A::Problem) -> ResultFuture<A::Solution> + Stateless
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    move |cx, problem| solve_as_task(&cx, placement, algorithm, problem, 0)
}

/// Solves a problem with a new backlog.
fn solve_as_task<A, X, W>(
    cx: &Context,
    placement: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
) -> ResultFuture<A::Solution>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let mut backlog = Backlog::new(cx);
    solve(cx, placement, algorithm, problem, level, &mut backlog).into_future()
}

/// Solves a problem in this task, except for parts that others solve meanwhile. The result must be
/// awaited only if there are such parts, or if other tasks should have a turn. `level` is the depth
/// of the problem below the task's first one.
fn solve<'pe, A, X, W>(
    cx: &'pe Context,
    placement: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
    backlog: &mut Backlog<'pe, A::Problem, A::Solution>,
) -> Solved<A::Solution>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let view = AlgorithmContext::of(cx);
    if algorithm.is_trivial(view, &problem) {
        return Solved::Now(algorithm.solve(view, problem));
    }
    let fork = |radius, part| cx.fork(radius, task(placement, algorithm), part);
    if level == LEVELS_MAX {
        backlog.offer_all(fork);
        // It must be a pause, or all problems of this level would become tasks before one is
        // solved.
        return Solved::Paused(begin(cx, Distance::ZERO.into(), placement, algorithm, problem));
    }
    if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
        backlog.offer_all(fork);
        let cx = cx.clone();
        return Solved::Paused(Box::pin(async move {
            cx.yield_now().await;
            let divided = {
                let mut backlog = Backlog::new(&cx);
                // It does not poll again, or two tasks would only give way to each other.
                divide(&cx, placement, algorithm, problem, level, &mut backlog).into_future()
            };
            divided.await
        }));
    }
    divide(cx, placement, algorithm, problem, level, backlog)
}

/// Solves a problem that is not trivial.
fn divide<'pe, A, X, W>(
    cx: &'pe Context,
    placement: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
    backlog: &mut Backlog<'pe, A::Problem, A::Solution>,
) -> Solved<A::Solution>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let task = task(placement, algorithm);
    let mut first = None;
    let mut solutions = algorithm.divide(AlgorithmContext::of(cx), &problem).map_each(|part| {
        if first.is_none() {
            first = Some(part);
            return None;
        }
        match placement(cx, &part) {
            Placement::Within(radius) => {
                backlog.push(part, radius);
                None
            }
            Placement::On(pe) => Some(Solved::Later(wait_for(cx.spawn_at(pe, task, part)))),
        }
    });
    backlog.keep_on_offer(cx, level, |radius, part| cx.fork(radius, task, part));
    let below = level + 1;
    let mut is_paused = false;
    if let (Some(part), Some((solution, others))) = (first, solutions.as_mut().split_first_mut()) {
        let solved = solve(cx, placement, algorithm, part, below, backlog);
        is_paused = matches!(solved, Solved::Paused(_));
        *solution = Some(solved);
        // The youngest first, because the oldest is the most likely to be stolen.
        for solution in others.iter_mut().rev().filter(|solution| solution.is_none()) {
            let solved = solve_youngest(cx, placement, algorithm, below, backlog, is_paused);
            is_paused |= matches!(solved, Solved::Paused(_));
            *solution = Some(solved);
        }
    }
    if solutions.as_mut().iter().all(|solution| matches!(solution, Some(Solved::Now(_)))) {
        let solutions = A::Parts::map(solutions, now);
        return Solved::Now(algorithm.combine(AlgorithmContext::of(cx), problem, solutions));
    }
    let ending = combine_later(AlgorithmContext::of(cx), algorithm, problem, solutions);
    if is_paused { Solved::Paused(ending) } else { Solved::Later(ending) }
}

/// Solves the youngest problem of the backlog, unless it is stolen, or has to wait for the end of a
/// pause.
#[inline]
fn solve_youngest<'pe, A, X, W>(
    cx: &'pe Context,
    placement: W,
    algorithm: A,
    level: u32,
    backlog: &mut Backlog<'pe, A::Problem, A::Solution>,
    is_paused: bool,
) -> Solved<A::Solution>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let part = match backlog.pop() {
        BacklogPart::Hidden(part, _) => part,
        // Other workers may steal it during the pause.
        BacklogPart::Offered(fork) if is_paused => {
            return Solved::Paused(wait_for(fork.leave()));
        }
        BacklogPart::Offered(fork) => match fork.take_back() {
            Ok(part) => part,
            Err(stolen) => return Solved::Later(wait_for(stolen)),
        },
        BacklogPart::Taken => unreachable!("the placeholder is replaced at once"),
    };
    if is_paused {
        let cx = cx.clone();
        let solve = move || solve_as_task(&cx, placement, algorithm, part, level);
        return Solved::Paused(Box::pin(async move { solve().await }));
    }
    solve(cx, placement, algorithm, part, level, backlog)
}

/// Awaits the missing solutions, and combines all.
#[cold]
fn combine_later<A: Algorithm<X>, X: AlgorithmContext>(
    view: &X,
    algorithm: A,
    problem: A::Problem,
    mut solutions: <A::Parts as Parts>::Mapped<Option<Solved<A::Solution>>>,
) -> ResultFuture<A::Solution> {
    let view = view.clone();
    Box::pin(async move {
        for solution in solutions.as_mut() {
            if let Some(Solved::Later(ending) | Solved::Paused(ending)) = solution {
                *solution = Some(Solved::Now(ending.as_mut().await?));
            }
        }
        Ok(algorithm.combine(&view, problem, A::Parts::map(solutions, now)))
    })
}

fn now<R>(solution: Option<Solved<R>>) -> R {
    match solution {
        Some(Solved::Now(solution)) => solution,
        _ => unreachable!("all solutions have been awaited"),
    }
}
