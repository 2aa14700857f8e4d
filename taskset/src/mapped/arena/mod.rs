//! The arena: a file that all workers map, each at an address of its own, and that outlives them.
//!
//! | part | what |
//! |---|---|
//! | header | what the file is, and how much of it is in use ([`header`]) |
//! | slots | a place for each worker ([`slot`]) |
//! | descriptors | what each page is used for ([`Page`]) |
//! | pages | of 64 KiB each, for [blocks](crate::mapped::blocks) |
//!
//! The file is as long as its largest size from the beginning, but sparse. Pages and their
//! descriptors are reserved in steps before they are touched ([`Space::commit`]), so that a full
//! file system is an error and no signal. A death between reserving and saying so is harmless: the
//! next one reserves the same pages again.

mod file;
pub(crate) mod header;
pub(crate) mod map;
mod slot;

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

pub(crate) use file::{Access, Identity};
pub(crate) use header::{Header, Layout};
pub(crate) use slot::{PENDING, Slot};

use crate::mapped::error::{Error, Result};
use crate::mapped::shared::{Offset, Shared, shared};
use crate::memory::Memory;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire};
use map::Mapping;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;

/// Pages that are reserved at a time, if there is room: 4 MiB.
const STEP_PAGES: u64 = 64;

shared! {
    /// What a page is used for.
    #[repr(align(64))]
    pub(crate) struct Page {
        /// See [`Kind`](crate::mapped::blocks::Kind).
        pub(crate) kind: AtomicU64,
        /// Which of its blocks are in use.
        pub(crate) bits: [AtomicU64; 16],
    }
}

/// An arena in the memory of this process.
#[derive(Debug)]
pub(crate) struct Space {
    map: Mapping,
    file: File,
    path: PathBuf,
    layout: Layout,
}

impl Space {
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        self.fixed(0)
    }

    /// The place of the worker with this number, which is below the layout's number of workers.
    #[inline]
    pub(crate) fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.layout.workers as usize, "no worker has the number {worker}");
        self.fixed(Layout::slot(worker))
    }

    /// What lies before the pages, which is there from the beginning.
    #[inline]
    fn fixed<T: Shared>(&self, offset: u64) -> &T {
        self.map.get(offset).expect("the layout has it within the file")
    }

    /// The numbers of all workers that there have been.
    pub(crate) fn workers(&self) -> Range<usize> {
        let used = self.header().workers_used.load(Acquire);
        0..used.min(self.layout.workers) as usize
    }

    /// The descriptor of a page that is reserved.
    pub(crate) fn page(&self, index: u64) -> Option<&Page> {
        (index < self.committed()).then(|| self.fixed(self.layout.descriptor(index)))
    }

    /// How many pages are reserved.
    #[inline]
    pub(crate) fn committed(&self) -> u64 {
        self.header().committed.load(Acquire).min(self.layout.pages)
    }

    /// The page in which this offset lies.
    pub(crate) fn page_of(&self, offset: u64) -> Option<u64> {
        Some(offset.checked_sub(self.layout.pages_at)? / PAGE_BYTES)
    }

    /// Where a page begins.
    pub(crate) fn page_offset(&self, page: u64) -> u64 {
        self.layout.pages_at + page * PAGE_BYTES
    }

    /// A word in reserved pages or before them.
    pub(crate) fn word_anywhere(&self, offset: u64) -> Option<&AtomicU64> {
        let is_there = offset < self.layout.pages_at || self.holds(offset, 8);
        if is_there { self.map.get(offset) } else { None }
    }

    /// Whether these bytes lie in reserved pages.
    #[inline]
    fn holds(&self, offset: u64, bytes: u64) -> bool {
        let end = self.layout.pages_at + self.committed() * PAGE_BYTES;
        offset >= self.layout.pages_at && offset.checked_add(bytes).is_some_and(|at| at <= end)
    }

    /// What lies there, if that is in reserved pages and aligned.
    ///
    /// # Errors
    /// It is not: the offset comes from a damaged object.
    #[inline]
    pub(crate) fn get<T: Shared>(&self, at: Offset<T>) -> Result<&T> {
        let is_held = self.holds(at.bytes(), size_of::<T>() as u64);
        let found = if is_held { self.map.get(at.bytes()) } else { None };
        found.ok_or(Error::Damaged { what: "reference", offset: at.bytes() })
    }

    /// As [`Memory::words`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub(crate) fn words_at(&self, offset: u64, count: usize) -> Result<&[AtomicU64]> {
        self.words(offset, count).ok_or(Error::Damaged { what: "reference", offset })
    }

    /// Where this word of the arena lies.
    pub(crate) fn offset_of<T: Shared>(&self, word: &T) -> u64 {
        self.map.offset_of(word)
    }

    /// Reserves pages until there are `wanted`.
    ///
    /// # Errors
    /// The arena may not become so large, or the file system is full.
    pub(crate) fn commit(&self, wanted: u64) -> Result<()> {
        let pages = self.layout.pages;
        if wanted > pages {
            let [size_bytes, needed_bytes] = [pages, wanted].map(|pages| pages * PAGE_BYTES);
            return Err(Error::Full { size_bytes, needed_bytes });
        }
        loop {
            let old = self.committed();
            if old >= wanted {
                return Ok(());
            }
            let reserve = |end: u64| self.reserve(old, end);
            let step = wanted.max(old + STEP_PAGES).min(pages);
            let no_room = |error| self.no_room((wanted - old) * PAGE_BYTES, error);
            let end = match reserve(step) {
                Ok(()) => step,
                Err(_) => reserve(wanted).map(|()| wanted).map_err(no_room)?,
            };
            let committed = &self.header().committed;
            // If another was quicker, there may be enough now.
            let _ = committed.compare_exchange(old, end, AcqRel, Acquire);
        }
    }

    /// Has the file system keep room for these pages, and for what describes them.
    fn reserve(&self, from: u64, to: u64) -> Result<(), Errno> {
        let [first, end] = [from, to].map(|page| self.layout.descriptor(page));
        reserve(&self.file, first, end - first)?;
        reserve(&self.file, self.page_offset(from), (to - from) * PAGE_BYTES)
    }

    /// Reserves all that the file says is reserved: a copy of an arena may have holes, and the
    /// number may be damaged. To touch what is not there ends the process.
    ///
    /// # Errors
    /// The file system is full.
    fn reserve_again(&self) -> Result<()> {
        let committed = self.committed();
        let front = reserve(&self.file, 0, self.layout.front_bytes());
        let reserved = match committed {
            0 => front,
            _ => front.and_then(|()| self.reserve(0, committed)),
        };
        reserved.map_err(|error| self.no_room(committed * PAGE_BYTES, error))
    }

    fn no_room(&self, needed_bytes: u64, error: Errno) -> Error {
        Error::NoRoom { path: self.path.clone(), needed_bytes, source: error.into() }
    }
}

impl Memory for Space {
    #[inline]
    fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        let bytes = (count as u64).checked_mul(8)?;
        if self.holds(offset, bytes) { self.map.slice(offset, count) } else { None }
    }
}

/// Has the file system keep room for these bytes.
fn reserve(file: &File, from: u64, bytes: u64) -> Result<(), Errno> {
    loop {
        match fallocate(file, FallocateFlags::empty(), from, bytes) {
            // A large reservation that a signal breaks off begins anew.
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
