//! The atomics of this crate; Loom's with the same names, which try all interleavings; or, in unit
//! tests, those of [`crash`](crate::crash), which can end the process after any store.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{Ordering, fence},
};

#[cfg(not(any(loom, test)))]
pub(crate) use std::sync::atomic::AtomicU64;

#[cfg(all(test, not(loom)))]
pub(crate) use crate::crash::AtomicU64;

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// Bits that one compare-and-swap changes. Loom has no atomics of 128 bits: under it, 64 must do.
#[cfg(not(loom))]
pub(crate) type Bits = u128;
#[cfg(all(test, not(loom)))]
pub(crate) use crate::crash::AtomicBits;
#[cfg(not(any(loom, test)))]
pub(crate) use portable_atomic::AtomicU128 as AtomicBits;

#[cfg(loom)]
pub(crate) type Bits = u64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64 as AtomicBits;

/// Writes content that no word names yet: a death in the middle is like one before.
#[cfg(not(loom))]
pub(crate) fn fill(word: &AtomicU64, value: u64) {
    #[cfg(test)]
    word.fill(value);
    #[cfg(not(test))]
    word.store(value, Ordering::Relaxed);
}

/// A sequentially consistent load. Loom has none; what it has instead is a change that changes
/// nothing.
pub(crate) fn load(word: &AtomicU64) -> u64 {
    #[cfg(not(loom))]
    return word.load(Ordering::SeqCst);
    #[cfg(loom)]
    word.fetch_add(0, Ordering::SeqCst)
}
