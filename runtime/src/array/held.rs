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
//! noted when the first array is found, and compared when another is, and at the end.

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

/// The arrays of a value, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Blocks {
    /// The value, if its arrays may stay in it.
    root: Option<Root>,
    /// The bytes of the value when the first that stays was found. They have been the same since.
    value: Option<Vec<u8>>,
    all: Vec<Block>,
}

enum Block {
    /// It stays in the value.
    Stays(Place),
    /// It is a copy, maybe of several arrays.
    Copied(Array),
}

/// An array that has been found in a value.
struct Place {
    elements: *const u8,
    bytes: usize,
    alignment: usize,
}

/// What has become of a value that was [encoded](encode_and_keep).
pub(crate) enum Kept<T> {
    /// It is kept for its arrays, which are this.
    Array(Array),
    /// Its arrays, if any, have been copied.
    Value(T),
    /// It has changed while it was encoded: what was noted may be wrong.
    Changed(T),
}

/// Encodes a value, and keeps it if `encode` returns arrays of which some are to stay there.
pub(crate) fn encode_and_keep<T: Send + 'static, R>(
    value: T,
    encode: impl FnOnce(&T, Root) -> (R, Option<Blocks>),
) -> (R, Kept<T>) {
    let root = Root::of(&value);
    let (encoded, blocks) = encode(&value, root.clone());
    let kept = match blocks {
        None => Kept::Value(value),
        Some(blocks) if blocks.root.as_ref() != Some(&root) || !blocks.is_as_noted() => {
            Kept::Changed(value)
        }
        Some(blocks) => {
            let value = Arc::new(HeldValue(Some(Box::new(value))));
            let blocks = blocks.all.into_iter().map(|block| match block {
                Block::Stays(place) => Array(Arc::new(Held { place, _value: value.clone() })),
                Block::Copied(array) => array,
            });
            Kept::Array(Array::of_blocks(blocks.collect()))
        }
    };
    (encoded, kept)
}

impl Root {
    pub(crate) fn of<T>(value: &T) -> Root {
        let begin = std::ptr::from_ref(value).addr();
        Root(begin..begin + size_of::<T>())
    }

    /// Whether this `Vec` or `String` lies in the value itself.
    fn has(&self, holder: &Root) -> bool {
        self.0.start <= holder.0.start && holder.0.end <= self.0.end
    }

    /// The value's bytes as they are; `None`: they are too many to be noted. Between its fields
    /// there are some that have no content as far as the language knows; so the system reads them.
    fn read(&self) -> Option<Vec<u8>> {
        if self.0.len() > ROOT_BYTES_MAX {
            return None;
        }
        let mut bytes = vec![MaybeUninit::uninit(); self.0.len()];
        let (own, begin) = (rustix::process::getpid(), self.0.start as u64);
        os_memory::read(own, begin, &mut bytes, (begin, &mut [])).ok().map(|bytes| bytes.to_vec())
    }
}

impl Blocks {
    /// Those of this value, of which some may stay in it; `None`: all are copied.
    pub(super) fn of(root: Option<Root>) -> Blocks {
        Blocks { root, ..Blocks::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether some stay in the value.
    pub(super) fn stay(&self) -> bool {
        self.value.is_some()
    }

    /// Adds the array of a `Vec` or `String` that lies at `holder`, and stays there. `Ok(false)`:
    /// it cannot, as it is not in this value itself, or the value is too large to be noted. An
    /// error: the value has changed.
    pub(super) fn add_place(
        &mut self,
        holder: &Root,
        elements: &[u8],
        alignment: usize,
    ) -> Result<bool, Changed> {
        let Some(root) = self.root.as_ref().filter(|root| root.has(holder)) else {
            return Ok(false);
        };
        if self.value.is_none() {
            self.value = root.read();
        } else if !self.is_as_noted() {
            return Err(Changed);
        }
        if self.value.is_none() {
            return Ok(false);
        }
        let (bytes, elements) = (elements.len(), elements.as_ptr());
        self.all.push(Block::Stays(Place { elements, bytes, alignment }));
        Ok(true)
    }

    /// Adds a copy.
    pub(super) fn add_copy(&mut self, array: Array) {
        self.all.push(Block::Copied(array));
    }

    /// Calls `act` with the bytes of each, while the value is still being encoded.
    pub(super) fn for_each(&self, mut act: impl FnMut(&[u8])) -> Result<(), Changed> {
        if !self.is_as_noted() {
            return Err(Changed);
        }
        for block in &self.all {
            match block {
                // SAFETY: Since the value is as it was, it still has the `Vec` with these elements,
                // and no other code runs before `act` has ended.
                Block::Stays(place) => act(unsafe { place.bytes() }),
                Block::Copied(array) => act(array.bytes()),
            }
        }
        Ok(())
    }

    /// All as an array, if there are any, and all are copies.
    pub(super) fn into_array(self) -> Option<Array> {
        let copies = self.all.into_iter().map(|block| match block {
            Block::Stays(_) => None,
            Block::Copied(array) => Some(array),
        });
        copies.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()).map(Array::of_blocks)
    }

    /// Whether nothing has changed in the value since the first was found.
    fn is_as_noted(&self) -> bool {
        self.value.is_none() || self.root.as_ref().and_then(Root::read) == self.value
    }
}

/// The value is not what it was when its arrays were found.
pub(super) struct Changed;

impl Place {
    /// The elements.
    ///
    /// # Safety
    ///
    /// The value still has them.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: The caller says so.
        unsafe { std::slice::from_raw_parts(self.elements, self.bytes) }
    }
}

/// An array in a value that is kept for it.
struct Held {
    place: Place,
    /// Shared by all arrays that stay in it.
    _value: Arc<HeldValue>,
}

// SAFETY: The elements are numbers, which are only read.
unsafe impl Send for Held {}
// SAFETY: As above.
unsafe impl Sync for Held {}

impl Elements for Held {
    fn bytes(&self) -> &[u8] {
        // SAFETY: The value owns the `Vec` with these elements, which stay where they are when the
        // value moves; and nothing has touched it since.
        unsafe { self.place.bytes() }
    }

    fn alignment(&self) -> usize {
        self.place.alignment
    }
}

/// A value that is kept for its arrays. Nothing is done with it but to drop it. `None` once it is.
struct HeldValue(Option<Box<dyn Any + Send>>);

// SAFETY: The value is touched by its drop alone, which has no other reference.
unsafe impl Sync for HeldValue {}

impl Drop for HeldValue {
    /// Arrays are dropped amid all kinds of work. The drop of the value is code of the user's,
    /// which must not run there.
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
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
