//! Packing: arguments and results become bytes, and which thread does it.
//!
//! Encoding is user code, and takes as long as the value is large. So a worker does it for tasks
//! that it places and for its results. The thread that holds the engine must not: all messages of
//! the PE would wait. It packs only stolen tasks, and only if that takes some 10 µs; handing those
//! to another thread would take longer. A separate thread packs the others.

use super::caught::{caught, discard};
use super::portable::Portable;
use super::start::{Effort, Fill};
use super::travel::{PackedHandle, has_handles, take_packed_handles, travelling};
use crate::array::held::{Kept, Root, encode_and_keep};
use crate::array::within::{self, Beside, CHANGED};
use crate::array::{self, Array, is_plain};
use crate::error::TaskError;
use crate::protocol::message::{Bytes, SmallBytes};
use crate::protocol::{Message, Outcome};
use crate::wire;
use std::any::type_name;
use std::cell::Cell;
use std::sync::Arc;

/// The engine's thread encodes at most this, in bytes: some 10 µs.
const BRIEF_BYTES_MAX: usize = 8 << 10;

/// A thread keeps a buffer for packing unless it is larger than this, in bytes.
const DRAFT_KEPT_MAX: usize = 16 << 10;

/// Limits on packing one value.
#[derive(Clone, Copy)]
pub(crate) struct PackLimits {
    pub(crate) effort: Effort,
    /// The most that can travel, in bytes.
    pub(crate) bytes_max: usize,
}

/// Names a value in error texts: the argument or the result of a task.
#[derive(Clone, Copy)]
pub(crate) struct ValueLabel {
    what: &'static str,
    /// The name of the task's function.
    task: &'static str,
}

impl ValueLabel {
    pub(crate) fn argument_of(task: &'static str) -> Self {
        ValueLabel { what: "argument", task }
    }

    pub(crate) fn result_of(task: &'static str) -> Self {
        ValueLabel { what: "result", task }
    }

    /// An array has arrived that is none of this type.
    pub(crate) fn something_else<T>(self) -> TaskError {
        self.codec_error(type_name::<T>(), "it is something else".to_owned())
    }

    #[cold]
    fn codec_error(self, of_type: &'static str, reason: String) -> TaskError {
        TaskError::Codec { what: self.text(of_type), reason }
    }

    /// The text for a value of this type.
    fn text(self, of_type: &'static str) -> String {
        format!("{} of the task `{}`, of type `{of_type}`,", self.what, self.task)
    }
}

/// Why a value could not be packed.
pub(crate) enum PackError<T> {
    /// It would take more than a brief effort; the value is returned.
    TooLong(T),
    Failed(TaskError),
}

/// Packs an argument or a result behind the bytes in `draft`. An array stays as it is. Any other
/// value is encoded; if the encoding is long, all of it becomes one array, which is sent without a
/// copy.
pub(crate) fn pack<T: Portable>(
    label: ValueLabel,
    value: T,
    draft: &mut Vec<u8>,
    PackLimits { effort, bytes_max }: PackLimits,
) -> Result<Bytes, PackError<T>> {
    let bytes = match array::from_value(value) {
        Ok(array) => finish(draft, Some(array)),
        Err(value) => {
            let room = if effort == Effort::Brief { BRIEF_BYTES_MAX } else { usize::MAX };
            let (encoded, kept) = encode_and_keep(value, |value, root| {
                let mut encoded = encode(label, value, Some(root), room, draft);
                let blocks = encoded.as_mut().ok().and_then(Option::as_mut);
                let blocks = blocks.and_then(Beside::take_blocks);
                (encoded, blocks)
            });
            let beside = match (encoded, kept) {
                (Ok(None), Kept::Value(value)) => return Err(PackError::TooLong(value)),
                (_, Kept::Array(array)) => Some(array),
                (encoded, Kept::Value(value)) => {
                    discard(value);
                    encoded.map_err(PackError::Failed)?.and_then(Beside::into_array)
                }
                (_, Kept::Changed(value)) => {
                    discard(value);
                    let error = label.codec_error(type_name::<T>(), CHANGED.to_owned());
                    return Err(PackError::Failed(error));
                }
            };
            finish(draft, beside)
        }
    };
    not_too_large::<T>(bytes_max, label, bytes).map_err(PackError::Failed)
}

