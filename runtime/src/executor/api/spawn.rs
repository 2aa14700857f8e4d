//! Spawning tasks, and placing them.

use super::body::Async;
use super::context::Context;
use super::fork::Fork;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::task::body::Plain;
use crate::executor::task::future::{AbortOnDrop, Future};
use crate::executor::task::portable::Portable;
use crate::executor::task::task_code::function;
use ultramarine_topology::{Distance, Pe};

impl Context {
    /// Spawns a task that any PE within `radius` of this one may steal (`boundedSpawn` in
    /// SymGridPar2 §4.2, `supervisedSpawn` in §5.2). With [`Distance::ZERO`] it stays on this PE;
    /// with [`Distance::ONE`] it may go anywhere.
    ///
    /// While the task stays on this PE, neither argument nor result is encoded. For the function,
    /// see [Functions](Context#functions). The future ends with an error if the task panics, is
    /// lost with a PE, or cannot travel; see [`TaskError`](crate::error::TaskError).
    pub fn spawn<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn(self.origin, radius, function(Async(f)), argument)
    }

    /// [Spawns](Self::spawn) a task whose function only computes: it gets no context and awaits
    /// nothing.
    pub fn spawn_fn<F, A, R>(&self, radius: Distance, f: F, argument: A) -> Future<R>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn(self.origin, radius, function(Plain(f)), argument)
    }

    /// [Spawns](Self::spawn) a task that the caller means to [take back](Fork::take_back) and do
    /// itself, unless another thread or PE has started it.
    pub fn fork<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Fork<'_, A, T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.fork(self.origin, radius, function(Async(f)), argument)
    }

    /// Calls `f(a)` and `g(b)`: `f` in this task, and `g` in a task of its own that any PE within
    /// `radius` may steal, or, if none has taken it by then, in this task, too. Returns both
    /// results.
    ///
    /// A join costs some 140 ns if nothing is stolen. For a recursion that does little else,
    /// `par_divide_and_conquer` costs a thirtieth of that.
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
    /// `g` was stolen, and its task ended without a result: it panicked, for example.
    ///
    /// # Panics
    ///
    /// If `f` panics, or `g` in this task. If `f` does, `g` is not called, unless a thief has begun
    /// it.
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
        // In boxes, so that a function may join with itself.
        let first = Box::pin(f(self.clone(), a)).await;
        let second = match fork.take_back() {
            Ok(b) => Box::pin(g(self.clone(), b)).await,
            Err(stolen) => AbortOnDrop::new(stolen).await?,
        };
        Ok((first, second))
    }

    /// Places a task on a PE, which runs it before all tasks that it could steal (`spawnAt` in
    /// SymGridPar2 §4.3, `supervisedSpawnAt` in §5.2). No other PE may steal it. If it is
    /// supervised and that PE dies, another PE may run it. If the job has no such PE, the future
    /// ends with [`TaskError::NoSuchPe`](crate::error::TaskError::NoSuchPe).
    pub fn spawn_at<F, A, T>(&self, pe: Pe, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn_at(self.origin, pe, function(Async(f)), argument)
    }

    /// Has a PE run a short task before all others, also while its workers are inside long ones:
    /// then a thread of its own runs it. The task is never supervised: it is lost if that PE dies.
    /// If the job has no such PE, the future ends with
    /// [`TaskError::NoSuchPe`](crate::error::TaskError::NoSuchPe).
    pub fn ask<F, A, T>(&self, pe: Pe, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.ask(pe, function(Async(f)), argument)
    }
}
