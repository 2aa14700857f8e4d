//! Values ↔ bytes: the protocol's messages, and the program's arguments and results.
//!
//! Only `codec.rs` knows the encoding. It limits sizes, and it trusts no length that it reads.

mod codec;
#[cfg(test)]
mod tests;

pub(crate) use codec::{
    DecodeError, Decoder, EncodeError, Encoder, encode_with, not_utf8, text, unknown_type,
    without_length,
};
pub use codec::{WireError, decode, decode_first, encode, encode_into, encode_within, encoded_len};
