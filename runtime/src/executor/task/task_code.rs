//! The code of a task, and its function as all code sees it that moves tasks about.

use super::body::{Begins, Body, Run};
use super::packing::{PackError, PackLimits};
use super::portable::Portable;
use super::site::Site;
use crate::array::Array;
use crate::code::{Code, Name};
use crate::error::TaskError;
use crate::protocol::TaskId;
use crate::protocol::message::Bytes;
use std::marker::PhantomData;
use std::sync::Arc;

/// A function together with the type of its argument: this type identifies the code of a task.
pub(crate) struct TaskCode<B, A>(B, PhantomData<fn(A)>);

impl<B: Copy, A> Clone for TaskCode<B, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Copy, A> Copy for TaskCode<B, A> {}

/// A task in bytes that is about to start: where, and whose it is.
pub(crate) struct Arrival<S> {
    pub(crate) site: Arc<S>,
    /// `None` for a message, which has no result.
    pub(crate) task: Option<TaskId>,
    pub(crate) is_supervised: bool,
    /// The task's argument, or a part of it, if that is an array.
    pub(crate) array: Option<Array>,
}

/// A task's function, of which only the types of argument and result are known. So what is done
/// with tasks is compiled once for each pair of these, not for each function. (Compiled for each, a
/// call of `spawn` took 29 kB of a program.)
pub(crate) trait Function<S, A, R>: Send + Sync {
    /// See [`Body::name`].
    fn name(&self) -> Name;

    /// See [`Body::MAY_WAIT`].
    fn may_wait(&self) -> bool;

    /// What identifies it on the wire.
    fn code(&self) -> &'static Code<Arrival<S>>;

    /// See [`Body::pack`].
    fn pack(&self, argument: A, draft: &mut Vec<u8>, to: PackLimits)
    -> Result<Bytes, PackError<A>>;

    /// See [`Body::unpack`].
    fn unpack(&self, encoded: &[u8], array: Option<Array>) -> Result<A, TaskError>;

    /// See [`Body::run`].
    fn run(&self, pe: &Arc<S>, argument: A, begins: Begins<'_, R>) -> Run<R>;
}

impl<S: Site, B: Body<S, A>, A: Portable> Function<S, A, B::Output> for TaskCode<B, A> {
    fn name(&self) -> Name {
        B::name
    }

    fn may_wait(&self) -> bool {
        B::MAY_WAIT
    }

    fn code(&self) -> &'static Code<Arrival<S>> {
        Code::of(*self)
    }

    fn pack(
        &self,
        argument: A,
        draft: &mut Vec<u8>,
        to: PackLimits,
    ) -> Result<Bytes, PackError<A>> {
        B::pack(argument, draft, to)
    }

    fn unpack(&self, encoded: &[u8], array: Option<Array>) -> Result<A, TaskError> {
        B::unpack(encoded, array)
    }

    fn run(&self, pe: &Arc<S>, argument: A, begins: Begins<'_, B::Output>) -> Run<B::Output> {
        self.0.run(pe, argument, begins)
    }
}

/// A task's function as what moves tasks about knows it. It has no bytes, so the box takes no
/// memory: the methods of [`Context`](crate::executor::Context) have that checked.
pub(crate) fn function<S, B, A>(body: B) -> &'static dyn Function<S, A, B::Output>
where
    S: Site,
    B: Body<S, A>,
    A: Portable,
{
    debug_assert_eq!(size_of::<B>(), 0, "the caller has checked it");
    Box::leak(Box::new(TaskCode(body, PhantomData)))
}
