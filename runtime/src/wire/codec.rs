//! The encoding: bincode's variable-length format, little endian, through serde.

use bincode::config::{Config, Configuration, Limit, LittleEndian, Varint};
use bincode::de::read::{BorrowReader, Reader};
use bincode::de::{BorrowDecode, BorrowDecoder as _, Decoder as _, DecoderImpl};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::{DecodeError, EncodeError};
use bincode::serde::BorrowCompat;
use serde::{Serialize, de::DeserializeOwned};
use std::ops::Deref;

/// No value may decode to more bytes in memory than this many for each byte on the wire. A number
/// of 16 bytes may have one there. So a length in corrupt bytes cannot make the decoder allocate
/// more than a small multiple of them.
const DECODED_PER_BYTE_MAX: usize = 16;

/// The decoder counts what it is about to allocate, up to this limit, which must be a constant. All
/// but what the bytes at hand may claim is counted beforehand.
const COUNT_MAX: usize = usize::MAX;

const CONFIG: Configuration<LittleEndian, Varint, Limit<COUNT_MAX>> =
    bincode::config::standard().with_limit::<COUNT_MAX>();

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
        DecodeError::LimitExceeded => "a length in it is more than its bytes can have".to_owned(),
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
    let mut decoder = decoder(bytes)?;
    let BorrowCompat(value) = BorrowCompat::borrow_decode(&mut decoder)?;
    *bytes = decoder.borrow_reader().0;
    Ok(value)
}

fn decoder(bytes: &[u8]) -> Result<DecoderImpl<Unread<'_>, impl Config, ()>, WireError> {
    let mut decoder = DecoderImpl::new(Unread(bytes), CONFIG, ());
    // One number more: bytes that end too early are to be told from a length that is too great.
    let claims_max = (bytes.len().saturating_add(1)).saturating_mul(DECODED_PER_BYTE_MAX);
    decoder.claim_bytes_read(COUNT_MAX - claims_max)?;
    Ok(decoder)
}

/// The bytes that are not read yet. (The library's own reader does not tell them.)
struct Unread<'a>(&'a [u8]);

impl<'a> BorrowReader<'a> for Unread<'a> {
    #[inline]
    fn take_bytes(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else {
            return Err(DecodeError::UnexpectedEnd { additional: length - self.0.len() });
        };
        self.0 = rest;
        Ok(taken)
    }
}

impl Reader for Unread<'_> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), DecodeError> {
        bytes.copy_from_slice(self.take_bytes(bytes.len())?);
        Ok(())
    }

    #[inline]
    fn peek_read(&mut self, length: usize) -> Option<&[u8]> {
        self.0.get(..length)
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        self.0 = self.0.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
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

    /// A length in bytes or elements, and nothing behind it.
    fn length(claimed: u64) -> Vec<u8> {
        [&[253][..], &claimed.to_le_bytes()].concat()
    }

    /// Decodes bytes in vain. Returns the most memory that this takes at a time, in bytes.
    fn memory_of_failure<T: DeserializeOwned>(bytes: &[u8]) -> u64 {
        allocation_counter::measure(|| drop(decode::<T>(bytes).err().expect("it is too short")))
            .bytes_max
    }

    #[test]
    fn a_length_without_its_bytes_allocates_next_to_nothing() {
        for claimed in [1 << 16, 1 << 33, 1 << 40, u64::MAX] {
            let bytes = length(claimed);
            for memory in [
                memory_of_failure::<String>(&bytes),
                memory_of_failure::<Box<str>>(&bytes),
                memory_of_failure::<serde_bytes::ByteBuf>(&bytes),
                memory_of_failure::<std::ffi::CString>(&bytes),
                memory_of_failure::<std::path::PathBuf>(&bytes),
                memory_of_failure::<Bytes>(&bytes),
                memory_of_failure::<Array>(&[&[8], &bytes[..]].concat()),
                memory_of_failure::<Message>(&[&[6, 0, 0], &bytes[..]].concat()),
            ] {
                assert!(memory < 1000, "{claimed}: {memory}");
            }
            // Serde itself believes up to a mebibyte.
            for memory in [
                memory_of_failure::<Vec<u8>>(&bytes),
                memory_of_failure::<Vec<u128>>(&bytes),
                memory_of_failure::<Vec<Vec<String>>>(&bytes),
                memory_of_failure::<std::collections::VecDeque<u64>>(&bytes),
                memory_of_failure::<std::collections::HashMap<u64, String>>(&bytes),
                memory_of_failure::<std::collections::BTreeMap<String, u64>>(&bytes),
            ] {
                assert!(memory < 3 << 20, "{claimed}: {memory}");
            }
        }
        let text = decode::<String>(&length(1 << 33)).expect_err("it is too short").to_string();
        assert_eq!(text, "decoding failed: a length in it is more than its bytes can have");
    }

    /// Values that are as small as they can be on the wire, for what they are in memory.
    #[test]
    fn what_has_few_bytes_on_the_wire_is_within_the_limit() {
        #[derive(Serialize, serde::Deserialize, Clone, Copy, Debug, PartialEq)]
        enum Small {
            A(u128),
            B { duration: Duration, pe: Option<usize>, none: () },
        }
        let small = [Small::A(0), Small::B { duration: Duration::ZERO, pe: Some(0), none: () }];
        let value = (small.repeat(1000), vec![(); 1 << 20], vec![0_u64; 1000], vec![0_i128; 1000]);
        let value = (value, vec!['a'; 1000], vec![false; 1000], vec![0_f64; 1000]);
        assert_eq!(decode::<_>(&encode(&value).unwrap()).ok(), Some(value));
        assert_eq!(decode::<u128>(&[0]).ok(), Some(0));
        assert_eq!(decode::<()>(&[]).ok(), Some(()));
    }

    #[test]
    fn bytes_are_decoded_one_value_after_the_other() {
        let bytes = [encode(&7_u64).unwrap(), encode(&"seven").unwrap(), vec![0; 9]].concat();
        let mut rest = &bytes[..];
        assert_eq!(decode_first::<u64>(&mut rest).ok(), Some(7));
        assert_eq!(decode_first::<String>(&mut rest).ok().as_deref(), Some("seven"));
        assert_eq!(rest, [0; 9]);
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
