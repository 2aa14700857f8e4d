//! Messages from one PE's program to another's, without a reply.

use super::body::Async;
use super::context::Context;
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::engine::site::Outgoing;
use crate::executor::pe::processor::Processor;
use crate::executor::task::local::pack_task;
use crate::executor::task::packing::{PackError, ValueLabel, refuse_handles};
use crate::executor::task::portable::Portable;
use crate::executor::task::start::Effort;
use crate::executor::task::task_code::TaskCode;
use std::ops::Range;
use ultramarine_topology::Pe;

impl Processor {
    pub(crate) fn tell<F, A, T>(&self, pes: Range<u32>, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        if self.is_ending() {
            return Err(TaskError::ShuttingDown);
        }
        match pack_task(TaskCode::new(Async(f)), argument, self, Effort::Full) {
            Ok(body) => {
                refuse_handles::<A>(ValueLabel::argument_of(std::any::type_name::<F>()))?;
                self.send_later(Outgoing::Tell(pes, body));
            }
            Err(PackError::Failed(error)) => return Err(error),
            Err(PackError::TooLong(_)) => unreachable!("it may take as long as it takes"),
        }
        Ok(())
    }
}

impl Context {
    /// Tells a PE something: it calls this function with the argument, before any task that it has
    /// not begun. There is no reply. This costs one message, where a task that is
    /// [placed](Context::spawn_at) costs two and a future.
    ///
    /// What one PE tells another is begun in the order in which it was told, one after the other:
    /// the next as soon as the function has returned or waits for something. What a PE is told by
    /// several others may be begun in any order; so may what one of them tells it and what that one
    /// [tells all](Self::tell_all), which goes other ways.
    ///
    /// It is lost if the PE dies, or if the job ends before. The function's context is
    /// unsupervised, since it would not be run again; what a supervised task tells is told twice if
    /// the task is run twice.
    ///
    /// ```
    /// # use ultramarine_runtime::executor::{Context, Key};
    /// # use ultramarine_runtime::error::TaskError;
    /// # use ultramarine_topology::Pe;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// /// Says something to a counter on another PE, and does not wait.
    /// fn add(cx: &Context, pe: Pe, counter: Key, n: u64) -> Result<(), TaskError> {
    ///     cx.tell(
    ///         pe,
    ///         async |cx: Context, (counter, n)| {
    ///             cx.shared(counter, AtomicU64::default).fetch_add(n, Ordering::Relaxed);
    ///         },
    ///         (counter, n),
    ///     )
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The job has no such PE, or is ending; or the argument cannot be encoded, or is too large.
    /// If the function panics, or its argument cannot be decoded, the job ends with that error,
    /// since no future could end with it.
    pub fn tell<F, A, T>(&self, pe: Pe, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        const { F::CHECKED };
        let pes = self.pes();
        if pe.number() >= pes {
            return Err(TaskError::NoSuchPe { pe, pes });
        }
        self.pe.tell(pe.number()..pe.number() + 1, f, argument)
    }

    /// [Tells](Self::tell) all living PEs something, this one as well. It goes down a tree, so that
    /// no PE sends more than about log2 of their number.
    ///
    /// All hear what one PE tells all in the order in which it was told, as long as no PE dies. If
    /// a PE dies while it has others to tell, these do not hear it.
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub fn tell_all<F, A, T>(&self, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        const { F::CHECKED };
        self.pe.tell(0..self.pes(), f, argument)
    }
}
