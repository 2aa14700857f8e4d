//! Encoding a value whose arrays go beside it.

use super::numbers::{Found, find};
use super::{BESIDE_BYTES_MIN, PlainElements};
use crate::array::Array;
use crate::wire::{self, ByteSink, EncodeError, Encoder, WireError};
use serde::ser::{self, Serialize, Serializer};

/// The arrays of a value, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Beside {
    /// The first, as long as there is no other.
    first: Option<Array>,
    /// Several, one behind the other.
    all: Vec<u8>,
}

impl Beside {
    fn add(&mut self, found: &Found<'_>) {
        if let Some(first) = self.first.take() {
            self.all.reserve(first.bytes().len() + found.bytes.len());
            self.all.extend_from_slice(first.bytes());
        } else if self.all.is_empty() {
            self.first = Some(found.to_array());
            return;
        }
        self.all.extend_from_slice(found.bytes);
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.all.len() + self.first.as_ref().map_or(0, |array| array.bytes().len())
    }

    /// Appends all to the encoding itself, where [`decode_with`](super::decode_with) finds it as
    /// well.
    pub(crate) fn append_to(self, bytes: &mut impl ByteSink) {
        if let Some(array) = self.into_array() {
            bytes.append(array.bytes());
            bytes.append(&(array.bytes().len() as u64).to_le_bytes());
        }
    }

    /// What goes beside the encoding, if anything does.
    pub(crate) fn into_array(self) -> Option<Array> {
        self.first.or_else(|| (!self.all.is_empty()).then(|| self.all.into()))
    }
}

/// The value's encoding, with its arrays at the end.
///
/// # Errors
///
/// [`WireError::Encode`].
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    let (mut bytes, mut beside) = (Vec::new(), Beside::default());
    encode_with(usize::MAX, value, &mut bytes, &mut beside)?;
    beside.append_to(&mut bytes);
    Ok(bytes)
}

/// Appends the value's encoding, puts its long arrays beside it, and returns `true` if both together
/// take at most `room` bytes. Otherwise returns `false`.
///
/// # Errors
///
/// [`WireError::Encode`].
pub(crate) fn encode_with<T: Serialize>(
    room: usize,
    value: &T,
    bytes: &mut impl ByteSink,
    beside: &mut Beside,
) -> Result<bool, WireError> {
    wire::encode_with(room, bytes, |encoder| Encoding { encoder, room, beside }.put(value))
}

/// A serializer.
struct Encoding<'a, 'b, B: ByteSink> {
    encoder: &'a mut Encoder<'b, B>,
    /// The most that may go beside, in bytes.
    room: usize,
    beside: &'a mut Beside,
}

impl<B: ByteSink> Encoding<'_, '_, B> {
    #[inline]
    fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        match find(value) {
            None => value.serialize(self),
            Some(array) => self.put_array(&array, value),
        }
    }

    fn put_array<T: Serialize + ?Sized>(
        &mut self,
        array: &Found<'_>,
        value: &T,
    ) -> Result<(), EncodeError> {
        let bytes = array.bytes.len();
        if bytes < BESIDE_BYTES_MIN {
            if array.is_its_encoding() {
                return self.put_bytes(array.length, array.bytes);
            }
            return value.serialize(self);
        }
        if bytes > self.room.saturating_sub(self.beside.len()) {
            return Err(self.encoder.has_no_room());
        }
        self.encoder.put(array.length as u64 * 2 + 1)?;
        self.encoder.put(array.kind.0)?;
        self.beside.add(array);
        Ok(())
    }

    /// Puts the length of a sequence of elements that follow.
    fn put_length(&mut self, length: usize) -> Result<(), EncodeError> {
        let doubled = (length as u64).checked_mul(2);
        self.encoder.put(doubled.ok_or(EncodeError::Other("it is longer than all memory"))?)
    }

    fn put_bytes(&mut self, length: usize, bytes: &[u8]) -> Result<(), EncodeError> {
        self.put_length(length)?;
        self.encoder.put_bytes(bytes)
    }
}

/// The methods that put a number.
macro_rules! numbers {
    ($($method:ident: $number:ty),*) => { $(
        #[inline]
        fn $method(self, number: $number) -> Result<(), EncodeError> {
            self.encoder.put(number)
        }
    )* };
}

impl<B: ByteSink> Serializer for &mut Encoding<'_, '_, B> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers! {
        serialize_bool: bool, serialize_char: char, serialize_f32: f32, serialize_f64: f64,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i128: i128, serialize_u128: u128
    }

    fn serialize_str(self, text: &str) -> Result<(), EncodeError> {
        self.put_bytes(text.len(), text.as_bytes())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), EncodeError> {
        if bytes.len() < BESIDE_BYTES_MIN {
            return self.put_bytes(bytes.len(), bytes);
        }
        self.put(&PlainElements { bytes, alignment: 1 })
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.encoder.put(0_u8)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        self.encoder.put(1_u8)?;
        self.put(value)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), EncodeError> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
    ) -> Result<(), EncodeError> {
        self.encoder.put(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.put(value)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.encoder.put(variant)?;
        self.put(value)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, EncodeError> {
        self.put_length(length.ok_or_else(wire::without_length)?)?;
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, EncodeError> {
        self.serialize_seq(length)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, EncodeError> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, EncodeError> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, EncodeError> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, EncodeError> {
        self.encoder.put(variant)?;
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, EncodeError> {
        self.encoder.put(variant)?;
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Values that consist of others, which follow each other.
macro_rules! compound {
    ($($of:ident: $($method:ident($($key:ty)?)),*;)*) => { $(
        impl<B: ByteSink> ser::$of for &mut Encoding<'_, '_, B> {
            type Ok = ();
            type Error = EncodeError;

            $(
                #[inline]
                fn $method<T: Serialize + ?Sized>(
                    &mut self,
                    $(_: $key,)?
                    value: &T,
                ) -> Result<(), EncodeError> {
                    self.put(value)
                }
            )*

            fn end(self) -> Result<(), EncodeError> {
                Ok(())
            }
        }
    )* };
}

compound! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}
