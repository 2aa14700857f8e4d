//! The code of a task.

use std::marker::PhantomData;

/// A function together with the type of its argument: the code of a task.
pub(crate) struct Kind<B, A>(pub(crate) B, PhantomData<fn(A)>);

impl<B: Copy, A> Clone for Kind<B, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Copy, A> Copy for Kind<B, A> {}

impl<B, A> Kind<B, A> {
    pub(crate) fn new(body: B) -> Self {
        Kind(body, PhantomData)
    }
}
