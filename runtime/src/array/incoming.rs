//! Arrays that are received part by part.

#![allow(unsafe_code)]

use super::Array;
use crate::os_memory::prefer_huge_pages;
use bytemuck::Pod;
use std::mem::MaybeUninit;

/// An array that is received part by part. Its memory is written once: a large one is not filled
/// with zeros first. (That took 20 of the 160 µs that 800 kB took to another process.)
pub struct IncomingArray {
    elements: Box<dyn Growing>,
    /// The number of bytes that have arrived, and of all bytes.
    arrived: usize,
    bytes: usize,
}

/// A `Vec` of any type of elements, with room for all that are to come.
trait Growing: Send {
    /// The room, in bytes.
    fn room(&mut self) -> &mut [MaybeUninit<u8>];
    /// The array of this many first bytes of the room.
    ///
    /// # Safety
    ///
    /// They have been written, and are whole elements.
    unsafe fn into_array(self: Box<Self>, bytes: usize) -> Array;
}

impl<T: Pod + Send + Sync> Growing for Vec<T> {
    fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        let room = self.spare_capacity_mut();
        let (begin, bytes) = (room.as_mut_ptr().cast(), size_of_val(room));
        // SAFETY: It is the same memory, and bytes may lie anywhere and need no content.
        unsafe { std::slice::from_raw_parts_mut(begin, bytes) }
    }

    unsafe fn into_array(mut self: Box<Self>, bytes: usize) -> Array {
        // SAFETY: The caller says that they are there, and all bytes are elements of this type.
        unsafe { self.set_len(bytes / size_of::<T>()) };
        (*self).into()
    }
}

impl IncomingArray {
    /// An array of this many bytes in all. `None`: no array has this length and alignment.
    pub fn new(bytes: usize, alignment: usize) -> Option<IncomingArray> {
        fn with_room<T: Pod + Send + Sync>(bytes: usize) -> Box<dyn Growing> {
            let mut elements = Vec::<T>::with_capacity(bytes / size_of::<T>());
            prefer_huge_pages(elements.spare_capacity_mut());
            Box::new(elements)
        }
        let with_room = match alignment {
            1 => with_room::<u8>,
            2 => with_room::<u16>,
            4 => with_room::<u32>,
            8 => with_room::<u64>,
            16 => with_room::<u128>,
            _ => return None,
        };
        let is_whole = bytes.is_multiple_of(alignment);
        is_whole.then(|| IncomingArray { elements: with_room(bytes), arrived: 0, bytes })
    }

    /// The number of bytes that are still to come.
    pub fn missing(&self) -> usize {
        self.bytes - self.arrived
    }

    /// Takes the next bytes.
    ///
    /// # Panics
    ///
    /// There are more bytes than are missing.
    pub fn take(&mut self, bytes: &[u8]) {
        self.fill(bytes.len(), |room| {
            assert_eq!(room.len(), bytes.len(), "no more bytes come than are missing");
            let into = room.as_mut_ptr().cast::<u8>();
            // SAFETY: Both have this length, and the room is borrowed by this function alone.
            Some(unsafe {
                into.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                std::slice::from_raw_parts_mut(into, bytes.len())
            })
        });
    }

    /// Has `write` write the next bytes: at most `bytes_max`, and as many as are missing. It
    /// returns what it was given, written; `None`: it could not. Returns whether it could.
    ///
    /// # Panics
    ///
    /// `write` returns something else.
    pub fn fill(
        &mut self,
        bytes_max: usize,
        write: impl FnOnce(&mut [MaybeUninit<u8>]) -> Option<&mut [u8]>,
    ) -> bool {
        let end = self.arrived + bytes_max.min(self.missing());
        let room = &mut self.elements.room()[self.arrived..end];
        let expected = (room.as_ptr().addr(), room.len());
        let Some(written) = write(room) else { return false };
        assert_eq!((written.as_ptr().addr(), written.len()), expected, "it is the room itself");
        self.arrived = end;
        true
    }

    /// The array. `None`: some of it is missing.
    pub fn into_array(self) -> Option<Array> {
        // SAFETY: All have arrived: `fill` has seen them as bytes that are written. They are whole
        // elements, as `new` has found.
        (self.missing() == 0).then(|| unsafe { self.elements.into_array(self.bytes) })
    }
}
