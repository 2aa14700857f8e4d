//! Decoding a value whose arrays are beside it.

use super::arrived::{Beside, Next};
use super::numbers::{Kind, PLAIN, is_visitor_of_vec, same, with_each_number};
use super::{PLAIN_NAME, hand_over};
use crate::array::Array;
use crate::wire::{self, DecodeError, Decoder, WireError};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The value that these bytes, all of them, and what is beside them stand for. Without an array,
/// what would be in it is [at their end](super::Beside::append_to), if there is any.
///
/// # Errors
///
/// [`WireError::Decode`], or [`WireError::LeftOver`] if the value is shorter.
pub(crate) fn decode_with<T: DeserializeOwned>(
    bytes: &[u8],
    array: Option<Array>,
) -> Result<T, WireError> {
    let mut decoder = Decoder::new(bytes)?;
    let mut beside = Beside::of(bytes, array);
    let value = T::deserialize(&mut Decoding {
        decoder: &mut decoder,
        beside: &mut beside,
        is_plain: false,
    })?;
    match beside.left_over(decoder.rest().len()) {
        0 => Ok(value),
        left => Err(WireError::LeftOver(left)),
    }
}

/// A deserializer.
struct Decoding<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    beside: &'a mut Beside<'de>,
    /// Whether bytes are asked for by [`plain`](crate::plain).
    is_plain: bool,
}

/// Where the elements of a sequence are, or those of a text or bytes.
enum Length {
    /// They follow.
    Inside(usize),
    /// They are beside.
    Beside(usize, Kind),
}

impl<'de> Decoding<'_, 'de> {
    fn take_length(&mut self) -> Result<Length, DecodeError> {
        let doubled = self.decoder.take::<u64>()?;
        let length = usize::try_from(doubled / 2).map_err(|_| DecodeError::LimitExceeded)?;
        if doubled % 2 == 0 {
            return Ok(Length::Inside(length));
        }
        Ok(Length::Beside(length, Kind(self.decoder.take()?)))
    }

    /// The bytes of a text, or bytes, that lie beside.
    fn take_bytes_beside(&mut self, length: usize, kind: Kind) -> Result<Vec<u8>, DecodeError> {
        if kind != PLAIN && kind != Kind(0) {
            return Err(DecodeError::custom("an array of numbers is no text, and no bytes"));
        }
        self.beside.take(length)
    }

    /// Gives a visitor of a sequence the array beside.
    fn visit_beside<V: Visitor<'de>>(
        &mut self,
        length: usize,
        kind: Kind,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let kind = if kind == PLAIN { Kind(0) } else { kind };
        let is_whole = is_visitor_of_vec::<V>(kind);
        let mut number = 0;
        macro_rules! visit {
            ($($number:ty)*) => { $(
                if kind == Kind(number) {
                    let elements = self.beside.take::<$number>(length)?;
                    if is_whole {
                        return same(elements).ok_or(DecodeError::LimitExceeded);
                    }
                    return visitor.visit_seq(Numbers(elements.into_iter()));
                }
                number += 1;
            )* };
        }
        with_each_number!(visit);
        let _ = number;
        Err(DecodeError::custom("an array of an unknown kind is beside it"))
    }
}

/// The methods that take a number.
macro_rules! numbers {
    ($($method:ident: $visit:ident),*) => { $(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(self.decoder.take()?)
        }
    )* };
}

impl<'de> Deserializer<'de> for &mut Decoding<'_, 'de> {
    type Error = DecodeError;

    numbers! {
        deserialize_bool: visit_bool, deserialize_char: visit_char,
        deserialize_f32: visit_f32, deserialize_f64: visit_f64,
        deserialize_i8: visit_i8, deserialize_i16: visit_i16, deserialize_i32: visit_i32,
        deserialize_i64: visit_i64, deserialize_i128: visit_i128,
        deserialize_u8: visit_u8, deserialize_u16: visit_u16, deserialize_u32: visit_u32,
        deserialize_u64: visit_u64, deserialize_u128: visit_u128
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, DecodeError> {
        Err(wire::unknown_type())
    }

    forward_to_deserialize_any! { identifier ignored_any }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.take_length()? {
            Length::Inside(length) => {
                visitor.visit_borrowed_str(wire::text(self.decoder.take_bytes(length)?)?)
            }
            Length::Beside(length, kind) => {
                let bytes = self.take_bytes_beside(length, kind)?;
                let text = String::from_utf8(bytes);
                visitor.visit_string(text.map_err(|error| wire::not_utf8(error.utf8_error()))?)
            }
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let is_plain = std::mem::take(&mut self.is_plain);
        match self.take_length()? {
            Length::Inside(length) => {
                visitor.visit_borrowed_bytes(self.decoder.take_bytes(length)?)
            }
            Length::Beside(length, _) if is_plain => match self.beside.next(length)? {
                Next::Array(array) => hand_over(array, || visitor.visit_bytes(&[])),
                Next::Bytes(bytes) => visitor.visit_bytes(bytes),
            },
            Length::Beside(length, kind) => {
                visitor.visit_byte_buf(self.take_bytes_beside(length, kind)?)
            }
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.decoder.take::<u8>()? {
            0 => visitor.visit_none(),
            1 => visitor.visit_some(self),
            other => Err(DecodeError::custom(format_args!("{other} is neither none nor some"))),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.is_plain = name == PLAIN_NAME;
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.take_length()? {
            Length::Inside(left) => visitor.visit_seq(Elements { decoding: self, left }),
            Length::Beside(length, kind) => self.visit_beside(length, kind, visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.take_length()? {
            Length::Inside(left) => visitor.visit_map(Elements { decoding: self, left }),
            Length::Beside(..) => Err(DecodeError::custom("an array is no map")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Elements { decoding: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Elements { decoding: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Elements { decoding: self, left: fields.len() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> EnumAccess<'de> for &mut Decoding<'_, 'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), DecodeError> {
        let variant = self.decoder.take::<u32>()?;
        Ok((seed.deserialize(variant.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Decoding<'_, 'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, DecodeError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Elements { decoding: self, left })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Elements { decoding: self, left: fields.len() })
    }
}

/// The elements of a sequence, or the entries of a map.
struct Elements<'a, 'b, 'de> {
    decoding: &'a mut Decoding<'b, 'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_, '_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.decoding).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, '_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, DecodeError> {
        seed.deserialize(&mut *self.decoding)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The numbers of an array, one by one, for a visitor that looks at them.
struct Numbers<N>(std::vec::IntoIter<N>);

impl<'de, N: IntoDeserializer<'de, DecodeError>> SeqAccess<'de> for Numbers<N> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        self.0.next().map(|number| seed.deserialize(One(number.into_deserializer()))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// A number, which may be wrapped in a structure of its own.
struct One<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for One<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
