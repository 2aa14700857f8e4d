//! Who solves the parts of a problem: this task as its own, thieves, or PEs that they are placed
//! on; and how a task that has much to divide gives others their turn.
//!
//! Dividing is a plain recursion, which awaits nothing as long as nobody else takes part. If tasks
//! wait that come before all others, it pauses: what it has forked is left to whoever gets to it
//! first, and what it has begun becomes a future, which goes on after the others.
//!
//! It also pauses when it is [`LEVELS_MAX`] deep: the part that it has come to becomes a task,
//! which begins with an empty stack. So a problem may be divided as often as memory allows; a stack
//! holds that many levels, be it of the recursion, of futures that poll each other or of their
//! drops.

use super::Algorithm;
use crate::parts::Parts;
use std::future::ready;
use std::mem;
use std::pin::Pin;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{self, Context, Fork, Portable, Spawner};
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

impl<P: Portable, R: Portable> Branch<'_, P, R> {
    /// Sees to it that the part is solved sooner or later: now by `solve`, if it is this task's; or
    /// else, if there is a pause, when the task goes on, by `put_off`. Whether there is one from
    /// now on.
    fn settle(
        &mut self,
        is_paused: bool,
        solve: impl FnOnce(P) -> Solved<R>,
        put_off: impl FnOnce(P) -> Ending<R>,
    ) -> bool {
        let solved = match mem::replace(self, Branch::Taken) {
            Branch::Own(part) if is_paused => Solved::Paused(put_off(part)),
            Branch::Own(part) => solve(part),
            // Others may steal it meanwhile.
            Branch::Forked(fork) if is_paused => Solved::Paused(wait_for(fork.leave())),
            Branch::Forked(fork) => match fork.take_back() {
                Ok(part) => solve(part),
                Err(stolen) => Solved::Later(wait_for(stolen)),
            },
            Branch::Solved(solved) => solved,
            Branch::Taken => unreachable!("it is put back at once"),
        };
        let is_paused = is_paused || matches!(solved, Solved::Paused(_));
        *self = Branch::Solved(solved);
        is_paused
    }

    fn solved(self) -> Solved<R> {
        match self {
            Branch::Solved(solved) => solved,
            _ => unreachable!("all branches have been settled"),
        }
    }
}

fn wait_for<R: Portable>(solution: executor::Future<Result<R, TaskError>>) -> Ending<R> {
    Box::pin(async { solution.await? })
}

/// Where a part goes, unless it is the first, which is its parent's own.
pub(crate) enum Whither {
    /// It waits here, for thieves within this radius, until its parent gets to it.
    Within(Distance),
    /// To this PE, at once.
    To(Pe),
}

impl Whither {
    /// To this PE; if that is the one we are on, or enough is on others, to any thread of ours.
    pub(crate) fn on(cx: &Context, pe: Pe) -> Self {
        if pe == cx.pe() || cx.away() >= AWAY_MAX {
            Whither::Within(Distance::ZERO)
        } else {
            Whither::To(pe)
        }
    }
}

/// Solves a problem that is a task of its own: the caller waits for it like for any other.
pub(crate) async fn conquer<S, A>(
    spawner: &S,
    whither: impl Fn(&Context, &A::Problem) -> Whither + Stateless,
    algorithm: A,
    problem: A::Problem,
) -> Result<A::Solution, TaskError>
where
    S: Spawner,
    A: Algorithm,
{
    begin(spawner, whither, algorithm, problem).await
}

/// Has a task solve a problem.
fn begin<S, A, W>(spawner: &S, whither: W, algorithm: A, problem: A::Problem) -> Ending<A::Solution>
where
    S: Spawner,
    A: Algorithm,
    W: Fn(&Context, &A::Problem) -> Whither + Stateless,
{
    let task = move |cx, problem| solve(&S::on(cx), whither, algorithm, problem, 0).into_future();
    wait_for(spawner.spawn(Distance::ZERO, task, problem))
}

/// Solves a problem as this task's own, except for the parts that others solve meanwhile. Only if
/// there are any, or others are to have a turn, does anything have to be awaited. The problem is a
/// part of a part and so on, `level` times, of the one that the task began with.
fn solve<S, A, W>(
    spawner: &S,
    whither: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
) -> Solved<A::Solution>
where
    S: Spawner,
    A: Algorithm,
    W: Fn(&Context, &A::Problem) -> Whither + Stateless,
{
    if algorithm.is_trivial(&problem) {
        return Solved::Now(algorithm.solve(problem));
    }
    if level == LEVELS_MAX {
        // A pause: else all problems of this level would become tasks before one of them is solved.
        return Solved::Paused(begin(spawner, whither, algorithm, problem));
    }
    let cx = spawner.context();
    if cx.look_around().is_some_and(|outlook| outlook.is_turn_wanted) {
        let cx = cx.clone();
        return Solved::Paused(Box::pin(async move {
            cx.yield_now().await;
            // Without another look: two tasks would do nothing but let each other go first.
            divide(&S::on(cx), whither, algorithm, problem, level).into_future().await
        }));
    }
    divide(spawner, whither, algorithm, problem, level)
}

/// Solves a problem that is not trivial.
fn divide<S, A, W>(
    spawner: &S,
    whither: W,
    algorithm: A,
    problem: A::Problem,
    level: u32,
) -> Solved<A::Solution>
where
    S: Spawner,
    A: Algorithm,
    W: Fn(&Context, &A::Problem) -> Whither + Stateless,
{
    let cx = spawner.context();
    let task = move |cx, part| solve(&S::on(cx), whither, algorithm, part, 0).into_future();
    let mut is_first = true;
    let mut branches = algorithm.divide(&problem).map_each(|part| {
        if mem::take(&mut is_first) {
            return Branch::Own(part);
        }
        match whither(cx, &part) {
            // Nobody could take it.
            Whither::Within(Distance::ZERO) if cx.threads() == 1 => Branch::Own(part),
            Whither::Within(radius) => Branch::Forked(spawner.fork(radius, task, part)),
            Whither::To(pe) => {
                Branch::Solved(Solved::Later(wait_for(spawner.spawn_at(pe, task, part))))
            }
        }
    });
    let below = level + 1;
    let put_off = |part| -> Ending<A::Solution> {
        let cx = cx.clone();
        Box::pin(
            async move { solve(&S::on(cx), whither, algorithm, part, below).into_future().await },
        )
    };
    let solve = |part| solve(spawner, whither, algorithm, part, below);
    if let Some((first, others)) = branches.as_mut().split_first_mut() {
        let is_paused = first.settle(false, solve, put_off);
        // The youngest first: the oldest is the likeliest to be stolen.
        others
            .iter_mut()
            .rev()
            .fold(is_paused, |is_paused, branch| branch.settle(is_paused, solve, put_off));
    }
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
        Solved::Later(_) | Solved::Paused(_) => unreachable!("all solutions are there"),
    };
    if parts.as_mut().iter().all(|part| matches!(part, Solved::Now(_))) {
        return Solved::Now(algorithm.combine(problem, A::Parts::turn(parts, now)));
    }
    let is_paused = parts.as_mut().iter().any(|part| matches!(part, Solved::Paused(_)));
    let ending = Box::pin(async move {
        for part in parts.as_mut() {
            if let Solved::Later(ending) | Solved::Paused(ending) = part {
                *part = Solved::Now(ending.as_mut().await?);
            }
        }
        Ok(algorithm.combine(problem, A::Parts::turn(parts, now)))
    });
    if is_paused { Solved::Paused(ending) } else { Solved::Later(ending) }
}
