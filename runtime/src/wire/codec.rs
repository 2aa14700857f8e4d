//! The encoding: bincode's variable-length format, little endian, through serde.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::de::read::{BorrowReader, Reader};
use bincode::de::{BorrowDecode, BorrowDecoder as _, Decode, Decoder as _, DecoderImpl};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::enc::{Encode, Encoder as _, EncoderImpl};
use bincode::serde::BorrowCompat;
use serde::{Serialize, de::DeserializeOwned};
use std::str::Utf8Error;

pub(crate) use bincode::error::{DecodeError, EncodeError};

/// No value may decode to more bytes in memory than this many for each byte on the wire. A number
/// of 16 bytes may have one there. So a length in corrupt bytes cannot make the decoder allocate
/// more than a small multiple of them.
const DECODED_PER_BYTE_MAX: usize = 16;

/// The decoder counts what it is about to allocate, up to this limit, which must be a constant. All
/// but what the bytes at hand may claim is counted beforehand.
const COUNT_MAX: usize = usize::MAX;

type Format = Configuration<LittleEndian, Varint, Limit<COUNT_MAX>>;

const FORMAT: Format = bincode::config::standard().with_limit::<COUNT_MAX>();

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
pub(super) const SHAPE_HINT: &str = " (serde's `skip_serializing_if`, `flatten`, `untagged` and \
                                     `tag` do not work here; see `Portable`)";

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
        EncodeError::Other(reason) => (*reason).to_owned(),
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
    bincode::serde::encode_into_writer(value, &mut counter, FORMAT)?;
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
    bytes: &mut Vec<u8>,
) -> Result<bool, WireError> {
    encode_with(room, bytes, |encoder| BorrowCompat(value).encode(&mut encoder.0))
}

/// As [`encode_within`], for what `put` writes.
pub(crate) fn encode_with(
    room: usize,
    bytes: &mut Vec<u8>,
    put: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<bool, WireError> {
    let bytes_max = bytes.len().saturating_add(room);
    let mut has_room = true;
    let writer = LimitedWriter { bytes, bytes_max, has_room: &mut has_room };
    match put(&mut Encoder(EncoderImpl::new(writer, FORMAT))) {
        Err(_) if !has_room => Ok(false),
        encoded => Ok(encoded.map(|()| true)?),
    }
}

/// Writes numbers and bytes, of which serializers make all else.
pub(crate) struct Encoder<'a>(EncoderImpl<LimitedWriter<'a>, Format>);

impl Encoder<'_> {
    /// Writes a number, a boolean or a character.
    #[inline]
    pub(crate) fn put(&mut self, number: impl Encode) -> Result<(), EncodeError> {
        number.encode(&mut self.0)
    }

    /// Writes bytes as they are, without their length.
    #[inline]
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.writer().write(bytes)
    }

    /// The error of what has no room.
    pub(crate) fn has_no_room(&mut self) -> EncodeError {
        *self.0.writer().has_room = false;
        EncodeError::UnexpectedEnd
    }
}

/// The error of a sequence or a map that does not say its length.
pub(crate) fn without_length() -> EncodeError {
    bincode::serde::EncodeError::SequenceMustHaveLength.into()
}

/// The error of a `Deserialize` that asks for the type of what comes next.
pub(crate) fn unknown_type() -> DecodeError {
    bincode::serde::DecodeError::AnyNotSupported.into()
}

/// The text that these bytes are.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(not_utf8)
}

/// The error of bytes that are no text.
pub(crate) fn not_utf8(inner: Utf8Error) -> DecodeError {
    DecodeError::Utf8 { inner }
}

/// Reads what an [`Encoder`] wrote.
pub(crate) struct Decoder<'de>(DecoderImpl<Unread<'de>, Format, ()>);

impl<'de> Decoder<'de> {
    pub(crate) fn new(bytes: &'de [u8]) -> Result<Self, WireError> {
        decoder(bytes).map(Decoder)
    }

    /// Reads a number, a boolean or a character.
    #[inline]
    pub(crate) fn take<N: Decode<()>>(&mut self) -> Result<N, DecodeError> {
        N::decode(&mut self.0)
    }

    /// Reads this many bytes.
    #[inline]
    pub(crate) fn take_bytes(&mut self, length: usize) -> Result<&'de [u8], DecodeError> {
        self.0.claim_bytes_read(length)?;
        self.0.borrow_reader().take_bytes(length)
    }

    /// The bytes that are not read yet.
    pub(crate) fn rest(mut self) -> &'de [u8] {
        self.0.borrow_reader().0
    }
}

/// Appends to a buffer, up to a limit. (The library's own way through `std::io::Write` takes twice
/// the time.)
struct LimitedWriter<'a> {
    bytes: &'a mut Vec<u8>,
    bytes_max: usize,
    has_room: &'a mut bool,
}

impl Writer for LimitedWriter<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            *self.has_room = false;
            return Err(EncodeError::UnexpectedEnd);
        }
        self.bytes.extend_from_slice(bytes);
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

fn decoder(bytes: &[u8]) -> Result<DecoderImpl<Unread<'_>, Format, ()>, WireError> {
    let mut decoder = DecoderImpl::new(Unread(bytes), FORMAT, ());
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
