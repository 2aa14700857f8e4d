//! Values that are kept encoded.

use super::Array;
use super::within::{self, Beside, PLAIN_NAME, PlainElements, take_handed_over_array};
use crate::wire::WireError;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;
use std::fmt;
use std::sync::Arc;

/// A value as it was when it was encoded. Clones share the memory, also with messages while they
/// are sent: a long array in the value is copied once, when the value is encoded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Encoded {
    few: Arc<Vec<u8>>,
    /// The arrays of the value. `None`: if there are any, they are at the end of `few`.
    beside: Option<Array>,
}

impl Encoded {
    /// Encodes a value.
    ///
    /// # Errors
    ///
    /// [`WireError::Encode`]: the value's `Serialize` says so.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, WireError> {
        let (mut few, mut beside) = (Vec::new(), Beside::default());
        within::encode_with(usize::MAX, value, &mut few, &mut beside)?;
        Ok(Encoded { few: Arc::new(few), beside: beside.into_array() })
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// It is of another type, or its `Deserialize` says so.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        within::decode_with(&self.few, self.beside.clone())
    }

    /// All in one piece, for a file, say.
    pub fn to_bytes(&self) -> Vec<u8> {
        let blocks = self.beside.iter().flat_map(Array::blocks).map(Array::bytes);
        let beside: usize = blocks.clone().map(<[u8]>::len).sum();
        let mut bytes = Vec::with_capacity(self.few.len() + beside + size_of::<u64>());
        bytes.extend_from_slice(&self.few);
        blocks.for_each(|block| bytes.extend_from_slice(block));
        if beside > 0 {
            bytes.extend_from_slice(&(beside as u64).to_le_bytes());
        }
        bytes
    }

    /// What was made [one piece](Self::to_bytes). Whether it stands for a value is seen when it is
    /// [decoded](Self::decode).
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Encoded { few: Arc::new(bytes), beside: None }
    }

    /// The number of bytes.
    pub fn size_bytes(&self) -> usize {
        self.few.len() + self.beside.as_ref().map_or(0, Array::size_bytes)
    }
}

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let blocks = self.beside.as_ref().map_or(&[][..], Array::blocks);
        let blocks: Vec<_> = blocks.iter().map(SharedBlock).collect();
        (serde_bytes::Bytes::new(&self.few), blocks).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (few, blocks) = <(ByteBuf, Vec<OwnBlock>)>::deserialize(from)?;
        let blocks: Vec<_> = blocks.into_iter().map(|OwnBlock(block)| block).collect();
        let beside = (!blocks.is_empty()).then(|| Array::of_blocks(blocks));
        Ok(Encoded { few: Arc::new(few.into_vec()), beside })
    }
}

/// A block, which a message shares.
struct SharedBlock<'a>(&'a Array);

impl Serialize for SharedBlock<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (bytes, alignment, shared) = (self.0.bytes(), self.0.alignment(), Some(self.0));
        let elements = PlainElements { bytes, alignment, holder: None, shared };
        to.serialize_newtype_struct(PLAIN_NAME, &elements)
    }
}

/// A block that has come. It may be aligned to less than it was.
struct OwnBlock(Array);

impl<'de> Deserialize<'de> for OwnBlock {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(PLAIN_NAME, BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = OwnBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<OwnBlock, D::Error> {
        from.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<OwnBlock, E> {
        Ok(OwnBlock(take_handed_over_array().unwrap_or_else(|| bytes.to_vec().into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;
    use proptest::prelude::*;

    type Value = (Vec<u64>, Vec<String>, Option<Vec<u32>>, Vec<Vec<u8>>);

    proptest! {
        #[test]
        fn a_value_comes_back_in_pieces_and_in_one_also_within_another(
            long: Vec<u64>,
            texts: Vec<String>,
            numbers: Option<Vec<u32>>,
            many in prop::collection::vec(0..20_000_usize, 0..8),
        ) {
            let long = long.repeat(100);
            let many: Vec<_> = many.into_iter().map(|length| vec![7; length]).collect();
            let value = (long, texts, numbers, many);
            let encoded = Encoded::of(&value).expect("it can be encoded");
            let is_whole = |encoded: &Encoded| {
                let read: Value = encoded.decode().expect("it was encoded");
                assert!(read == value, "it is another value");
            };
            is_whole(&encoded);
            let bytes = encoded.to_bytes();
            is_whole(&Encoded::from_bytes(bytes));
            let one_by_one = wire::encode(&encoded).expect("it can be encoded");
            is_whole(&wire::decode(&one_by_one).expect("it was encoded"));
            let within = Encoded::of(&(1, &encoded)).expect("it can be encoded");
            is_whole(&within.decode::<(u8, Encoded)>().expect("it was encoded").1);
        }
    }

    #[test]
    fn a_message_shares_the_arrays() {
        let encoded = Encoded::of(&vec![0.5; 100_000]).expect("it can be encoded");
        let own = encoded.beside.as_ref().expect("it is long").bytes().as_ptr();
        let message = Encoded::of(&(1, encoded.clone())).expect("it can be encoded");
        assert_eq!(message.beside.expect("it is long").bytes().as_ptr(), own);
    }
}
