//! What may lie in shared memory: types of atomics alone, for which any bytes are a value.
//!
//! A reference to one of them is always valid, whatever another process writes there, dies in the
//! middle of, or has damaged. What the numbers mean is for the reader to check.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use crate::barrier::Barrier;
use crate::queue::Queue;
use crate::sync::{AtomicBits, AtomicU64};

/// # Safety
///
/// The type is made of atomics alone, in a layout that is the same in each process of a build.
pub(crate) unsafe trait Shared: Sync {}

// SAFETY: It is an atomic.
unsafe impl Shared for AtomicU64 {}
// SAFETY: As above.
unsafe impl Shared for AtomicBits {}
// SAFETY: An array has its elements and nothing else.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}
// SAFETY: It is `repr(C)`, of atomics.
unsafe impl Shared for Queue {}
// SAFETY: It is `repr(C)`, of atomics.
unsafe impl<const N: usize> Shared for Barrier<N> {}

/// Declares a struct that may lie in shared memory.
macro_rules! shared {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        #[allow(unsafe_code)]
        // SAFETY: It is `repr(C)`, and each field is `Shared`, as the compiler checks here.
        unsafe impl $crate::mapped::shared::Shared for $name
        where
            $($type: $crate::mapped::shared::Shared,)*
        {
        }
    };
}
pub(crate) use shared;

/// Where something of type `T` lies in the arena, in bytes from its beginning. It may be wrong:
/// [`Space::get`](crate::mapped::arena::Space::get) checks it.
pub(crate) struct Offset<T> {
    bytes: u64,
    of: PhantomData<fn() -> T>,
}

impl<T> Offset<T> {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, of: PhantomData }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }
}

impl<T> Clone for Offset<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Offset<T> {}

impl<T> PartialEq for Offset<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> fmt::Debug for Offset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.bytes)
    }
}
