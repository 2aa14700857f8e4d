//! The beginning of a journal: what it belongs to. The format is a table in the crate's
//! documentation.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What every journal begins with. The first byte is no text, so that no text begins so.
const MAGIC: [u8; 8] = *b"\x8bUMJRNL\n";

/// The version of the format that this crate writes. It reads the earlier ones, too.
pub(crate) const VERSION: u32 = 2;

/// The magic, the version and the header's length, with the checksum of these.
const PREFIX_BYTES: usize = 24;

/// A header without names, in bytes.
const BARE_BYTES: usize = PREFIX_BYTES + 8 + 8 + 8 + 16 + 3 * 4 + 8;

/// The longest header, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 1 << 20;

/// What a journal belongs to. A journal is opened only by the call that has begun it.
///
/// The three names have at most 1,048,000 bytes together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name of the program.
    pub program: String,
    /// The type name of the function that is applied to the items.
    pub call: String,
    /// The type name of a result.
    pub result: String,
    /// The number of items.
    pub items: u64,
    /// What [`Digest`] makes of the input.
    pub digest: u128,
}

impl Identity {
    /// The number of items of a journal whose owner does not know it before.
    pub const ANY_NUMBER: u64 = u64::MAX - 1;

    /// What differs from the identity of the caller, with both values, or nothing.
    pub(crate) fn differences(&self, callers: &Identity) -> Option<String> {
        let name = |what: &str, own: &String, callers: &String| {
            (own != callers).then(|| format!("its {what} is `{own}`, and not `{callers}`"))
        };
        let items = (self.items != callers.items)
            .then(|| format!("it is for {} items, and not {}", self.items, callers.items));
        let input = (self.digest != callers.digest).then(|| "its input differs".to_owned());
        let all = [
            name("program", &self.program, &callers.program),
            name("function", &self.call, &callers.call),
            name("result", &self.result, &callers.result),
            items,
            input,
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// A 128-bit digest of an input in parts, by xxh3. It finds accidents and no attacks.
///
/// ```
/// use ultramarine_journal::Digest;
///
/// let digest = |parts: &[&str]| {
///     let mut digest = Digest::default();
///     parts.iter().for_each(|part| digest.add(part.as_bytes()));
///     digest.finish()
/// };
/// assert_eq!(digest(&["ab", "c"]), digest(&["ab", "c"]));
/// assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
/// ```
#[derive(Clone, Default)]
pub struct Digest(Xxh3);

impl Digest {
    /// Adds the bytes of the next part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// The digest of all that was added.
    pub fn finish(&self) -> u128 {
        self.0.digest128()
    }
}

/// A header, as it is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// A random number. Each record begins with it, and its checksums depend on it.
    pub(crate) mark: u64,
    pub(crate) begun_unix_s: u64,
    pub(crate) identity: Identity,
    /// The length of the header in the file, in bytes.
    pub(crate) length: usize,
}

/// Why the beginning of a file is no header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// There is nothing, or the beginning of a header, or a damaged header and nothing behind it.
    Unbegun,
    NoJournal,
    UnknownVersion(u32),
    Damaged,
}

impl Header {
    /// The header of a journal that begins now.
    ///
    /// # Panics
    /// If the names have more than 1,048,000 bytes.
    pub(crate) fn new(identity: &Identity, mark: u64) -> Self {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let names = identity.program.len() + identity.call.len() + identity.result.len();
        let length = BARE_BYTES + names;
        assert!(length <= HEADER_BYTES_MAX, "the names have {names} bytes");
        Header { mark, begun_unix_s: begun.as_secs(), identity: identity.clone(), length }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Identity { program, call, result, items, digest } = &self.identity;
        let mut bytes = Vec::with_capacity(self.length);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.length as u32).to_le_bytes());
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes.extend(self.mark.to_le_bytes());
        bytes.extend(self.begun_unix_s.to_le_bytes());
        bytes.extend(items.to_le_bytes());
        bytes.extend(digest.to_le_bytes());
        for name in [program, call, result] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        assert_eq!(bytes.len(), self.length);
        bytes
    }

    /// The header at the beginning of these bytes: of the whole file, or of its first
    /// [`HEADER_BYTES_MAX`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let common = bytes.len().min(MAGIC.len());
        if bytes[..common] != MAGIC[..common] {
            return Err(HeaderError::NoJournal);
        }
        let mut fields = Fields(&bytes[common..]);
        // The place of the version is the same in all formats. All that follows is not.
        let version = fields
            .number()
            .map_or(Err(HeaderError::Unbegun), |field| Ok(u32::from_le_bytes(field)))?;
        if !(1..=VERSION).contains(&version) {
            return Err(HeaderError::UnknownVersion(version));
        }
        if bytes.len() < PREFIX_BYTES {
            return Err(HeaderError::Unbegun);
        }
        let length = fields.number().map(u32::from_le_bytes).ok_or(HeaderError::Damaged)? as usize;
        // If the length were damaged, a file with records could be taken for one without a header.
        if fields.number().map(u64::from_le_bytes) != Some(xxh3_64(&bytes[..16])) {
            return Err(HeaderError::Damaged);
        }
        if length > HEADER_BYTES_MAX {
            return Err(HeaderError::Damaged);
        }
        let whole = bytes.get(..length).ok_or(HeaderError::Unbegun)?;
        let (covered, sum) = whole.split_last_chunk().ok_or(HeaderError::Damaged)?;
        if xxh3_64(covered) != u64::from_le_bytes(*sum) {
            // The header is on the disk before the first record is written.
            let has_records = bytes.len() > length;
            return Err(if has_records { HeaderError::Damaged } else { HeaderError::Unbegun });
        }
        fields.rest(length).ok_or(HeaderError::Damaged)
    }
}

