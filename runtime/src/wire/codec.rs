//! The encoding: bincode's variable-length format, little endian, through serde.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::{DecodeError, EncodeError};
use serde::{Serialize, de::DeserializeOwned};
use std::ops::Deref;

/// No value may decode to more than this many bytes in memory, which can be eight times its bytes
/// on the wire. So a length in a corrupt message cannot make the decoder allocate without bound.
const DECODED_BYTES_MAX: usize = 16 << 30;

const CONFIG: Configuration<LittleEndian, Varint, Limit<DECODED_BYTES_MAX>> =
    bincode::config::standard().with_limit::<DECODED_BYTES_MAX>();

/// Why a value could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The value's own `Serialize` failed, or the format cannot express its type.
    #[error("encoding failed: {}", encoding_problem(.0))]
    Encode(#[from] EncodeError),
    /// The bytes are not the encoding of such a value.
    #[error("decoding failed: {}", decoding_problem(.0))]
    Decode(#[from] DecodeError),
    /// The bytes begin with the encoding of such a value, and go on.
    #[error("decoding failed: {0} bytes are left over")]
    LeftOver(usize),
}

/// What a type may have to do with bytes that are not what its `Deserialize` expects.
const SHAPE_HINT: &str = " (serde's `skip_serializing_if`, `flatten`, `untagged` and `tag` do not \
                          work here; see `Portable`)";

impl WireError {
    /// What is wrong with a value of the user's, and what may be wrong with its type: where its
    /// bytes do not fit what its `Deserialize` expects, and were not damaged.
    pub(crate) fn of_a_value(&self) -> String {
        let hint = match self {
            // These have words of their own.
            WireError::Encode(_)
            | WireError::Decode(DecodeError::OtherString(_) | DecodeError::Serde(_)) => "",
            WireError::Decode(_) | WireError::LeftOver(_) => SHAPE_HINT,
        };
        format!("{self}{hint}")
    }
}

/// What is wrong, in words: the library itself prints its error as Rust code.
fn encoding_problem(error: &EncodeError) -> String {
    use bincode::serde::EncodeError::SequenceMustHaveLength;
    match error {
        EncodeError::OtherString(reason) => reason.clone(),
        EncodeError::Serde(SequenceMustHaveLength) => {
            "a sequence or a map does not say its length (`flatten` has this effect)".to_owned()
        }
        other => other.to_string(),
    }
}

/// What is wrong, in words: the library itself prints its error as Rust code.
fn decoding_problem(error: &DecodeError) -> String {
    match error {
        DecodeError::OtherString(reason) => reason.clone(),
        DecodeError::UnexpectedEnd { additional } => {
            format!("the bytes end too early: at least {additional} more are expected")
        }
        DecodeError::LimitExceeded => {
            format!("it would take more than {DECODED_BYTES_MAX} bytes of memory")
        }
        DecodeError::Utf8 { inner } => format!("a text is not UTF-8: {inner}"),
        DecodeError::InvalidBooleanValue(byte) => format!("{byte} is not a boolean"),
        DecodeError::InvalidCharEncoding(_) => "a character is not UTF-8".to_owned(),
        DecodeError::Serde(_) => {
            "its `Deserialize` asks for the type of what comes next, which the bytes do not say \
             (`untagged`, `tag` and `flatten` have this effect)"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// The value's bytes.
///
/// # Errors
///
/// [`WireError::Encode`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// Appends the value's bytes.
///
/// # Errors
///
/// [`WireError::Encode`]; some of the value's bytes may have been appended.
pub fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    encode_within(usize::MAX, value, bytes).map(|_| ())
}

/// The number of the value's bytes, without making them.
///
/// # Errors
///
/// [`WireError::Encode`].
pub fn encoded_len<T: Serialize>(value: &T) -> Result<usize, WireError> {
    let mut counter = SizeWriter::default();
    bincode::serde::encode_into_writer(value, &mut counter, CONFIG)?;
    Ok(counter.bytes_written)
}

/// Appends the value's bytes and returns `true` if they are at most `room`. Otherwise returns
/// `false`, and only some of the bytes are appended.
///
/// # Errors
///
/// [`WireError::Encode`].
pub fn encode_within<T: Serialize>(
    room: usize,
    value: &T,
    bytes: &mut impl ByteSink,
) -> Result<bool, WireError> {
    let bytes_max = bytes.len().saturating_add(room);
    let mut has_room = true;
    let writer = LimitedWriter { bytes, bytes_max, has_room: &mut has_room };
    match bincode::serde::encode_into_writer(value, writer, CONFIG) {
        Err(_) if !has_room => Ok(false),
        encoded => Ok(encoded.map(|()| true)?),
    }
}

/// A buffer to which bytes can be appended.
pub trait ByteSink: Deref<Target = [u8]> {
    /// Appends these bytes.
    fn append(&mut self, bytes: &[u8]);
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Appends to a buffer, up to a limit. (The library's own way through `std::io::Write` takes twice
/// the time.)
struct LimitedWriter<'a, B> {
    bytes: &'a mut B,
    bytes_max: usize,
    has_room: &'a mut bool,
}

impl<B: ByteSink> Writer for LimitedWriter<'_, B> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            *self.has_room = false;
            return Err(EncodeError::UnexpectedEnd);
        }
        self.bytes.append(bytes);
        Ok(())
    }
}

/// The value that these bytes, all of them, stand for.
///
/// # Errors
///
/// [`WireError::Decode`], or [`WireError::LeftOver`] if the value is shorter.
pub fn decode<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<T, WireError> {
    let value = decode_first(&mut bytes)?;
    if bytes.is_empty() { Ok(value) } else { Err(WireError::LeftOver(bytes.len())) }
}

/// The value that the first of these bytes stand for. The others are left in `bytes`.
///
/// # Errors
///
/// [`WireError::Decode`].
pub fn decode_first<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, WireError> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, CONFIG)?;
    *bytes = &bytes[used..];
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Bytes, Fish, Message, Need, Parcel, TaskId, Version};
    use proptest::prelude::*;
    use std::time::Duration;
    use ultramarine_topology::{Distance, Pe};

    fn messages() -> impl Strategy<Value = Message> {
        let fish = (any::<u32>(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
            |(thief, serial, hops_left, starving)| {
                Message::Fish(Fish {
                    thief: Pe::new(thief),
                    serial,
                    hops_left,
                    need: if starving { Need::Idle } else { Need::Ahead },
                    queued: serial,
                    patience: Duration::from_nanos(serial),
                })
            },
        );
        let parcel = (any::<u32>(), any::<u64>(), any::<u8>(), any::<Vec<u8>>()).prop_map(
            |(home, future, radius, body)| Parcel {
                supervised: home % 2 == 0,
                version: Version { replica: home, age: future as u32 },
                task: TaskId { home: Pe::new(home), future },
                radius: Distance::from_exponent(radius),
                body: Bytes::from(body),
            },
        );
        prop_oneof![
            fish,
            parcel.clone().prop_map(Message::Place),
            (any::<u64>(), prop::collection::vec(parcel, 0..4))
                .prop_map(|(serial, tasks)| Message::Schedule { serial, tasks }),
            (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(future, replica, age)| {
                let (version, to) = (Version { replica, age }, Pe::new(age));
                Message::Notify { future, version, to }
            }),
            (any::<u64>(), any::<u32>()).prop_map(|(future, age)| {
                Message::Ack { future, version: Version { replica: 0, age } }
            }),
            (any::<u64>(), any::<Vec<u8>>())
                .prop_map(|(future, b)| Message::Result { future, outcome: Ok(Bytes::from(b)) }),
        ]
    }

    proptest! {
        #[test]
        fn what_was_encoded_decodes(message in messages()) {
            let bytes = encode(&message).unwrap();
            prop_assert_eq!(decode::<Message>(&bytes).unwrap(), message);
        }

        #[test]
        fn garbage_is_an_error_or_a_message_but_never_a_panic(bytes: Vec<u8>) {
            let _ = decode::<Message>(&bytes);
        }

        #[test]
        fn a_truncated_message_is_an_error(message in messages()) {
            let bytes = encode(&message).unwrap();
            prop_assert!(decode::<Message>(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_huge_length_is_refused_before_anything_is_allocated() {
        let mut bytes = vec![6, 0, 0, 253];
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(decode::<Message>(&bytes).is_err());
    }

    #[test]
    fn errors_are_told_in_words() {
        let text = |error: WireError| error.to_string();
        let early = decode::<u64>(&[]).unwrap_err();
        assert_eq!(
            text(early),
            "decoding failed: the bytes end too early: at least 1 more are expected"
        );
        let boolean = decode::<bool>(&[7]).unwrap_err();
        assert_eq!(text(boolean), "decoding failed: 7 is not a boolean");
        let odd = decode::<std::num::NonZeroU8>(&[0]).unwrap_err();
        assert!(!text(odd).contains("OtherString"), "the program's own words");
    }

    #[test]
    fn left_over_bytes_are_an_error() {
        assert!(matches!(decode::<u8>(&[1, 2]), Err(WireError::LeftOver(1))));
    }

    #[test]
    fn the_hint_about_types_stands_only_where_it_fits() {
        struct Refusing;
        impl Serialize for Refusing {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("not today"))
            }
        }
        let refused = encode(&Refusing).expect_err("it refuses").of_a_value();
        assert_eq!(refused, "encoding failed: not today");
        for bytes in [&[1, 2, 3][..], &[]] {
            let error = decode::<u64>(bytes).expect_err("it is no number");
            assert!(error.of_a_value().ends_with(SHAPE_HINT), "{error}");
        }
    }
}
