//! Data in the arena that tasks change: copy on write.
//!
//! A cell names a block. A change writes a new block, and one compare-and-swap puts it in place of
//! the old one: a death leaves the cell as it was or as it is to be, and readers see the one or the
//! other. The old block is freed. A reader that has begun to copy it notices that the cell names
//! another, or the same block with a later version, and begins again. Versions have 64 bits, so
//! that none comes again while a reader is held up.

use std::mem;

use crate::mapped::arena::Space;
use crate::mapped::blocks::{self, Blocks};
use crate::mapped::error::{Error, Result};
use crate::mapped::set::SetRef;
use crate::mapped::shared::{Offset, shared};
use crate::mapped::table::Inserted;
use crate::mapped::task::{read_block, write_block};
use crate::sync::Ordering::{Acquire, Relaxed, SeqCst};
use crate::sync::{AtomicBits, AtomicU64, Bits, fence, fill};

shared! {
    /// See the [module](self).
    pub(crate) struct CellWords {
        /// The offset of the block, with the version above it.
        value: AtomicBits,
        number: AtomicU64,
        seal: AtomicU64,
    }
}

const SEAL: u64 = 0x6365_6c6c_7365_616c;

/// Above the offset in a cell's value.
const VERSION_SHIFT: u32 = 64;

/// A cell that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellRef<'a> {
    space: &'a Space,
    words: &'a CellWords,
}

impl<'a> CellRef<'a> {
    pub(crate) fn open(space: &'a Space, offset: u64) -> Result<Self> {
        let words: &CellWords = space.get(Offset::new(offset))?;
        if words.seal.load(Relaxed) != SEAL ^ offset {
            return Err(Error::Damaged { what: "cell", offset });
        }
        Ok(Self { space, words })
    }

    /// The set's cell with this number, which is made, without content, if there is none.
    pub(crate) fn numbered(set: SetRef<'a>, blocks: &Blocks<'_>, number: u64) -> Result<Self> {
        let space = set.end.space;
        let is_it = |offset| {
            let cell = Self::open(space, offset);
            cell.is_ok_and(|cell| cell.words.number.load(Relaxed) == number)
        };
        if let Some(offset) = set.cells().find(number, is_it)? {
            return Self::open(space, offset);
        }
        let fresh = blocks.take_zeroed(mem::size_of::<CellWords>() as u64)?;
        let words: &CellWords = space.get(Offset::new(fresh.offset))?;
        fill(&words.number, number);
        fill(&words.seal, SEAL ^ fresh.offset);
        match set.cells().insert(blocks, number, fresh, is_it)? {
            Inserted::New(offset) | Inserted::Old(offset) => Self::open(space, offset),
        }
    }

    /// The offset of its block, or 0.
    pub(crate) fn block(self) -> u64 {
        self.words.value.load(Acquire) as u64
    }

    pub(crate) fn read(self) -> Result<Vec<u8>> {
        self.read_versioned().map(|(_, bytes)| bytes)
    }

    /// The bits that named the block, and its content.
    fn read_versioned(self) -> Result<(Bits, Vec<u8>)> {
        loop {
            let value = self.words.value.load(Acquire);
            let block = value as u64;
            let read = if block == 0 { Ok(Vec::new()) } else { read_block(self.space, block) };
            fence(Acquire);
            // Unchanged: the block was this cell's all the time.
            if self.words.value.load(SeqCst) == value {
                return read.map(|bytes| (value, bytes));
            }
        }
    }

    /// Replaces the content by what `change` makes of it, which may be called several times.
    pub(crate) fn update(
        self,
        blocks: &Blocks<'_>,
        mut change: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<()> {
        loop {
            let (old, bytes) = self.read_versioned()?;
            let fresh = write_block(self.space, blocks, &change(&bytes))?;
            fresh.announce_in(&self.words.value);
            let version = (old >> VERSION_SHIFT).wrapping_add(1) << VERSION_SHIFT;
            let new = version | Bits::from(fresh.offset);
            if self.words.value.compare_exchange(old, new, SeqCst, SeqCst).is_ok() {
                fresh.linked();
                blocks::free(self.space, old as u64);
                return Ok(());
            }
        }
    }
}
