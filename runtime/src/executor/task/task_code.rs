//! The code of a task.

use std::marker::PhantomData;

/// A function together with the type of its argument: this type identifies the code of a task.
pub(crate) struct TaskCode<B, A>(pub(crate) B, PhantomData<fn(A)>);

impl<B: Copy, A> Clone for TaskCode<B, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Copy, A> Copy for TaskCode<B, A> {}

impl<B, A> TaskCode<B, A> {
    pub(crate) fn new(body: B) -> Self {
        TaskCode(body, PhantomData)
    }
}
