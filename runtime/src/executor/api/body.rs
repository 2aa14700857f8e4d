//! Tasks whose function is async and gets a context.

use super::context::Context;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::pe::processor::Processor;
use crate::executor::task::body::{Body, CatchPanic, EndGuard, Run};
use crate::executor::task::caught::caught;
use crate::executor::task::origin::Origin;
use crate::executor::task::portable::Portable;
use std::sync::Arc;

/// An async function, which may spawn and await tasks.
#[derive(Clone, Copy)]
pub(crate) struct Async<F>(pub(crate) F);

impl<F, A, T> Body<Processor, A> for Async<F>
where
    F: Fn(Context, A) -> T + Stateless,
    A: 'static,
    T: std::future::Future + Send + 'static,
    T::Output: Portable,
{
    type Output = T::Output;
    const MAY_WAIT: bool = true;

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run<D>(
        self,
        pe: &Arc<Processor>,
        argument: A,
        begins: impl FnOnce() -> (Origin, D),
    ) -> Run<T::Output>
    where
        D: FnOnce(Result<T::Output, TaskError>) + Send + 'static,
    {
        let (origin, done) = begins();
        let end = EndGuard::new(done);
        let cx = Context::of(pe, origin);
        match caught(|| (self.0)(cx, argument)) {
            Err(message) => {
                end.end_with(Err(TaskError::Panicked { pe: pe.me(), message }));
                Run::Ended
            }
            Ok(future) => {
                let future = CatchPanic::new(pe.me(), future);
                Run::of(pe.run_async_here(async move { end.end_with(future.await) }))
            }
        }
    }
}
