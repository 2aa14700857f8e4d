//! Encoding a value whose arrays go beside it.

use super::numbers::{Found, find, find_plain, is_number};
use super::{BESIDE_BYTES_MIN, CHANGED, PLAIN_NAME, STAYS_BYTES_MIN};
use crate::array::held::{Blocks, Changed, Root};
use crate::array::{Array, BLOCKS_MAX};
use crate::wire::{self, EncodeError, Encoder, WireError};
use serde::ser::{self, Serialize, Serializer};
use std::any::type_name;
use std::sync::atomic::{AtomicBool, Ordering};

/// From this many numbers on, encoding them one by one is worth a word.
const LONG_ELEMENTS: usize = 8 << 10;

/// The first arrays of a value may have a block each, this many. Behind them there is room for
/// blocks that hold several, each twice as long as the one before.
const SINGLE_BLOCKS_MAX: usize = BLOCKS_MAX / 2;

/// The first such block, in bytes.
const GATHERED_BYTES_MIN: usize = 64 << 10;

/// The arrays of a value, in the order in which they were found.
///
/// A long one stays in the value if it can, and else is a copy; each is a block of its own. Short
/// ones are copied one behind the other, into blocks that do not grow: when one is full, the next
/// is begun.
#[derive(Default)]
pub(crate) struct Beside {
    blocks: Blocks,
    /// Short arrays behind those blocks, one behind the other.
    gathered: Vec<u8>,
    /// The bytes of all together.
    bytes: usize,
}

impl Beside {
    /// Those of this value, of which some may stay where they are; `None`: all are copied.
    pub(crate) fn of(root: Option<Root>) -> Self {
        Beside { blocks: Blocks::of(root), ..Beside::default() }
    }

    /// Adds an array. Returns whether there was room for it, in bytes.
    fn add(&mut self, found: &Found<'_>, room: usize) -> Result<bool, EncodeError> {
        let bytes = found.bytes.len();
        if bytes > room.saturating_sub(self.bytes) {
            return Ok(false);
        }
        let is_long = bytes >= STAYS_BYTES_MIN;
        let count = self.blocks.count() + usize::from(!self.gathered.is_empty());
        if count > 0 && !(is_long && count < SINGLE_BLOCKS_MAX) {
            self.gather(found.bytes);
        } else {
            self.close_gathered();
            let stays = is_long && found.stay_in(&mut self.blocks).map_err(changed)?;
            if !stays {
                self.blocks.add_copy(found.to_array());
            }
        }
        self.bytes += bytes;
        Ok(true)
    }

    /// Copies an array behind others.
    fn gather(&mut self, bytes: &[u8]) {
        let is_full = self.gathered.capacity() - self.gathered.len() < bytes.len();
        if is_full && self.blocks.count() + 1 < BLOCKS_MAX {
            let room = GATHERED_BYTES_MIN.max(2 * self.gathered.capacity()).max(bytes.len());
            self.close_gathered();
            self.gathered.reserve_exact(room);
        }
        self.gathered.extend_from_slice(bytes);
    }

    fn close_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.blocks.add_copy(std::mem::take(&mut self.gathered).into());
        }
    }

    /// All arrays, if some are to stay in the value.
    pub(crate) fn take_blocks(&mut self) -> Option<Blocks> {
        self.close_gathered();
        self.blocks.stay().then(|| std::mem::take(&mut self.blocks))
    }

    /// Appends all to the encoding itself, where [`decode_with`](super::decode_with) finds it as
    /// well.
    ///
    /// # Errors
    ///
    /// [`WireError::Encode`]: the value has changed.
    pub(crate) fn append_to(&mut self, bytes: &mut Vec<u8>) -> Result<(), WireError> {
        self.close_gathered();
        let blocks = std::mem::take(&mut self.blocks);
        blocks.for_each(|block| bytes.extend_from_slice(block)).map_err(changed)?;
        let length = std::mem::take(&mut self.bytes);
        if length > 0 {
            bytes.extend_from_slice(&(length as u64).to_le_bytes());
        }
        Ok(())
    }

    /// What has been copied to go beside the encoding, if anything has.
    pub(crate) fn into_array(mut self) -> Option<Array> {
        self.close_gathered();
        self.blocks.into_array()
    }
}

fn changed(_: Changed) -> EncodeError {
    EncodeError::Other(CHANGED)
}

/// The value's encoding, with its arrays at the end.
///
/// # Errors
///
/// [`WireError::Encode`].
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    let (mut bytes, mut beside) = (Vec::new(), Beside::default());
    encode_with(usize::MAX, value, &mut bytes, &mut beside)?;
    beside.append_to(&mut bytes)?;
    Ok(bytes)
}