/// The bytes that are still to be decoded.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn name(&mut self) -> Option<String> {
        let length = u32::from_le_bytes(self.number()?) as usize;
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(name.to_vec()).ok()
    }

    /// All that follows the prefix.
    fn rest(&mut self, length: usize) -> Option<Header> {
        let mark = u64::from_le_bytes(self.number()?);
        let begun_unix_s = u64::from_le_bytes(self.number()?);
        let items = u64::from_le_bytes(self.number()?);
        let digest = u128::from_le_bytes(self.number()?);
        let [program, call, result] = [self.name()?, self.name()?, self.name()?];
        let identity = Identity { program, call, result, items, digest };
        Some(Header { mark, begun_unix_s, identity, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let [program, call, result] = ["größe", "größe::main::f", "u64"].map(str::to_owned);
        Header::new(&Identity { program, call, result, items: 10, digest: 1 << 100 }, 0x4711)
    }

    #[test]
    fn a_header_comes_back_and_its_beginning_counts_as_none() {
        let header = header();
        let mut bytes = header.encode();
        for length in 0..bytes.len() {
            assert_eq!(Header::decode(&bytes[..length]), Err(HeaderError::Unbegun), "{length}");
        }
        bytes.extend(b"records");
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn a_header_with_a_wrong_byte_is_refused() {
        let mut whole = header().encode();
        whole.extend(b"records");
        for index in 0..whole.len() - b"records".len() {
            let mut bytes = whole.clone();
            bytes[index] ^= 0x20;
            let found = Header::decode(&bytes);
            match index {
                0..8 => assert_eq!(found, Err(HeaderError::NoJournal)),
                8..12 => assert!(matches!(found, Err(HeaderError::UnknownVersion(_)))),
                _ => assert_eq!(found, Err(HeaderError::Damaged)),
            }
        }
        assert_eq!(Header::decode(b"a text"), Err(HeaderError::NoJournal));
    }

    #[test]
    fn a_damaged_header_without_records_holds_nothing() {
        let mut bytes = header().encode();
        let length = bytes.len();
        bytes[100..].fill(0);
        assert_eq!(Header::decode(&bytes), Err(HeaderError::Unbegun));
        bytes.push(0);
        assert_eq!(Header::decode(&bytes), Err(HeaderError::Damaged), "{length}");
    }

    #[test]
    fn every_difference_is_named() {
        let own = header().identity;
        assert_eq!(own.differences(&own), None);
        let call = "g".to_owned();
        let other = Identity { call, items: 20, digest: 7, ..own.clone() };
        let text = "its function is `größe::main::f`, and not `g`; it is for 10 items, and not 20; \
                    its input differs";
        assert_eq!(own.differences(&other).as_deref(), Some(text));
    }
}
