//! Spawning tasks, and placing them.

use super::body::Async;
use super::context::Context;
use super::fork::Fork;
use crate::code::Stateless;
use crate::executor::task::body::Plain;
use crate::executor::task::future::Future;
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
