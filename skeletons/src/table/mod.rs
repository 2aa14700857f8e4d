//! A table that is spread over all PEs, and outlives some of them.
//!
//! A table must never know what its keys and values are for.

#[doc(hidden)]
pub mod machine;
