//! Messages from one PE's program to another's, without a reply.

use super::body::Async;
use super::context::Context;
use crate::array::{self, Array, within};
use crate::code::Stateless;
use crate::error::TaskError;
use crate::executor::engine::site::Outgoing;
use crate::executor::pe::processor::Processor;
use crate::executor::task::body::{Begins, Body, Run};
use crate::executor::task::caught::caught;
use crate::executor::task::local::pack_task;
use crate::executor::task::packing::{
    PackError, PackLimits, ValueLabel, codec, finish, not_too_large, pack_shared, refuse_handles,
};
use crate::executor::task::portable::Portable;
use crate::executor::task::site::Site as _;
use crate::executor::task::start::Effort;
use crate::executor::task::task_code::{Function, function};
use crate::protocol::Message;
use crate::protocol::message::Bytes;
use crate::wire;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::type_name;
use std::ops::Range;
use std::sync::Arc;
use ultramarine_topology::Pe;

impl Processor {
    pub(crate) fn tell<A: Portable>(
        &self,
        pes: Range<u32>,
        function: &'static dyn Function<Processor, A, ()>,
        argument: A,
    ) -> Result<(), TaskError> {
        if self.is_ending() {
            return Err(TaskError::ShuttingDown);
        }
        match pack_task(function, argument, self, Effort::Full) {
            Ok(body) => {
                refuse_handles::<A>(ValueLabel::argument_of(function.name()()))?;
                self.send_later(Outgoing::Tell(pes, body));
            }
            Err(PackError::Failed(error)) => return Err(error),
            Err(PackError::TooLong(_)) => unreachable!("it may take as long as it takes"),
        }
        Ok(())
    }
}

impl Context {
    /// Tells a PE something: that PE calls this function with the argument. Once the message is
    /// there, it goes before all tasks that wait there; but a task that is placed later may begin
    /// earlier, above all on the PE itself. There is no reply. This costs one message; a task that
    /// is [placed](Context::spawn_at) costs two and a future.
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
    /// [`tell_fn`](Self::tell_fn) costs less, for a function that does not wait.
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
        self.pe.tell(self.just(pe)?, function(Async(f)), argument)
    }

    /// [Tells](Self::tell) a PE something, with a function that does not wait: it is called where
    /// the message is read, and no task is made for it. (That would take some 700 instructions
    /// more, and three allocations.)
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub fn tell_fn<F, A>(&self, pe: Pe, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(&Context, A) + Stateless,
        A: Portable,
    {
        const { F::CHECKED };
        self.pe.tell(self.just(pe)?, function(AtOnce(f)), argument)
    }

    /// [Tells](Self::tell_fn) a PE something, and gives it a value. A `Vec` of numbers travels from
    /// where it lies, while tasks here still read it: its bytes are not encoded and not copied. Any
    /// other value is encoded, and short ones are as well. The function gets the value, or why it
    /// could not be decoded.
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub fn tell_with<F, A, V>(
        &self,
        pe: Pe,
        f: F,
        argument: A,
        value: Arc<V>,
    ) -> Result<(), TaskError>
    where
        F: Fn(&Context, A, Result<Arc<V>, TaskError>) + Stateless,
        A: Portable,
        V: Portable + Sync,
    {
        const { F::CHECKED };
        self.pe.tell(self.just(pe)?, function(AtOnceWith(f)), WithValue(argument, Ok(value)))
    }

    /// [Tells](Self::tell_all) all living PEs something, and [gives](Self::tell_with) them a value.
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub fn tell_all_with<F, A, V>(&self, f: F, argument: A, value: Arc<V>) -> Result<(), TaskError>
    where
        F: Fn(&Context, A, Result<Arc<V>, TaskError>) + Stateless,
        A: Portable,
        V: Portable + Sync,
    {
        const { F::CHECKED };
        self.pe.tell(0..self.pes(), function(AtOnceWith(f)), WithValue(argument, Ok(value)))
    }

    /// The range of one PE.
    fn just(&self, pe: Pe) -> Result<Range<u32>, TaskError> {
        let (number, pes) = (pe.number(), self.pes());
        if number < pes { Ok(number..number + 1) } else { Err(TaskError::NoSuchPe { pe, pes }) }
    }

    /// [Tells](Self::tell) all living PEs something, including this one. The message goes down a
    /// tree, so that no PE sends more than about log2 of their number.
    ///
    /// All PEs start the messages to all of one sender in the order in which they were sent, as
    /// long as no PE dies. If a PE dies before it has passed a message on, the PEs below it do not
    /// get it. The messages that a PE sends after it has heard of a death go round the dead PE.
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
        self.pe.tell(0..self.pes(), function(Async(f)), argument)
    }

    /// [Tells all](Self::tell_all) something, with a function that [does not
    /// wait](Self::tell_fn).
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub fn tell_all_fn<F, A>(&self, f: F, argument: A) -> Result<(), TaskError>
    where
        F: Fn(&Context, A) + Stateless,
        A: Portable,
    {
        const { F::CHECKED };
        self.pe.tell(0..self.pes(), function(AtOnce(f)), argument)
    }
}

