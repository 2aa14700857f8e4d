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
    /// Tells a PE something: that PE calls this function with the argument, before any task that it
    /// has not started. There is no reply. This costs one message; a task that is
    /// [placed](Context::spawn_at) costs two and a future.
    ///
    /// A PE starts the messages of one sender in the order in which they were sent, one after the
    /// other: the next as soon as the function has returned or waits for something. Messages of
    /// several senders start in any order. So do a message and a [message to all](Self::tell_all)
    /// of one sender, which take different ways.
    ///
    /// The message is lost if the PE dies, or if the job ends before. The function's context is
    /// unsupervised, since the function would not be run again. If a supervised task is run twice,
    /// its messages are sent twice.
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
    /// The job has no such PE ([`TaskError::NoSuchPe`]), or is ending; or the argument cannot be
    /// encoded, holds a [`Shared`](crate::executor::Shared) or [`Remote`](crate::executor::Remote),
    /// or is too large. If the function panics, or its argument cannot be decoded, the job ends
    /// with that error, since there is no future to end with it.
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

    /// [Tells](Self::tell) all living PEs something, including this one. The message goes down a
    /// tree, so that no PE sends more than about log2 of their number.
    ///
    /// All PEs start the messages to all of one sender in the order in which they were sent, as
    /// long as no PE dies. If a PE dies before it has passed a message on, the PEs below it do not
    /// get it.
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
