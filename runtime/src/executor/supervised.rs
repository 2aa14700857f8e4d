//! The spawner whose tasks are run again when they are lost.

use super::body::{Async, Plain};
use super::context::{Context, Portable, Spawner};
use super::fork::Fork;
use super::future::Future;
use crate::code::Stateless;
use ultramarine_topology::{Distance, Pe};

/// Spawns tasks that survive the death of the PEs that they are on (SymGridPar2 §5.2): the PE that
/// spawns a task supervises it, and has it run again if the PE that had it dies.
///
/// - A task may so be run twice, even at the same time; its future gets one result.
/// - A task whose supervisor dies is dropped: whoever spawned the task in which it was spawned has
///   that one run again.
/// - A task with which more than `max_replicas` PEs have died ends with
///   [`TaskError::GaveUp`](crate::error::TaskError::GaveUp), and sooner if more than three have and nobody
///   is left but the root and the PE that spawned it: it may be the task that kills them.
///
/// It costs a copy of the encoded argument, kept by the supervisor while the task is on another PE;
/// a task that stays where it was spawned costs nothing.
#[derive(Clone, Debug)]
pub struct Supervised {
    cx: Context,
}

impl Spawner for Supervised {
    fn on(cx: Context) -> Self {
        Supervised { cx }
    }

    fn context(&self) -> &Context {
        &self.cx
    }

    fn spawn<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.cx.pe.spawn(self.cx.home, true, radius, Async(f), argument)
    }

    fn spawn_fn<F, A, R>(&self, radius: Distance, f: F, argument: A) -> Future<R>
    where
        F: Fn(A) -> R + Stateless,
        A: Portable,
        R: Portable,
    {
        const { F::CHECKED };
        self.cx.pe.spawn(self.cx.home, true, radius, Plain(f), argument)
    }

    fn fork<F, A, T>(&self, radius: Distance, f: F, argument: A) -> Fork<'_, A, T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.cx.pe.fork(self.cx.home, true, radius, Async(f), argument)
    }

    fn spawn_at<F, A, T>(&self, pe: Pe, f: F, argument: A) -> Future<T::Output>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future + Send + 'static,
        T::Output: Portable,
    {
        const { F::CHECKED };
        self.cx.pe.spawn_at(self.cx.home, true, pe, Async(f), argument)
    }
}
