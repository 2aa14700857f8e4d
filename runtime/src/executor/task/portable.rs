//! Which values can travel from PE to PE.

use crate::array;
use crate::wire;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// A value that can travel from PE to PE: the argument or the result of a task.
///
/// A `Vec` or `Box<[T]>` of numbers, or a `String`, travels as it is: its bytes are not encoded,
/// and not copied before they leave the process. Small messages do not wait behind them. Within a
/// process nothing is copied at all.
///
/// Other values are encoded, but for the arrays of numbers in them, wherever they lie: from 4 KiB
/// on their bytes go beside the encoding. A `Vec` of 32 KiB or more that lies in the value itself
/// (in a field, a tuple, an `Option`, not behind a `Box` or in another `Vec`) is not copied before
/// it leaves; the value is kept until then, and dropped by a thread of the runtime. Others are
/// copied once, and so are all after the first 32. [`plain`](crate::plain) has the same done for
/// elements of other types: structures of numbers. What serde is given number by number, as by a
/// `VecDeque`, is encoded so; a build for debugging says it once.
///
/// An encoding holds the fields one after the other, without names and types. So serde attributes
/// that leave out or move fields do not work: `skip_serializing_if`, `flatten`, `untagged` and
/// `tag`. With the first, a value may be **read as another value, without an error**; with the
/// others the task ends with an error. A task that stays on its PE does not show this, since
/// nothing is encoded there.
///
/// A type of your own derives serde's `Serialize` and `Deserialize`. A type of another crate has
/// them if that crate's feature `serde` is on. Borrowed values do not travel: pass a `String` for a
/// `&str` (otherwise the compiler says "implementation of `Deserialize` is not general enough"), a
/// `Vec` for a slice, and the value itself for an `Rc`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel from PE to PE",
    label = "an argument or a result of a task is not `Portable`",
    note = "for a type of your own: `#[derive(serde::Serialize, serde::Deserialize)]`; for a type \
            of another crate: that crate's feature `serde`, if it has one",
    note = "references, `Rc` and borrowed data cannot travel: pass a `String` for a `&str`, a \
            `Vec` for a slice, the value itself for an `Rc`",
    note = "an error without serde travels as its text: return `Result<T, ultramarine::Failure>`"
)]
pub trait Portable: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Portable for T {}

/// About how many bytes of memory a value takes: exactly if it is an array of plain data, else the
/// size of its type and of its encoding. A value that cannot be encoded counts as its type does.
pub fn memory_estimate<T: Portable + Sync>(value: &Arc<T>) -> usize {
    let own = size_of::<T>();
    match array::share(value) {
        Some(array) => own + array.size_bytes(),
        None => own + wire::encoded_len(&**value).unwrap_or(0),
    }
}
