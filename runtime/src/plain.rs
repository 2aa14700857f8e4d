//! Arrays of plain data within other values, for `#[serde(with = "…")]`.
//!
//! A `Vec` of numbers within a value is found without a word (see
//! [`Portable`](crate::executor::Portable)). With this module so are the elements of any type that
//! is [`bytemuck::Pod`]: arrays of numbers, and structures for which `bytemuck` derives it. Serde
//! would encode them one by one. In a file, too, and for other serializers, they are one block of
//! bytes.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Tile {
//!     row: u32,
//!     column: u32,
//!     #[serde(with = "ultramarine_runtime::plain")] // in a program: "ultramarine::plain"
//!     values: Vec<[f64; 4]>,
//! }
//! # let tile = Tile { row: 1, column: 2, values: vec![[0.5; 4]; 3] };
//! # let bytes = ultramarine_runtime::wire::encode(&tile).unwrap();
//! # let read: Tile = ultramarine_runtime::wire::decode(&bytes).unwrap();
//! # assert_eq!((read.row, read.column, read.values), (1, 2, tile.values));
//! ```
//!
//! The bytes are those of this machine: use them for other processes of the same job, and not in
//! files that other machines read.

use crate::array::held::Root;
use crate::array::within::{PLAIN_NAME, PlainElements, take_handed_over};
use bytemuck::Pod;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Serializes the elements as one block of bytes. Serde calls it.
///
/// # Errors
///
/// The serializer's.
pub fn serialize<T: Pod, S: Serializer>(elements: &Vec<T>, to: S) -> Result<S::Ok, S::Error> {
    let holder = Some(Root::of(elements));
    let (bytes, alignment) = (bytemuck::cast_slice(elements), align_of::<T>());
    let elements = PlainElements { bytes, alignment, holder, shared: None };
    to.serialize_newtype_struct(PLAIN_NAME, &elements)
}

/// Deserializes the elements from one block of bytes. Serde calls it.
///
/// # Errors
///
/// The deserializer's; or the bytes are not a whole number of elements.
pub fn deserialize<'de, T: Pod, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    const { assert!(size_of::<T>() > 0, "elements without bytes cannot be counted") };
    from.deserialize_newtype_struct(PLAIN_NAME, ElementsVisitor(PhantomData))
}

struct ElementsVisitor<T>(PhantomData<T>);

impl<'de, T: Pod> Visitor<'de> for ElementsVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of elements of {} bytes each", size_of::<T>())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
        if let Some(elements) = take_handed_over() {
            return elements.map_err(|length| E::invalid_length(length, &self));
        }
        let elements = bytes.chunks_exact(size_of::<T>());
        if !elements.remainder().is_empty() {
            return Err(E::invalid_length(bytes.len(), &self));
        }
        Ok(elements.map(bytemuck::pod_read_unaligned).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::{decode, encode};
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Mixed {
        before: String,
        #[serde(with = "super")]
        points: Vec<[i32; 3]>,
        #[serde(with = "super")]
        bytes: Vec<u8>,
        after: Option<u64>,
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            before: String, points: Vec<[i32; 3]>, bytes: Vec<u8>, after: Option<u64>,
        ) {
            let mixed = Mixed { before, points, bytes, after };
            let read: Mixed = decode(&encode(&mixed).expect("there is room")).expect("it is whole");
            prop_assert_eq!(read, mixed);
        }
    }

    #[test]
    fn a_part_of_an_element_is_refused() {
        #[derive(Serialize, Deserialize, Debug)]
        struct Numbers<T: bytemuck::Pod>(#[serde(with = "super")] Vec<T>);

        let bytes = encode(&Numbers(vec![1u8, 2, 3])).expect("there is room");
        let error = decode::<Numbers<u16>>(&bytes).expect_err("three bytes are no numbers of two");
        assert!(error.to_string().contains("invalid length"), "{error}");
    }
}
