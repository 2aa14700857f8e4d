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

use super::{Algorithm, AlgorithmContext};
use crate::parts::Parts;
use crate::result_future::ResultFuture;
use std::future::ready;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{
    self, AbortOnDrop, Backlog, Context, Demand, Fork, Oldest, Placement, Portable,
};
use ultramarine_topology::{Distance, Pe};

/// The largest depth of the recursion in one task. A worker's stack of 16 MiB leaves 32 KiB to each
/// level. When the task is woken, at most this number of nested futures is polled.
const LEVELS_MAX: u32 = 500;

/// The number of tasks that a PE may have on other PEs before it stops placing parts and solves
/// them itself. Placed tasks run in the order of their arrival. Without this limit all parts of one
/// size would exist before one of them is solved.
pub(super) const AWAY_MAX: usize = 250;

/// A solution, or how to wait for it if other tasks solve parts of it. (The second box keeps it
/// short enough for two registers.)
type Solved<R> = Result<R, Box<ResultFuture<R>>>;

/// A part that another thread may solve, and the future of its solution if it does.
type PartFork<'pe, P, R> = Fork<'pe, P, Result<R, TaskError>>;

fn into_future<R: Portable>(solved: Solved<R>) -> ResultFuture<R> {
    match solved {
        Ok(solution) => Box::pin(ready(Ok(solution))),
        Err(ending) => *ending,
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
    into_future(Recursion::new(cx, placement, algorithm).solve(problem, level))
}

/// The recursion of one task. It solves problems, except for parts that others solve meanwhile. A
/// problem's `level` is its depth below the task's first one.
struct Recursion<'pe, A: Algorithm<X>, X: AlgorithmContext, W> {
    cx: &'pe Context,
    placement: W,
    algorithm: A,
    backlog: Backlog<A::Problem, PartFork<'pe, A::Problem, A::Solution>>,
    /// Whether other tasks should have their turn before anything else is solved here.
    is_paused: bool,
}

