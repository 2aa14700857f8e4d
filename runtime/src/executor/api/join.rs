//! Joining two functions, of which a thief may run one.
//!
//! While the first function is polled for the first time, the second waits as a record on the
//! stack, in a list of the thread. A join inside the first function offers the oldest records to
//! thieves, by the rule of a [`Backlog`]. If the first function awaits something, the second
//! becomes a task at once, for any worker, and so do those of the joins around it. Else it is
//! called like any function.

#![allow(unsafe_code)]

use super::context::Context;
use super::fork::Fork;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::schedule::backlog::Backlog;
use crate::executor::task::caught::{caught, discard};
use crate::executor::task::future::{AbortOnDrop, Future};
use crate::executor::task::portable::Portable;
use std::any::type_name;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use ultramarine_topology::Distance;

thread_local! {
    /// The second functions whose firsts the thread polls, the outermost first.
    static SECONDS: RefCell<Backlog<&'static dyn Offer, ()>> =
        const { RefCell::new(Backlog::new(1, 1)) };
}

/// What waits on the stack of its thread, and can become a task that thieves take.
trait Offer {
    fn radius(&self) -> Distance;
    fn offer(&self);
}

/// The second function of a join.
struct Second<'cx, G, B, R> {
    cx: &'cx Context,
    radius: Distance,
    g: G,
    /// `None` within a method, and at the end.
    half: Cell<Option<Half<'cx, B, R>>>,
}

/// After a panic.
impl<G, B, R> Drop for Second<'_, G, B, R> {
    fn drop(&mut self) {
        if let Some(Half::Kept(argument)) = self.half.take() {
            // Another panic would end the process.
            discard(argument);
        }
    }
}

/// The second half of a join.
enum Half<'cx, B, R> {
    /// No thread can take it.
    Kept(B),
    Forked(Fork<'cx, B, R>),
    /// It is for any worker, as threads that have no deque cannot have it back.
    Left(AbortOnDrop<Future<R>>),
}

impl<G, B, U> Offer for Second<'_, G, B, U::Output>
where
    G: Fn(Context, B) -> U + Stateless,
    B: Portable,
    U: std::future::Future<Output: Portable> + Send + 'static,
{
    fn radius(&self) -> Distance {
        self.radius
    }

    fn offer(&self) {
        let half = match self.half.take() {
            Some(Half::Kept(b)) => Some(Half::Forked(self.cx.fork(self.radius, self.g, b))),
            half => half,
        };
        self.half.set(half);
    }
}

/// Polls a first function, while the record of the second is in the list of the thread.
fn while_listed<R>(cx: &Context, second: &dyn Offer, poll: impl FnOnce() -> Poll<R>) -> Poll<R> {
    /// Takes out the youngest record: that of this poll, since polls are nested.
    struct Unlist;

    impl Drop for Unlist {
        fn drop(&mut self) {
            SECONDS.with_borrow_mut(|seconds| {
                if seconds.pop().is_none() {
                    seconds.pop_oldest();
                }
            });
        }
    }

    // SAFETY: The list holds records of calls of this function that have not ended, the outermost
    // first: each adds one, and its `Unlist` takes the youngest out when it returns or unwinds. A
    // panic while one becomes a task leaves one less there, never one too many.
    let listed = unsafe { std::mem::transmute::<&dyn Offer, &'static dyn Offer>(second) };
    // The PE takes its turn before the list is borrowed.
    let is_work_wanted = cx.poll_runtime().is_some_and(|demand| demand.is_work_wanted);
    let _unlist = Unlist;
    SECONDS.with_borrow_mut(|seconds| {
        if seconds.is_empty() {
            seconds.move_to(cx.threads(), cx.pes());
        }
        seconds.push(listed);
        if is_work_wanted || seconds.offers_too_little() {
            seconds.offer(|second| second.radius(), |_, second| second.offer());
        }
    });
    let polled = poll();
    if polled.is_pending() {
        // The oldest first: that is the order in which thieves are to have them.
        SECONDS.with_borrow_mut(|seconds| {
            seconds.pause(|second| second.radius(), |_, second| second.offer());
        });
    }
    polled
}

/// The stack that must be left for one level of a recursion.
const STACK_LEFT_BYTES_MIN: usize = 256 << 10;

/// When the stack is short, the recursion goes on on a new one of this size.
const STACK_PIECE_BYTES: usize = 16 << 20;

/// A future that is polled and dropped on a stack that grows. It is in a box, so a function may
/// join with itself.
struct OnGrowingStack<T>(Option<Pin<Box<T>>>);

impl<T> OnGrowingStack<T> {
    fn new(future: T) -> Self {
        OnGrowingStack(Some(Box::pin(future)))
    }
}

fn on_growing_stack<R>(act: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK_LEFT_BYTES_MIN, STACK_PIECE_BYTES, act)
}

