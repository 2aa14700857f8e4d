//! Tasks whose function is async and gets a context.

use super::context::Context;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::pe::processor::Processor;
use crate::executor::task::body::{Begins, Body, Run, Running};
use crate::executor::task::caught::caught;
use crate::executor::task::end::End;
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

    fn run(
        self,
        pe: &Arc<Processor>,
        argument: A,
        begins: Begins<'_, T::Output>,
    ) -> Run<T::Output> {
        let (origin, waiting) = begins();
        let end = End::new(waiting);
        let cx = Context::of(pe, origin);
        match caught(std::any::type_name::<F>(), || (self.0)(cx, argument)) {
            Err(message) => {
                end.end_with(Err(TaskError::Panicked { pe: pe.me(), message }));
                Run::Ended
            }
            Ok(future) => Run::of(pe.run_async_here(Running::new(pe.me(), future, end))),
        }
    }
}
