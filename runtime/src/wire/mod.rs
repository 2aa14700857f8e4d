//! Values ↔ bytes: the protocol's messages, and the users' arguments and results.
//!
//! `codec` is the only file that knows the encoding. It has size limits and never trusts a
//! length that it read.

mod codec;

pub use codec::{ByteSink, WireError, decode, decode_first, encode, encode_into, encode_within};
