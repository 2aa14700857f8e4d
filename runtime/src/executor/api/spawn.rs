//! Spawning tasks, and placing them.

use super::body::Async;
use super::context::Context;
use super::fork::Fork;
use crate::code::Stateless;
use crate::executor::task::body::Plain;
use crate::executor::task::future::Future;
use crate::executor::task::portable::Portable;
use ultramarine_topology::{Distance, Pe};

impl Context {
    /// Spawns a task that any PE within `radius` of this one may steal (`boundedSpawn` in
    /// SymGridPar2 §4.2, `supervisedSpawn` in §5.2). [`Distance::ZERO`]: it stays here.
    /// [`Distance::ONE`]: it may go anywhere.
    ///
    /// While the task stays on this PE, neither argument nor result is encoded.
    pub fn spawn<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn(self.origin, radius, Async(f), argument)
    }

    /// [`spawn`](Self::spawn) for a function that only computes.
    pub fn spawn_fn<F, A, R>(&self, radius: Distance, f: F, argument: A) -> Future<R>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn(self.origin, radius, Plain(f), argument)
    }

    /// [`spawn`](Self::spawn) of a task that the caller means to [take back](Fork::take_back)
    /// and do itself, unless another thread or PE has taken it first.
    pub fn fork<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Fork<'_, A, T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.fork(self.origin, radius, Async(f), argument)
    }

    /// Places a task on a PE, which runs it before all that it might steal (`spawnAt` in
    /// SymGridPar2 §4.3, `supervisedSpawnAt` in §5.2). If it is supervised and that PE dies, any
    /// PE may run it. The future of a task for a PE that does not exist ends with
    /// [`TaskError::NoSuchPe`](crate::error::TaskError::NoSuchPe).
    pub fn spawn_at<F, A, T>(&self, pe: Pe, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.pe.spawn_at(self.origin, pe, Async(f), argument)
    }
}