/// The function of a message that does not wait.
#[derive(Clone, Copy)]
pub(crate) struct AtOnce<F>(pub(crate) F);

impl<F, A> Body<Processor, A> for AtOnce<F>
where
    F: Fn(&Context, A) + Stateless,
    A: 'static,
{
    type Output = ();
    const MAY_WAIT: bool = false;

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn run(self, pe: &Arc<Processor>, argument: A, _: Begins<'_, ()>) -> Run<()> {
        let cx = Context::of(pe, pe.own_origin());
        let done = caught(type_name::<F>(), || (self.0)(&cx, argument));
        Run::Computed(done.map_err(|message| TaskError::Panicked { pe: pe.me(), message }))
    }
}

/// An argument, and a value that others may hold as well. On the way it may be lost.
struct WithValue<A, V>(A, Result<Arc<V>, TaskError>);

impl<A: Serialize, V: Serialize> Serialize for WithValue<A, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.1.as_deref().map_err(serde::ser::Error::custom)?;
        (&self.0, value).serialize(serializer)
    }
}

impl<'de, A: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for WithValue<A, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (argument, value) = Deserialize::deserialize(deserializer)?;
        Ok(WithValue(argument, Ok(Arc::new(value))))
    }
}

/// The same with an argument and a value.
#[derive(Clone, Copy)]
struct AtOnceWith<F>(F);

impl<F, A, V> Body<Processor, WithValue<A, V>> for AtOnceWith<F>
where
    F: Fn(&Context, A, Result<Arc<V>, TaskError>) + Stateless,
    A: Portable,
    V: Portable + Sync,
{
    type Output = ();
    const MAY_WAIT: bool = false;

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn pack(
        argument: WithValue<A, V>,
        draft: &mut Vec<u8>,
        limits: PackLimits,
    ) -> Result<Bytes, PackError<WithValue<A, V>>> {
        pack_with(ValueLabel::argument_of(Self::name()), argument, draft, limits)
    }

    fn unpack(encoded: &[u8], array: Option<Array>) -> Result<WithValue<A, V>, TaskError> {
        unpack_with(ValueLabel::argument_of(Self::name()), encoded, array)
    }

    fn run(
        self,
        pe: &Arc<Processor>,
        argument: WithValue<A, V>,
        begins: Begins<'_, ()>,
    ) -> Run<()> {
        let f = move |cx: &Context, WithValue(argument, value): WithValue<A, V>| {
            (self.0)(cx, argument, value);
        };
        AtOnce(f).run(pe, argument, begins)
    }
}

fn pack_with<A: Portable, V: Portable + Sync>(
    label: ValueLabel,
    WithValue(argument, value): WithValue<A, V>,
    draft: &mut Vec<u8>,
    limits: PackLimits,
) -> Result<Bytes, PackError<WithValue<A, V>>> {
    let pack = || {
        let value = value?;
        let is_long = |array: &Array| array.size_bytes() >= Message::ARRAY_BYTES_MIN;
        let array = array::share(&value).filter(is_long);
        draft.push(u8::from(array.is_some()));
        codec::<A, _>(label, || wire::encode_within(usize::MAX, &argument, draft))?;
        match array {
            None => pack_shared(label, &*value, draft, limits.bytes_max),
            array => not_too_large::<V>(limits.bytes_max, label, finish(draft, array)),
        }
    };
    pack().map_err(PackError::Failed)
}

fn unpack_with<A: Portable, V: Portable + Sync>(
    label: ValueLabel,
    encoded: &[u8],
    array: Option<Array>,
) -> Result<WithValue<A, V>, TaskError> {
    let Some((is_whole, mut encoded)) = encoded.split_first() else {
        return Err(label.something_else::<V>());
    };
    let argument = codec::<A, _>(label, || wire::decode_first(&mut encoded))?;
    let value = match array {
        Some(array) if *is_whole == 1 => {
            let value = array::take_shared(array).ok().flatten();
            value.ok_or_else(|| label.something_else::<V>())
        }
        array => codec::<V, _>(label, || within::decode_with(encoded, array)).map(Arc::new),
    };
    Ok(WithValue(argument, value))
}
