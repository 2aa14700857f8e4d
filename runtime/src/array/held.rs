//! Arrays that stay within the value that holds them, while they are sent.
//!
//! A tuple or a structure that is sent has its arrays somewhere in its memory. To copy them from
//! there (first into memory of their own, and by the receiver then) would take twice the time. So
//! the value itself is kept instead, untouched, until the receiver has its copy.
//!
//! That is right only if nothing frees or moves the elements before. They are those of a `Vec` or a
//! `String`. It lies in the [value's own bytes](Root), not behind a pointer, so the value owns it,
//! and no other code has the value. Only code that has run since the array was found might have
//! changed it: the rest of the value's own `Serialize`, by a `Cell`, say. So the value's bytes are
//! noted when the array is found, and compared at the end.

#![allow(unsafe_code)]

use super::{Array, Elements};
use crate::lock::Lock;
use crate::os_memory;
use std::any::Any;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest value in which arrays are looked for, in bytes, without what is behind pointers.
const ROOT_BYTES_MAX: usize = 4 << 10;

/// Where a value lies, without what is behind pointers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Root(Range<usize>);

/// An array that has been found in a value.
pub(crate) struct Place {
    root: Root,
    elements: *const u8,
    bytes: usize,
    alignment: usize,
    /// The bytes of the value by then.
    value: Vec<u8>,
}

/// What has become of a value that was [encoded](encode_and_keep).
pub(crate) enum Kept<T> {
    /// It is kept for its array.
    Array(Array),
    /// Its arrays, if any, have been copied.
    Value(T),
    /// It has changed while it was encoded: what was noted may be wrong.
    Changed(T),
}

/// Encodes a value, and keeps it if `encode` returns that one of its arrays is to stay there.
pub(crate) fn encode_and_keep<T: Send + 'static, R>(
    value: T,
    encode: impl FnOnce(&T, Root) -> (R, Option<Place>),
) -> (R, Kept<T>) {
    let root = Root::of(&value);
    let (encoded, place) = encode(&value, root.clone());
    let kept = match place {
        None => Kept::Value(value),
        Some(place) if place.root != root || !place.is_as_noted() => Kept::Changed(value),
        Some(Place { elements, bytes, alignment, .. }) => {
            let value: Box<dyn Any + Send> = Box::new(value);
            Kept::Array(Array(Arc::new(Held { value: Some(value), elements, bytes, alignment })))
        }
    };
    (encoded, kept)
}

impl Root {
    pub(crate) fn of<T>(value: &T) -> Root {
        let begin = std::ptr::from_ref(value).addr();
        Root(begin..begin + size_of::<T>())
    }

    /// Notes the array of a `Vec` or `String` that lies at `holder`. `None`: it is not in this
    /// value itself, or the value is too large to be noted.
    pub(super) fn note(&self, holder: &Root, elements: &[u8], alignment: usize) -> Option<Place> {
        let is_within = self.0.start <= holder.0.start && holder.0.end <= self.0.end;
        let value = if is_within { self.read()? } else { return None };
        let (bytes, elements) = (elements.len(), elements.as_ptr());
        Some(Place { root: self.clone(), elements, bytes, alignment, value })
    }

    /// The value's bytes as they are. Between its fields there are some that have no content as far
    /// as the language knows; so the system reads them.
    fn read(&self) -> Option<Vec<u8>> {
        if self.0.len() > ROOT_BYTES_MAX {
            return None;
        }
        let mut bytes = vec![MaybeUninit::uninit(); self.0.len()];
        let (own, begin) = (rustix::process::getpid(), self.0.start as u64);
        os_memory::read(own, begin, &mut bytes, (begin, &mut [])).ok().map(|bytes| bytes.to_vec())
    }
}

impl Place {
    /// The number of bytes of the elements.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether nothing has changed in the value since the array was found.
    fn is_as_noted(&self) -> bool {
        self.root.read().is_some_and(|value| value == self.value)
    }

    /// Calls `act` with the elements, while the value is still being encoded. `None`: it has
    /// changed.
    pub(super) fn with<R>(&self, act: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: Since the value is as it was, it still has the `Vec` with these elements, and no
        // other code runs before `act` has ended.
        let elements = || unsafe { std::slice::from_raw_parts(self.elements, self.bytes) };
        self.is_as_noted().then(|| act(elements()))
    }
}

/// A value that is kept for one of its arrays. Nothing is done with it but to drop it.
struct Held {
    /// `None` once it is dropped.
    value: Option<Box<dyn Any + Send>>,
    elements: *const u8,
    bytes: usize,
    alignment: usize,
}

// SAFETY: The value can be sent, and is touched by its drop alone, which has no other reference.
// The elements are numbers, which are only read.
unsafe impl Send for Held {}
// SAFETY: As above.
unsafe impl Sync for Held {}

impl Elements for Held {
    fn bytes(&self) -> &[u8] {
        // SAFETY: The value owns the `Vec` with these elements, which stay where they are when the
        // value moves; and nothing has touched it since.
        unsafe { std::slice::from_raw_parts(self.elements, self.bytes) }
    }

    fn alignment(&self) -> usize {
        self.alignment
    }
}

impl Drop for Held {
    /// Arrays are dropped amid all kinds of work. The drop of the value is code of the user's,
    /// which must not run there.
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            LEFT.lock().push(value);
            ARE_LEFT.store(true, Ordering::Release);
        }
    }
}

static LEFT: Lock<Vec<Box<dyn Any + Send>>> = Lock::new(Vec::new());
static ARE_LEFT: AtomicBool = AtomicBool::new(false);

/// The values whose arrays are not needed any more. The caller drops them, where user code may run.
pub(crate) fn take_left() -> Vec<Box<dyn Any + Send>> {
    if !ARE_LEFT.load(Ordering::Relaxed) || !ARE_LEFT.swap(false, Ordering::Acquire) {
        return Vec::new();
    }
    std::mem::take(&mut *LEFT.lock())
}
