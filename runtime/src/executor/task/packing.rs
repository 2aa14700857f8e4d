//! Arguments and results as bytes, and who makes bytes of them.
//!
//! That is code of the user's, and takes as long as the value is large. So a worker does it, for
//! what it places and for its results, and not the thread that holds the engine: all messages of
//! the PE would wait. Only stolen tasks are packed there, if that is soon done: to go elsewhere for
//! them would take longer. The others are packed by a thread apart.

use super::caught::{caught, discard};
use super::portable::Portable;
use super::start::{Effort, Fill};
use super::travel::{Hold, is_carrying, packed, travelling};
use crate::array::{self, Array, is_plain};
use crate::error::TaskError;
use crate::protocol::message::{Bytes, SmallBytes};
use crate::protocol::{Message, Outcome};
use crate::wire::{self, ByteSink};
use std::ops::Deref;
use std::sync::Arc;

/// What is encoded by who holds the engine, in bytes: some 10 µs.
const BRIEF_BYTES_MAX: usize = 8 << 10;

/// What packing has to keep to.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) effort: Effort,
    /// The most that can travel.
    pub(crate) bytes_max: usize,
}

/// Which value is made bytes of, for errors to say.
#[derive(Clone, Copy)]
pub(crate) struct Which {
    what: &'static str,
    /// The name of the task's function.
    task: &'static str,
}

impl Which {
    pub(crate) fn argument_of(task: &'static str) -> Self {
        Which { what: "argument", task }
    }

    pub(crate) fn result_of(task: &'static str) -> Self {
        Which { what: "result", task }
    }

    /// Its name if its type is `T`.
    fn named<T>(self) -> String {
        format!(
            "{} of the task `{}`, of type `{}`,",
            self.what,
            self.task,
            std::any::type_name::<T>()
        )
    }
}

/// Why there are no bytes.
pub(crate) enum Unpacked<T> {
    /// It takes more than a brief effort.
    TooLong(T),
    Failed(TaskError),
}

/// Makes bytes of an argument or a result, behind some others: an array as it is; else its
/// encoding. If that is long, all of it is one array, which can be sent without being copied.
pub(crate) fn pack<T: Portable>(
    which: Which,
    value: T,
    few: SmallBytes,
    Limits { effort, bytes_max }: Limits,
) -> Result<Bytes, Unpacked<T>> {
    let bytes = match array::from_value(value) {
        Ok(array) => Bytes { few, many: Some(array) },
        Err(value) => {
            let room = if effort == Effort::Brief { BRIEF_BYTES_MAX } else { usize::MAX };
            let mut draft = Draft { few, many: Vec::new() };
            let encoded = codec::<T, _>(which, || wire::encode_within(room, &value, &mut draft));
            if !matches!(encoded, Ok(true)) {
                // It is not sent.
                drop(packed());
            }
            if let Ok(false) = encoded {
                return Err(Unpacked::TooLong(value));
            }
            discard(value);
            encoded.map_err(Unpacked::Failed)?;
            if draft.len() < Message::ARRAY_BYTES_MIN {
                draft.into_few().into()
            } else {
                Bytes { few: SmallBytes::default(), many: Some(draft.many.into()) }
            }
        }
    };
    if bytes.len() <= bytes_max {
        return Ok(bytes);
    }
    let (what, bytes) = (which.named::<T>(), bytes.len());
    Err(Unpacked::Failed(TaskError::TooLarge { what, bytes, limit: bytes_max }))
}

/// Bytes that are being written: in a plain `Vec` as soon as they are too many to lie in line,
/// since the other kind then grows at two thirds of the speed.
struct Draft {
    few: SmallBytes,
    many: Vec<u8>,
}

impl Draft {
    fn into_few(self) -> SmallBytes {
        if self.many.is_empty() { self.few } else { self.many.into() }
    }
}

impl Deref for Draft {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.many.is_empty() { &self.few } else { &self.many }
    }
}

impl ByteSink for Draft {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        if self.many.is_empty() {
            if self.few.len() + bytes.len() <= SmallBytes::IN_LINE {
                return self.few.append(bytes);
            }
            self.many.extend_from_slice(&self.few);
        }
        self.many.extend_from_slice(bytes);
    }
}

/// Makes bytes of the result of a task of this name.
pub(crate) fn pack_result<T: Portable>(
    task: &'static str,
    value: T,
    bytes_max: usize,
) -> Result<Bytes, TaskError> {
    let limits = Limits { effort: Effort::Full, bytes_max };
    let which = Which::result_of(task);
    let packed =
        pack(which, value, SmallBytes::default(), limits).map_err(|unpacked| match unpacked {
            Unpacked::Failed(error) => error,
            Unpacked::TooLong(_) => unreachable!("it may take as long as it takes"),
        });
    carries_nothing::<T>(which)?;
    packed
}

/// Refuses handles in what was just packed.
#[inline]
pub(crate) fn carries_nothing<T>(which: Which) -> Result<(), TaskError> {
    if !is_carrying() {
        return Ok(());
    }
    drop(packed());
    let reason = "a Shared or Remote travels only within the argument of a task".to_owned();
    Err(TaskError::Codec { what: which.named::<T>(), reason })
}

/// A future whose task took handles along.
pub(crate) struct WithHandles {
    pub(crate) future: Arc<dyn Fill>,
    pub(crate) _holds: Vec<Hold>,
}

impl Fill for WithHandles {
    fn fill(&self, outcome: Outcome) {
        self.future.fill(outcome);
    }

    fn leaves(&self, slot: u64, future: u64) -> bool {
        self.future.leaves(slot, future)
    }

    fn is_decoded(&self) -> bool {
        self.future.is_decoded()
    }

    fn name(&self) -> &'static str {
        self.future.name()
    }
}

/// The value that was [packed](pack): `array` if its type is one, else what `encoded` says.
pub(crate) fn unpack<T: Portable>(
    which: Which,
    encoded: &[u8],
    array: Option<Array>,
) -> Result<T, TaskError> {
    if !is_plain::<T>() {
        return codec::<T, _>(which, || wire::decode(encoded));
    }
    array.and_then(array::into_value).ok_or_else(|| TaskError::Codec {
        what: which.named::<T>(),
        reason: "it is something else".to_owned(),
    })
}

/// The result that was [packed](pack_result).
pub(crate) fn unpack_result<T: Portable>(task: &'static str, bytes: Bytes) -> Result<T, TaskError> {
    let which = Which::result_of(task);
    match bytes {
        Bytes { few, many: Some(encoded) } if few.is_empty() && !is_plain::<T>() => {
            unpack(which, encoded.bytes(), None)
        }
        Bytes { few, many } => unpack(which, &few, many),
    }
}

/// Runs code of the user's `Serialize` or `Deserialize` of a `T`, which may fail and may even
/// panic.
fn codec<T, R>(
    which: Which,
    run: impl FnOnce() -> Result<R, wire::WireError>,
) -> Result<R, TaskError> {
    let reason = match travelling(|| caught(run)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(message) => format!("its serialisation panicked: {message}"),
    };
    Err(TaskError::Codec { what: which.named::<T>(), reason })
}