impl<'pe, A, X, W> Recursion<'pe, A, X, W>
where
    A: Algorithm<X>,
    X: AlgorithmContext,
    W: Fn(&Context, &A::Problem) -> Placement + Stateless,
{
    fn new(cx: &'pe Context, placement: W, algorithm: A) -> Self {
        let backlog = Backlog::new(cx.threads(), cx.pes());
        Recursion { cx, placement, algorithm, backlog, is_paused: false }
    }

    fn view(&self) -> &'pe X {
        X::of(self.cx)
    }

    // Inlined, so that a trivial problem costs no call.
    #[inline]
    fn solve(&mut self, problem: A::Problem, level: u32) -> Solved<A::Solution> {
        if self.algorithm.is_trivial(self.view(), &problem) {
            Ok(self.algorithm.solve(self.view(), problem))
        } else {
            self.solve_divisible(problem, level)
        }
    }

    fn solve_divisible(&mut self, problem: A::Problem, level: u32) -> Solved<A::Solution> {
        match self.cx.poll_runtime() {
            None if level < LEVELS_MAX => self.divide(problem, level, false),
            demand => self.solve_at_beat(problem, level, demand),
        }
    }

    /// Solves a problem that is not trivial, at a beat or on the last level.
    #[cold]
    #[inline(never)]
    fn solve_at_beat(
        &mut self,
        problem: A::Problem,
        level: u32,
        demand: Option<Demand>,
    ) -> Solved<A::Solution> {
        let (cx, placement, algorithm) = (self.cx, self.placement, self.algorithm);
        if level == LEVELS_MAX {
            self.pause();
            // It must be a pause, or all problems of this level would become tasks before one is
            // solved.
            let solution = begin(cx, Distance::ZERO.into(), placement, algorithm, problem);
            return Err(Box::new(solution));
        }
        if demand.is_some_and(|demand| demand.is_turn_wanted) {
            self.pause();
            let cx = cx.clone();
            return Err(Box::new(Box::pin(async move {
                cx.yield_now().await;
                let divided = {
                    let mut recursion = Recursion::new(&cx, placement, algorithm);
                    // It does not poll again, or two tasks would only give way to each other.
                    into_future(recursion.divide(problem, level, false))
                };
                divided.await
            })));
        }
        self.divide(problem, level, demand.is_some_and(|demand| demand.is_work_wanted))
    }

    #[cold]
    #[inline(never)]
    fn offer(&mut self) {
        let (cx, placement, algorithm) = (self.cx, self.placement, self.algorithm);
        let fork = |radius, part| cx.fork(radius, task(placement, algorithm), part);
        self.backlog.offer(|part| radius(cx, placement, part), fork);
    }

    /// Leaves the parts to whichever worker takes them first.
    fn pause(&mut self) {
        let (cx, placement, algorithm) = (self.cx, self.placement, self.algorithm);
        let fork = |radius, part| cx.fork(radius, task(placement, algorithm), part);
        self.backlog.pause(|part| radius(cx, placement, part), fork);
        self.is_paused = true;
    }

    /// Solves a problem that is not trivial.
    #[inline]
    fn divide(
        &mut self,
        problem: A::Problem,
        level: u32,
        is_work_wanted: bool,
    ) -> Solved<A::Solution> {
        let below = level + 1;
        let solutions = self.algorithm.divide(self.view(), &problem).first_first(
            self,
            |own, part| match (own.placement)(own.cx, &part) {
                Placement::Within(_) => {
                    own.backlog.push(part);
                    None
                }
                Placement::On(pe) => {
                    let task = task(own.placement, own.algorithm);
                    Some(Err(Box::new(wait_for(own.cx.spawn_at(pe, task, part)))))
                }
            },
            |own, part| {
                if is_work_wanted || own.backlog.offers_too_little() {
                    own.offer();
                }
                own.solve(part, below)
            },
            // The youngest first, because the oldest is the most likely to be stolen.
            |own| own.solve_youngest(below),
        );
        match A::Parts::all_ok(solutions) {
            Ok(solutions) => Ok(self.algorithm.combine(self.view(), problem, solutions)),
            Err(solutions) => {
                Err(Box::new(combine_later(self.view(), self.algorithm, problem, solutions)))
            }
        }
    }

    /// Solves the youngest part.
    #[inline]
    fn solve_youngest(&mut self, level: u32) -> Solved<A::Solution> {
        let (algorithm, view) = (self.algorithm, self.view());
        // It is looked at where it lies. A part of three fields that was put there a moment ago,
        // one by one, and is taken as a whole, holds the processor up for a tenth of a division.
        let is_trivial = |part| algorithm.is_trivial(view, part);
        let is_trivial = self.backlog.youngest().is_some_and(is_trivial);
        match self.backlog.pop() {
            Some(part) if is_trivial => Ok(algorithm.solve(view, part)),
            Some(part) => self.solve_divisible(part, level),
            None => self.solve_oldest(level),
        }
    }

    /// Solves the youngest of the oldest parts, unless it is stolen, or has to wait for the end of
    /// a pause.
    #[cold]
    #[inline(never)]
    fn solve_oldest(&mut self, level: u32) -> Solved<A::Solution> {
        let fork = match self.backlog.pop_oldest() {
            Some(Oldest::Offered(fork)) => fork,
            Some(Oldest::Kept(part)) if !self.is_paused => return self.solve(part, level),
            Some(Oldest::Kept(part)) => {
                let (cx, placement, algorithm) = (self.cx.clone(), self.placement, self.algorithm);
                let solve = move || solve_as_task(&cx, placement, algorithm, part, level);
                return Err(Box::new(Box::pin(async move { solve().await })));
            }
            None => unreachable!("each part is pushed once"),
        };
        let stolen = if self.is_paused {
            // Other workers may take it during the pause.
            fork.leave()
        } else {
            match fork.take_back() {
                Ok(part) => return self.solve(part, level),
                Err(stolen) => stolen,
            }
        };
        Err(Box::new(wait_for(stolen)))
    }
}

/// The radius within which threads may take a part that waits. A part that is to be placed, but not
/// on another PE, is for the threads of this one.
fn radius<P>(cx: &Context, placement: impl Fn(&Context, &P) -> Placement, part: &P) -> Distance {
    match placement(cx, part) {
        Placement::Within(radius) => radius,
        Placement::On(_) => Distance::ZERO,
    }
}

/// Awaits the missing solutions, and combines all.
#[cold]
fn combine_later<A: Algorithm<X>, X: AlgorithmContext>(
    view: &X,
    algorithm: A,
    problem: A::Problem,
    mut solutions: <A::Parts as Parts>::Mapped<Solved<A::Solution>>,
) -> ResultFuture<A::Solution> {
    let view = view.clone();
    Box::pin(async move {
        for solution in solutions.as_mut() {
            if let Err(ending) = solution {
                *solution = Ok(ending.as_mut().await?);
            }
        }
        let solutions = A::Parts::map(solutions, |solution| match solution {
            Ok(solution) => solution,
            Err(_) => unreachable!("all solutions have been awaited"),
        });
        Ok(algorithm.combine(&view, problem, solutions))
    })
}
