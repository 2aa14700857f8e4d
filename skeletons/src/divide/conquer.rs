//! Who solves the parts of a problem: this task as its own, thieves, or PEs that they are placed
//! on; and how a task that has much to divide gives others their turn.
//!
//! Dividing is a plain recursion, which awaits nothing as long as nobody else takes part. If tasks
//! wait that come before all others, it pauses: what it has forked is left to the first that gets
//! to it first, and what it has begun becomes a future, which goes on after the others.
//!
//! It also pauses when it is [`LEVELS_MAX`] deep: the part that it has come to becomes a task,
//! which begins with an empty stack. So a problem may be divided as often as memory allows; a stack
//! holds that many levels, be it of the recursion, of futures that poll each other or of their
//! drops.

use super::backlog::{Backlog, Part};
use super::{Algorithm, View};
use crate::parts::Parts;
use std::future::ready;
use std::pin::Pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{self, AbortOnDrop, Context, Placement, Portable};
use ultramarine_topology::{Distance, Pe};

/// How many times a task divides a problem, each time inside the last. A worker's stack of 16 MiB
/// leaves 32 KiB to each level. What wakes the task polls at most that many futures inside each
/// other.
const LEVELS_MAX: u32 = 500;

/// How many tasks a PE has on others before it places no more parts there, but solves them one by
/// one. Placed tasks run in the order in which they came, so that else all parts of one size would
/// be there before one of them is solved.
pub(super) const AWAY_MAX: usize = 250;

type Ending<R> = Pin<Box<dyn Future<Output = Result<R, TaskError>> + Send>>;

/// A solution, or how to wait for it.
enum Solved<R> {
    Now(R),
    /// Others solve parts of it.
    Later(Ending<R>),
    /// The caller should wait now, for other tasks to have their turn.
    Paused(Ending<R>),
}

impl<R: Portable> Solved<R> {
    fn into_future(self) -> Ending<R> {
        match self {
            Solved::Now(solution) => Box::pin(ready(Ok(solution))),
            Solved::Later(ending) | Solved::Paused(ending) => ending,
        }
    }
}

fn wait_for<R: Portable>(solution: executor::Future<Result<R, TaskError>>) -> Ending<R> {
    let solution = AbortOnDrop::new(solution);
    Box::pin(async { solution.await? })
}

/// Places a part on this PE; where we are on that PE, or enough is on others, any thread of ours
/// may take it.
pub(crate) fn place_on(cx: &Context, pe: Pe) -> Placement {
    if pe == cx.pe() || cx.away() >= AWAY_MAX {
        Placement::Within(Distance::ZERO)
    } else {
        Placement::On(pe)
    }
}

/// Solves a problem that is a task of its own: the caller waits for it like for any other.
pub(crate) async fn conquer<A, X>(
    cx: &Context,
    placement: impl Fn(&Context, &A::Problem) -> Placement + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    A: Algorithm<X>,
    X: View,
{
    begin(cx, placement, algorithm, problem).await
}

/// Has a task solve a problem.
fn begin<A, X, W>(
    cx: &Context,
    placement: W,
    algorithm: A,
    problem: A::Problem,
) -> Ending<A::Solution>
where
    A: Algorithm<X>,
    X: View,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    wait_for(cx.spawn(Distance::ZERO, task(placement, algorithm), problem))
}

/// What a task does with its problem.
fn task<A, X, W>(
    placement: W,
    algorithm: A,
) -> impl Fn(Context, A::Problem) -> Ending<A::Solution> + Stateless
where
    A: Algorithm<X>,
    X: View,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    move |cx, problem| solve_as_task(&cx, placement, algorithm, problem, 0)
}

/// Solves a problem with a backlog of its own.
fn solve_as_task<A, X, W>(
    cx: &Context,
    placement: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
) -> Ending<A::Solution>
where
    A: Algorithm<X>,
    X: View,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let mut backlog = Backlog::new(cx);
    solve(cx, placement, algorithm, problem, level, &mut backlog).into_future()
}

/// Solves a problem as this task's own, except for the parts that others solve meanwhile. Only if
/// there are any, or others are to have a turn, does anything have to be awaited. The problem is a
/// part of a part and so on, `level` times, of the one that the task began with.
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
    X: View,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let view = View::of(cx);
    if algorithm.is_trivial(view, &problem) {
        return Solved::Now(algorithm.solve(view, problem));
    }
    let fork = |radius, part| cx.fork(radius, task(placement, algorithm), part);
    if level == LEVELS_MAX {
        backlog.offer_all(fork);
        // A pause: else all problems of this level would become tasks before one of them is solved.
        return Solved::Paused(begin(cx, placement, algorithm, problem));
    }
    if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
        backlog.offer_all(fork);
        let cx = cx.clone();
        return Solved::Paused(Box::pin(async move {
            cx.yield_now().await;
            let divided = {
                let mut backlog = Backlog::new(&cx);
                // Without another look: two tasks would do nothing but let each other go first.
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
    X: View,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    let task = task(placement, algorithm);
    let mut first = None;
    let mut solutions = algorithm.divide(View::of(cx), &problem).map_each(|part| {
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
        // The youngest first: the oldest is the likeliest to be stolen.
        for solution in others.iter_mut().rev().filter(|solution| solution.is_none()) {
            let part = match backlog.pop() {
                Part::Hidden(part, _) => Ok(part),
                // Others may steal it meanwhile.
                Part::Offered(fork) if is_paused => Err(Solved::Paused(wait_for(fork.leave()))),
                Part::Offered(fork) => {
                    fork.take_back().map_err(|stolen| Solved::Later(wait_for(stolen)))
                }
                Part::Taken => unreachable!("it is put back at once"),
            };
            let solved = match part {
                Ok(part) if is_paused => {
                    let cx = cx.clone();
                    let solve = move || solve_as_task(&cx, placement, algorithm, part, below);
                    Solved::Paused(Box::pin(async move { solve().await }))
                }
                Ok(part) => solve(cx, placement, algorithm, part, below, backlog),
                Err(solved) => solved,
            };
            is_paused |= matches!(solved, Solved::Paused(_));
            *solution = Some(solved);
        }
    }
    if solutions.as_mut().iter().all(|solution| matches!(solution, Some(Solved::Now(_)))) {
        let solutions = A::Parts::map(solutions, now);
        return Solved::Now(algorithm.combine(View::of(cx), problem, solutions));
    }
    let ending = combine_later(View::of(cx), algorithm, problem, solutions);
    if is_paused { Solved::Paused(ending) } else { Solved::Later(ending) }
}

/// Combines the solutions when they are all there.
#[cold]
fn combine_later<A: Algorithm<X>, X: View>(
    view: &X,
    algorithm: A,
    problem: A::Problem,
    mut solutions: <A::Parts as Parts>::With<Option<Solved<A::Solution>>>,
) -> Ending<A::Solution> {
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
        _ => unreachable!("all solutions are there"),
    }
}
