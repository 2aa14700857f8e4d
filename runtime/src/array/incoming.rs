//! Arrays that are received part by part.

#![allow(unsafe_code)]

use super::{Array, BLOCKS_MAX};
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

/// The length and the alignment of a block, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockShape {
    pub(crate) bytes: u64,
    pub(crate) alignment: u8,
}

impl BlockShape {
    pub(crate) fn of(block: &Array) -> BlockShape {
        BlockShape { bytes: block.bytes().len() as u64, alignment: block.alignment() as u8 }
    }

    /// Memory for the block; `None`: no block is like this.
    fn begin(self) -> Option<IncomingArray> {
        IncomingArray::new(usize::try_from(self.bytes).ok()?, usize::from(self.alignment))
    }

    fn is_possible(self) -> bool {
        let alignments = [1, 2, 4, 8, 16];
        let is_whole = || self.bytes.is_multiple_of(u64::from(self.alignment));
        alignments.contains(&self.alignment) && is_whole()
    }
}

/// The number of bytes of blocks of these shapes. `None`: no memory has as many.
pub(crate) fn shapes_bytes(shapes: impl IntoIterator<Item = BlockShape>) -> Option<usize> {
    shapes
        .into_iter()
        .try_fold(0_usize, |sum, shape| sum.checked_add(usize::try_from(shape.bytes).ok()?))
}

/// An array that may consist of several blocks, received one after the other. Memory for a block is
/// taken when those before it have arrived.
pub(crate) struct IncomingBlocks {
    arrived: Vec<Array>,
    arriving: IncomingArray,
    to_come: std::vec::IntoIter<BlockShape>,
    /// The number of bytes of all blocks that are still to come.
    missing: usize,
}

impl IncomingBlocks {
    /// An array of blocks of these shapes. `None`: there is no such array.
    pub(crate) fn new(shapes: Vec<BlockShape>) -> Option<IncomingBlocks> {
        let is_possible =
            shapes.len() <= BLOCKS_MAX && shapes.iter().all(|shape| shape.is_possible());
        let missing = shapes_bytes(shapes.iter().copied()).filter(|_| is_possible)?;
        let (arrived, mut to_come) = (Vec::new(), shapes.into_iter());
        let arriving = to_come.next()?.begin()?;
        Some(IncomingBlocks { arrived, arriving, to_come, missing })
    }

    /// The number of bytes that are still to come.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// The number of blocks before the one that is arriving now.
    pub(crate) fn whole(&self) -> usize {
        self.arrived.len()
    }

    /// The same for the block that is arriving now.
    pub(crate) fn missing_of_block(&mut self) -> usize {
        self.go_to_missing();
        self.arriving.missing()
    }

    /// Goes on to the first block that is not whole, if there is one.
    fn go_to_missing(&mut self) {
        while self.arriving.missing() == 0
            && let Some(next) = self.to_come.next().and_then(BlockShape::begin)
        {
            let whole = std::mem::replace(&mut self.arriving, next);
            self.arrived.extend(whole.into_array());
        }
    }

    /// Takes the next bytes.
    ///
    /// # Panics
    ///
    /// There are more bytes than are missing.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        assert!(bytes.len() <= self.missing, "no more bytes come than are missing");
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.missing_of_block()));
            self.arriving.take(now);
            self.missing -= now.len();
            bytes = later;
        }
    }

    /// [Fills](IncomingArray::fill) the block that is arriving now.
    pub(crate) fn fill(
        &mut self,
        bytes_max: usize,
        write: impl FnOnce(&mut [MaybeUninit<u8>]) -> Option<&mut [u8]>,
    ) -> bool {
        let before = self.missing_of_block();
        let is_filled = self.arriving.fill(bytes_max, write);
        self.missing -= before - self.arriving.missing();
        is_filled
    }

    /// The array. `None`: some of it is missing.
    pub(crate) fn into_array(mut self) -> Option<Array> {
        self.go_to_missing();
        self.arrived.push(self.arriving.into_array()?);
        Some(Array::of_blocks(self.arrived))
    }
}
