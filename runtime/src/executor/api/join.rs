//! Joining two functions, of which a thief may run one.

use super::context::Context;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::task::body::CatchPanic;
use crate::executor::task::future::AbortOnDrop;
use crate::executor::task::portable::Portable;
use std::pin::Pin;
use std::task::Poll;
use ultramarine_topology::Distance;

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
        let future = self.0.as_mut().expect("it is there until this is dropped");
        on_growing_stack(|| future.as_mut().poll(cx))
    }
}

impl<T> Drop for OnGrowingStack<T> {
    fn drop(&mut self) {
        let future = self.0.take();
        on_growing_stack(|| drop(future));
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
    /// A join costs some 140 ns if nothing is stolen. For a recursion that does little else,
    /// `par_divide_and_conquer` costs a thirtieth of that. Functions may join with themselves as
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
        let fork = self.fork(radius, g, b);
        let first = OnGrowingStack::new(f(self.clone(), a)).await;
        let second = match fork.take_back() {
            // A panic is what it would be if `g` had been stolen.
            Ok(b) => {
                let second = async { OnGrowingStack::new(g(self.clone(), b)).await };
                CatchPanic::new(self.pe(), second).await?
            }
            Err(stolen) => AbortOnDrop::new(stolen).await?,
        };
        Ok((first, second))
    }
}
