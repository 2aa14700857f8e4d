//! Numbers that several parts know.

/// The version of all that lies in an arena.
pub(crate) const LAYOUT_VERSION: u64 = 2;

/// The largest number of workers at a time.
pub const WORKERS_MAX: usize = 256;

/// Longest name of a set.
pub(crate) const NAME_BYTES_MAX: usize = 128;