/// Packs a value that others may have as well, likewise.
pub(crate) fn pack_shared<T: Portable>(
    label: ValueLabel,
    value: &T,
    draft: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<Bytes, TaskError> {
    let beside = encode(label, value, None, usize::MAX, draft)?.and_then(Beside::into_array);
    not_too_large::<T>(bytes_max, label, finish(draft, beside))
}

/// The bytes of a `T`, if they are not too many to travel.
#[inline]
pub(crate) fn not_too_large<T>(
    bytes_max: usize,
    label: ValueLabel,
    bytes: Bytes,
) -> Result<Bytes, TaskError> {
    if bytes.len() <= bytes_max {
        return Ok(bytes);
    }
    Err(too_large(bytes_max, label, type_name::<T>(), bytes.len()))
}

#[cold]
fn too_large(limit: usize, label: ValueLabel, of_type: &'static str, bytes: usize) -> TaskError {
    TaskError::TooLarge { what: label.text(of_type), bytes, limit }
}

thread_local! {
    /// The buffer of [`drafting`].
    static DRAFT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs code that writes what is packed into a buffer that the thread keeps. Of this the bytes are
/// copied once, when all are there. (A request to a table is packed in 1980 instructions. With each
/// number appended to [`SmallBytes`] these were 4090.)
pub(crate) fn drafting<R>(write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut draft = DRAFT.take();
    let written = write(&mut draft);
    draft.clear();
    draft.shrink_to(DRAFT_KEPT_MAX);
    DRAFT.set(draft);
    written
}

/// Appends the encoding of a value, of at most `room` bytes. Returns its arrays; `None`: it needs
/// more.
fn encode<T: Portable>(
    label: ValueLabel,
    value: &T,
    root: Option<Root>,
    room: usize,
    draft: &mut Vec<u8>,
) -> Result<Option<Beside>, TaskError> {
    let mut beside = Beside::of(root);
    let mut encoded = codec::<T, _>(label, || within::encode_with(room, value, draft, &mut beside));
    if has_handles() && encoded == Ok(true) {
        // A task that waits for values stays bytes, and its arrays with it.
        encoded = codec::<T, _>(label, || beside.append_to(draft).map(|()| true));
    }
    if encoded != Ok(true) {
        // The value is not sent, so its handles need not be kept.
        drop(take_packed_handles());
    }
    Ok(encoded?.then_some(beside))
}

/// What has been drafted, with an array beside it. If it is long, and there is none, all of it
/// becomes one array.
pub(crate) fn finish(draft: &mut Vec<u8>, beside: Option<Array>) -> Bytes {
    if draft.len() < Message::ARRAY_BYTES_MIN {
        return Bytes { few: draft[..].into(), many: beside };
    }
    let long = std::mem::take(draft);
    match beside {
        None => Bytes { few: SmallBytes::default(), many: Some(long.into()) },
        many => Bytes { few: long.into(), many },
    }
}

/// Packs the result of a task of this name.
pub(crate) fn pack_result<T: Portable>(
    task: &'static str,
    value: T,
    bytes_max: usize,
) -> Result<Bytes, TaskError> {
    let limits = PackLimits { effort: Effort::Full, bytes_max };
    let label = ValueLabel::result_of(task);
    let packed = drafting(|draft| pack(label, value, draft, limits)).map_err(|error| match error {
        PackError::Failed(error) => error,
        PackError::TooLong(_) => unreachable!("it may take as long as it takes"),
    });
    refuse_handles::<T>(label)?;
    packed
}

/// Refuses handles in the value that was packed last.
#[inline]
pub(crate) fn refuse_handles<T>(label: ValueLabel) -> Result<(), TaskError> {
    if has_handles() { Err(refused_handles(label, type_name::<T>())) } else { Ok(()) }
}

#[cold]
fn refused_handles(label: ValueLabel, of_type: &'static str) -> TaskError {
    drop(take_packed_handles());
    let reason = "a Shared or Remote travels only within the argument of a task".to_owned();
    label.codec_error(of_type, reason)
}

/// A future whose task took handles along. They are kept until it ends.
pub(crate) struct WithHandles {
    pub(crate) future: Arc<dyn Fill>,
    pub(crate) _handles: Vec<PackedHandle>,
}

impl Fill for WithHandles {
    fn fill(&self, outcome: Outcome) {
        self.future.fill(outcome);
    }

    fn note_departure(&self, slot: u64, future: u64) -> bool {
        self.future.note_departure(slot, future)
    }

    fn is_decoded(&self) -> bool {
        self.future.is_decoded()
    }

    fn is_counted(&self) -> bool {
        self.future.is_counted()
    }

    fn name(&self) -> &'static str {
        self.future.name()
    }
}

/// Unpacks a [packed](pack) value: `array` if its type is an array, else what `encoded` holds, with
/// the arrays beside it.
pub(crate) fn unpack<T: Portable>(
    label: ValueLabel,
    encoded: &[u8],
    array: Option<Array>,
) -> Result<T, TaskError> {
    if !is_plain::<T>() {
        return codec::<T, _>(label, || within::decode_with(encoded, array));
    }
    array.and_then(array::into_value).ok_or_else(|| label.something_else::<T>())
}

/// Unpacks a [packed](pack_result) result.
pub(crate) fn unpack_result<T: Portable>(task: &'static str, bytes: Bytes) -> Result<T, TaskError> {
    let label = ValueLabel::result_of(task);
    match bytes {
        Bytes { few, many: Some(encoded) } if few.is_empty() && !is_plain::<T>() => {
            unpack(label, encoded.bytes(), None)
        }
        Bytes { few, many } => unpack(label, &few, many),
    }
}

/// Runs the user's `Serialize` or `Deserialize` of a `T`, which may fail or panic.
pub(crate) fn codec<T, R>(
    label: ValueLabel,
    run: impl FnOnce() -> Result<R, wire::WireError>,
) -> Result<R, TaskError> {
    match travelling(|| caught(type_name::<T>(), run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(codec_failed(label, type_name::<T>(), Ok(error))),
        Err(message) => Err(codec_failed(label, type_name::<T>(), Err(message))),
    }
}

/// The error of a codec, or the message of its panic.
#[cold]
fn codec_failed(
    label: ValueLabel,
    of_type: &'static str,
    why: Result<wire::WireError, String>,
) -> TaskError {
    let reason = match why {
        Ok(error) => error.of_a_value(),
        Err(message) => format!("its serialisation panicked: {message}"),
    };
    label.codec_error(of_type, reason)
}