/// Appends the value's encoding, puts its long arrays beside it, and returns `true` if both
/// together take at most `room` bytes. Otherwise returns `false`.
///
/// # Errors
///
/// [`WireError::Encode`].
pub(crate) fn encode_with<T: Serialize>(
    room: usize,
    value: &T,
    bytes: &mut Vec<u8>,
    beside: &mut Beside,
) -> Result<bool, WireError> {
    wire::encode_with(room, bytes, |encoder| {
        value.serialize(&mut Encoding { encoder, room, beside, one_by_one: 0 })
    })
}

/// A serializer.
struct Encoding<'a, 'b> {
    encoder: &'a mut Encoder<'b>,
    /// The most that may go beside, in bytes.
    room: usize,
    beside: &'a mut Beside,
    /// The length of a long sequence whose elements come next one by one. Only builds for debugging
    /// look at it.
    one_by_one: usize,
}

impl Encoding<'_, '_> {
    /// Puts an array beside the encoding.
    fn put_beside(&mut self, array: &Found<'_>) -> Result<(), EncodeError> {
        if !self.beside.add(array, self.room)? {
            return Err(self.encoder.has_no_room());
        }
        self.encoder.put(array.length as u64 * 2 + 1)?;
        self.encoder.put(array.kind.0)
    }

    /// Puts bytes whose encoding they are.
    fn put_plain(&mut self, array: &Found<'_>) -> Result<(), EncodeError> {
        if array.bytes.len() < BESIDE_BYTES_MIN {
            self.put_length(array.length)?;
            return self.encoder.put_bytes(array.bytes);
        }
        self.put_beside(array)
    }

    /// Puts the length of a sequence of elements that follow.
    fn put_length(&mut self, length: usize) -> Result<(), EncodeError> {
        let doubled = (length as u64).checked_mul(2);
        self.encoder.put(doubled.ok_or(EncodeError::Other("it is longer than all memory"))?)
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

impl Serializer for &mut Encoding<'_, '_> {
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
        self.put_plain(&Found::bytes(text.as_bytes()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.put_plain(&Found::bytes(bytes))
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.encoder.put(0_u8)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        self.encoder.put(1_u8)?;
        value.serialize(self)
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
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        if name == PLAIN_NAME
            && let Some(elements) = find_plain(value)
        {
            return self.put_plain(&elements);
        }
        value.serialize(self)
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
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, EncodeError> {
        let length = length.ok_or_else(wire::without_length)?;
        self.one_by_one = length;
        self.put_length(length)?;
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, EncodeError> {
        self.put_length(length.ok_or_else(wire::without_length)?)?;
        Ok(self)
    }

    /// So the elements of a `Vec` or a slice are asked for, wherever it lies.
    #[inline]
    fn collect_seq<I>(self, elements: I) -> Result<(), EncodeError>
    where
        I: IntoIterator<Item: Serialize>,
    {
        if let Some(array) = find(&elements) {
            if array.bytes.len() >= BESIDE_BYTES_MIN {
                return self.put_beside(&array);
            }
            if array.is_its_encoding() {
                return self.put_plain(&array);
            }
        }
        let elements = elements.into_iter();
        let (least, most) = elements.size_hint();
        self.put_length(most.filter(|most| *most == least).ok_or_else(wire::without_length)?)?;
        self.one_by_one = least;
        for element in elements {
            ser::SerializeSeq::serialize_element(&mut &mut *self, &element)?;
        }
        Ok(())
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
        impl ser::$of for &mut Encoding<'_, '_> {
            type Ok = ();
            type Error = EncodeError;

            $(
                #[inline]
                fn $method<T: Serialize + ?Sized>(
                    &mut self,
                    $(_: $key,)?
                    value: &T,
                ) -> Result<(), EncodeError> {
                    value.serialize(&mut **self)
                }
            )*

            fn end(self) -> Result<(), EncodeError> {
                Ok(())
            }
        }
    )* };
}

impl ser::SerializeSeq for &mut Encoding<'_, '_> {
    type Ok = ();
    type Error = EncodeError;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        if cfg!(debug_assertions) {
            note_one_by_one::<T>(std::mem::take(&mut self.one_by_one));
        }
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), EncodeError> {
        Ok(())
    }
}

/// Says once that a long array is encoded number by number, if that is what is happening.
fn note_one_by_one<T: ?Sized>(length: usize) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let is_array = length >= LONG_ELEMENTS && is_number::<T>();
    if is_array && !IS_SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "{length} numbers of type {} are encoded one by one, which is slow; in a `Vec` they \
             would not be (this is said once, by builds for debugging)",
            type_name::<T>()
        );
    }
}

compound! {
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}
