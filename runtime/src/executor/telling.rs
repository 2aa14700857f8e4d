//! Messages from one PE's program to another's, without a reply.

use super::body::Async;
use super::context::{Context, Portable};
use super::engine::Outgoing;
use super::packing::{Effort, Packed, Unpacked, Which, carries_nothing};
use super::processor::Processor;
use super::serial::Serial;
use super::task::{Kind, Start, pack_task};
use crate::code::Stateless;
use crate::error::TaskError;
use crate::protocol::message::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::Pe;

/// Messages that have come and are not read yet. One message after the other is begun, in the
/// order in which they came.
pub(super) type Inbox = Serial<Bytes>;

/// Reads the next message in the inbox.
struct Reader;

impl Start for Reader {
    fn start(self: Arc<Self>, pe: &Arc<Processor>) {
        pe.uncounted.fetch_add(1, Ordering::SeqCst);
        let Some(mut body) = pe.inbox.next() else { return };
        // (What is told has no handles to wait for.)
        let _ = pe.start_in_bytes(None, false, &mut body);
        pe.queues.place_first(self);
    }

    fn pack(self: Arc<Self>, _: &Processor, _: Effort) -> Option<Packed> {
        unreachable!("it was placed here, and stands on no shelf")
    }

    fn call_off(&self) {}
}

impl Processor {
    /// Has a worker do what this PE was told.
    pub(super) fn hear(self: &Arc<Self>, body: Bytes) {
        if self.inbox.push(body) {
            self.queues.place_first(Arc::new(Reader));
            self.summon();
        }
    }

    pub(super) fn tell<F, A, T>(&self, pes: Range<u32>, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(Context, A) -> T + Stateless,
        A: Portable,
        T: std::future::Future<Output = ()> + Send + 'static,
    {
        if self.is_ending() {
            return Err(TaskError::ShuttingDown);
        }
        match pack_task(Kind::new(Async(f)), argument, self, Effort::Full) {
            Ok(body) => {
                carries_nothing::<A>(Which::argument_of(std::any::type_name::<F>()))?;
                self.send_later(Outgoing::Tell(pes, body));
            }
            Err(Unpacked::Failed(error)) => return Err(error),
            Err(Unpacked::TooLong(_)) => unreachable!("it may take as long as it takes"),
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