impl<T: std::future::Future> std::future::Future for OnGrowingStack<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<T::Output> {
        on_growing_stack(|| {
            let future = self.0.as_mut().expect("a future is not polled after its end");
            let polled = future.as_mut().poll(cx);
            if polled.is_ready() {
                self.0 = None;
            }
            polled
        })
    }
}

impl<T> Drop for OnGrowingStack<T> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            on_growing_stack(|| drop(future));
        }
    }
}

impl Context {
    /// Calls `f(a)` and `g(b)`: `f` in this task, and `g` in a task of its own that any PE within
    /// `radius` may steal, or, if none has taken it by then, in this task, too. Returns both
    /// results.
    ///
    /// If the join is dropped before its end, `g` is [aborted](crate::executor::Future::abort)
    /// where it runs.
    ///
    /// `g` becomes a task only if thieves look for work, if fewer than four joins of this thread
    /// have become tasks, or if `f` awaits something (heartbeat scheduling: Acar, Charguéraud,
    /// Guatto, Rainey and Sieczkowski, 2018). That is seen to at each join, and the PE handles its
    /// messages then; so an `f` that computes for long, without joins, may leave thieves without
    /// work, and must not wait for what `g` does but by an `.await`. Otherwise `g` is called like
    /// any function, and a join costs some 115 ns, twice as much as to await two boxed futures. (If
    /// `g` always became a task, it would cost 180 ns.) For a recursion that does little else,
    /// `par_divide_and_conquer` costs a twentieth of that. Functions may join with themselves as
    /// deep as memory allows; but whenever a stolen `g` ends, all levels above it are polled.
    ///
    /// ```
    /// # use ultramarine_runtime::error::TaskError;
    /// # use ultramarine_runtime::executor::Context;
    /// # use ultramarine_topology::Distance;
    /// /// Counts the leaves of a binary tree of this height.
    /// fn leaves(cx: Context, height: u32) -> impl Future<Output = Result<u64, TaskError>> + Send {
    ///     async move {
    ///         if height == 0 {
    ///             return Ok(1);
    ///         }
    ///         let below = height - 1;
    ///         let (left, right) = cx.join(Distance::ONE, leaves, below, leaves, below).await?;
    ///         Ok(left? + right?)
    ///     }
    /// }
    /// # let _ = leaves;
    /// ```
    ///
    /// # Errors
    ///
    /// `g` panicked, here or where it was stolen, or its task ended without a result otherwise.
    ///
    /// # Panics
    ///
    /// If `f` panics. Then `g` is not called, unless a thief has begun it.
    pub async fn join<F, A, T, G, B, U>(
        &self,
        radius: Distance,
        f: F,
        a: A,
        g: G,
        b: B,
    ) -> Result<(T::Output, U::Output), TaskError>
    where
        F: FnOnce(Context, A) -> T,
        T: std::future::Future,
        G: Fn(Context, B) -> U + Stateless,
        B: Portable,
        U: std::future::Future + Send + 'static,
        U::Output: Portable,
    {
        let mut first = OnGrowingStack::new(f(self.clone(), a));
        let mut half = Some(Half::Kept(b));
        let first_result = poll_fn(|task| {
            if !matches!(half, Some(Half::Kept(_))) {
                return Pin::new(&mut first).poll(task);
            }
            let second = Second { cx: self, radius, g, half: Cell::new(half.take()) };
            let polled = while_listed(self, &second, || Pin::new(&mut first).poll(task));
            if polled.is_pending() {
                second.offer();
            }
            half = match second.half.take() {
                Some(Half::Forked(fork)) if polled.is_pending() && !fork.is_queued() => {
                    Some(Half::Left(AbortOnDrop::new(fork.leave())))
                }
                half => half,
            };
            polled
        })
        .await;
        let second = match half {
            Some(Half::Kept(_)) if self.pe.is_ending() => return Err(TaskError::ShuttingDown),
            Some(Half::Kept(b)) => Ok(b),
            Some(Half::Forked(fork)) => fork.take_back().map_err(AbortOnDrop::new),
            Some(Half::Left(future)) => Err(future),
            None => unreachable!("it is put back after each poll"),
        };
        let second_result = match second {
            Err(stolen) => stolen.await?,
            Ok(b) => {
                // What becomes of it is what would have if it had been stolen.
                let mut here =
                    AbortOnDrop::new(OnGrowingStack::new(async { g(self.clone(), b).await }));
                let panicked = |message| TaskError::Panicked { pe: self.pe(), message };
                poll_fn(|task| {
                    let polled = caught(type_name::<U>(), || Pin::new(&mut here).poll(task));
                    match polled {
                        Ok(polled) => polled.map(Ok),
                        Err(message) => Poll::Ready(Err(panicked(message))),
                    }
                })
                .await?
            }
        };
        Ok((first_result, second_result))
    }
}
