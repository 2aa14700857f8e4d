//! Values that hold arrays: their encoding, and the arrays beside it.
//!
//! Serde asks a serializer to write the elements of a `Vec` one by one. But its methods are
//! generic, so the serializer here knows the type of what it is given. A `Vec` of numbers, a
//! `Box<[T]>` of them or a `String`, wherever it lies in a value, is written as its length alone if
//! it is long, and its bytes go into an [`Array`] that travels beside the encoding. (Pickle's
//! protocol 5 calls such data *out of band*: Python's PEP 574.) Long ones are sent from
//! [where they lie](super::held), and the `Vec`s that arrive are made of them without a copy. Short
//! ones are put together, and so are all after the first few dozen: that is a copy more on each
//! side. (From one mailbox to another, three arrays in a structure take 0.10 ms at 800 kB together,
//! and 1.0 ms at 8 MB; put together they took 0.25 and 3.1.)
//!
//! The rest of the encoding is that of [`wire`](crate::wire), but for the lengths of sequences,
//! texts and bytes. They are doubled, and one more if the elements are beside:
//!
//! ```text
//! (7, vec![0.5; 1000], "x")  →  7 | 2 · 1000 + 1, the kind of number | 2, "x"   beside: 8000 bytes
//! ```
//!
//! So code that writes sequences of its own is read as any other, and may read what was beside.

mod arrived;
mod deserializer;
mod numbers;
mod serializer;
#[cfg(test)]
mod tests;

pub(crate) use deserializer::decode_with;
pub(crate) use serializer::{Beside, encode, encode_with};

use super::Array;
use super::held::Root;
use bytemuck::Pod;
use serde::{Serialize, Serializer};
use std::cell::Cell;

/// A shorter array stays within the encoding, in bytes.
pub(crate) const BESIDE_BYTES_MIN: usize = 4 << 10;

/// A shorter array is copied: that is quicker than to keep the value until it has been sent.
const STAYS_BYTES_MIN: usize = 32 << 10;

/// What is wrong if an array is not there any more.
pub(crate) const CHANGED: &str = "its `Serialize` has changed it";

/// The name by which [`plain`](crate::plain) asks for its elements.
pub(crate) const PLAIN_NAME: &str = "ultramarine::plain";

/// Elements that [`plain`](crate::plain) says to be plain data.
pub(crate) struct PlainElements<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) alignment: usize,
    /// Where the `Vec` of the elements lies, if they are in one.
    pub(crate) holder: Option<Root>,
    /// The array whose bytes they are, if it may be shared.
    pub(crate) shared: Option<&'a Array>,
}

impl Serialize for PlainElements<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.bytes)
    }
}

thread_local! {
    /// An array on its way to [`plain`](crate::plain): serde has no method for it.
    static HANDED_OVER: Cell<Option<Array>> = const { Cell::new(None) };
}

/// Hands an array to a visitor that [takes](take_handed_over) it.
fn hand_over<R>(array: Array, visit: impl FnOnce() -> R) -> R {
    HANDED_OVER.set(Some(array));
    let visited = visit();
    HANDED_OVER.take();
    visited
}

/// The array that has been handed to the visitor that calls this, if any has.
pub(crate) fn take_handed_over_array() -> Option<Array> {
    HANDED_OVER.take()
}

/// Its elements. `Err`: they are not a whole number; the length in bytes.
pub(crate) fn take_handed_over<N: Pod>() -> Option<Result<Vec<N>, usize>> {
    let array = take_handed_over_array()?;
    let bytes = array.bytes().len();
    Some(array.into_received_vec().ok_or(bytes))
}
