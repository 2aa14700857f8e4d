//! Blocks of memory in the arena, for a worker.
//!
//! A small block is one of equal blocks of a *page*; the page's descriptor has a bit for each. A
//! page belongs to a worker's number for good, so that only that worker sets its bits. All others
//! may clear them. A large block is a run of pages.
//!
//! # When the worker dies
//!
//! Its slot names each block in its hands, before the block is taken, and the word that will name
//! the block, before that word is written. The worker that [recovers](recover) a dead one frees
//! those that their words do not name. It can do so twice: no one else takes blocks of these pages
//! meanwhile.
//!
//! | dead after | then |
//! |---|---|
//! | the block is named in the slot | there is nothing to free |
//! | its bit, or some pages of its run, are taken | they are freed |
//! | its word names it | it is in use, and stays |
//! | a page is taken, but not yet prepared | it belongs to the number, whose next worker prepares it |
//!
//! A worker that dies while it frees a run leaves the first pages of it taken, and one that dies
//! just before it frees a block leaves that: until the arena is next [opened
//! alone](crate::mapped::collect).

use std::cell::{Cell, RefCell};

use crate::mapped::arena::{PAGE_BYTES, PENDING, Page, Slot, Space};
use crate::mapped::error::{Error, Result};
use crate::mapped::shared::Offset;
use crate::state::BLOCK_MASK;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicBits, AtomicU64, fill};

/// The sizes of small blocks in bytes. They are multiples of a cache line.
const SIZES: [u64; 16] =
    [64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384, 32768];

/// In a link: it is of 128 bits.
const WIDE: u64 = 1;

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Free,
    /// Taken, but its bits are not yet those of its blocks.
    Raw {
        owner: u16,
        class: usize,
    },
    Small {
        owner: u16,
        class: usize,
    },
    /// Of a run that begins with this page.
    Large {
        owner: u16,
        first: u64,
    },
}

impl Kind {
    pub(crate) fn of(page: &Page) -> Self {
        Self::from_bits(page.kind.load(Acquire))
    }

    fn bits(self) -> u64 {
        let word = |tag: u64, owner: u16, rest: u64| tag << 62 | u64::from(owner) << 40 | rest;
        match self {
            Self::Free => 0,
            Self::Raw { owner, class } => word(1, owner, class as u64),
            Self::Small { owner, class } => word(2, owner, class as u64),
            Self::Large { owner, first } => word(3, owner, first),
        }
    }

    /// What makes no sense is a run that no block is part of.
    fn from_bits(bits: u64) -> Self {
        let (owner, rest) = ((bits >> 40) as u16, bits & ((1 << 40) - 1));
        match (bits >> 62, rest) {
            (0, _) if bits == 0 => Self::Free,
            (1, class) if (class as usize) < SIZES.len() => {
                Self::Raw { owner, class: class as usize }
            }
            (2, class) if (class as usize) < SIZES.len() => {
                Self::Small { owner, class: class as usize }
            }
            (_, first) => Self::Large { owner, first },
        }
    }
}

/// Blocks that fit in a page.
pub(crate) fn blocks_of(class: usize) -> u64 {
    PAGE_BYTES / SIZES[class]
}

/// The place of a small block in its page.
pub(crate) fn index_of(space: &Space, offset: u64, class: usize) -> u64 {
    (offset - space.layout().pages_at) % PAGE_BYTES / SIZES[class]
}

/// A worker's allocator.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    space: &'a Space,
    slot: &'a Slot,
    owner: u16,
    classes: [RefCell<Class>; SIZES.len()],
    /// Which places in the slot are taken, by bits.
    pending: Cell<u8>,
}

/// The pages of a class that belong to this worker.
#[derive(Debug, Default)]
struct Class {
    pages: Vec<u64>,
    /// The page and the word of its bits where the last block was found.
    current: (usize, usize),
}

/// A block that no word names yet. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Fresh<'b> {
    blocks: &'b Blocks<'b>,
    pub(crate) offset: u64,
    place: usize,
}

impl Fresh<'_> {
    /// Says that this word is about to name the block.
    pub(crate) fn announce(&self, word: &AtomicU64) {
        let at = self.blocks.space.offset_of(word);
        self.blocks.slot.links[self.place].store(at, Release);
    }

    /// As [`announce`](Self::announce): the lower half of these bits.
    pub(crate) fn announce_in(&self, bits: &AtomicBits) {
        let at = self.blocks.space.offset_of(bits);
        self.blocks.slot.links[self.place].store(at | WIDE, Release);
    }

    /// The announced word names it now.
    pub(crate) fn linked(self) -> u64 {
        self.blocks.settle(self.place);
        let offset = self.offset;
        std::mem::forget(self);
        offset
    }

    /// Has the word name the block, if it names none yet. Returns the block that it names.
    pub(crate) fn link_once(self, word: &AtomicU64) -> u64 {
        self.announce(word);
        match word.compare_exchange(0, self.offset, SeqCst, SeqCst) {
            Ok(_) => self.linked(),
            Err(other) => other,
        }
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        free(self.blocks.space, self.offset);
        self.blocks.settle(self.place);
    }
}

impl<'a> Blocks<'a> {
    /// For the worker with this number, which has all pages of those that had it before.
    pub(crate) fn new(space: &'a Space, owner: u16) -> Self {
        let slot = space.slot(owner.into());
        let mut classes: [Class; SIZES.len()] = Default::default();
        for index in 0..space.committed() {
            let Some(page) = space.page(index) else { continue };
            match Kind::of(page) {
                Kind::Raw { owner: of, class } if of == owner => {
                    prepare(page, owner, class);
                    classes[class].pages.push(index);
                }
                Kind::Small { owner: of, class } if of == owner => classes[class].pages.push(index),
                _ => {}
            }
        }
        Self { space, slot, owner, classes: classes.map(RefCell::new), pending: Cell::new(0) }
    }

    /// A block of at least this many bytes, with any content.
    pub(crate) fn take(&self, bytes: u64) -> Result<Fresh<'_>> {
        match SIZES.iter().position(|size| bytes <= *size) {
            Some(class) => self.take_small(class),
            None => self.take_large(bytes.div_ceil(PAGE_BYTES)),
        }
    }

    /// As [`take`](Self::take), filled with zeros.
    pub(crate) fn take_zeroed(&self, bytes: u64) -> Result<Fresh<'_>> {
        let fresh = self.take(bytes)?;
        let words = self.space.words_at(fresh.offset, bytes.div_ceil(8) as usize)?;
        words.iter().for_each(|word| fill(word, 0));
        Ok(fresh)
    }

    /// Names a block in the slot before it is taken.
    fn name(&self, offset: u64) -> Result<Fresh<'_>> {
        let taken = self.pending.get();
        let place = taken.trailing_ones() as usize;
        if place >= PENDING {
            return Err(Error::Crowded("blocks in the hands of a worker"));
        }
        self.pending.set(taken | 1 << place);
        self.slot.links[place].store(0, Release);
        self.slot.pending[place].store(offset, Release);
        Ok(Fresh { blocks: self, offset, place })
    }

    fn settle(&self, place: usize) {
        self.slot.pending[place].store(0, Release);
        self.pending.set(self.pending.get() & !(1 << place));
    }

    fn take_small(&self, class: usize) -> Result<Fresh<'_>> {
        let mut pages = self.classes[class].borrow_mut();
        let (index, block) = loop {
            if let Some(found) = pages.find(self.space, class) {
                break found;
            }
            // Blocks that others have freed are looked for once for all that were.
            let bit = 1 << class;
            if self.slot.inbox.freed.load(Relaxed) & bit != 0 {
                self.slot.inbox.freed.fetch_and(!bit, AcqRel);
                pages.current = (0, 0);
                continue;
            }
            pages.current = (pages.pages.len(), 0);
            pages.pages.push(self.take_page(class)?);
        };
        let offset = self.space.page_offset(index) + block * SIZES[class];
        let fresh = self.name(offset)?;
        let page = self.space.page(index).ok_or(Error::Damaged { what: "page", offset })?;
        page.bits[block as usize / 64].fetch_or(1 << (block % 64), AcqRel);
        Ok(fresh)
    }

    fn take_page(&self, class: usize) -> Result<u64> {
        let raw = Kind::Raw { owner: self.owner, class };
        let index = self.take_run(1, |page, _| {
            page.kind.compare_exchange(0, raw.bits(), AcqRel, Acquire).is_ok()
        })?;
        if let Some(page) = self.space.page(index) {
            prepare(page, self.owner, class);
        }
        Ok(index)
    }

    fn take_large(&self, count: u64) -> Result<Fresh<'_>> {
        // An offset that names no block, until the run is chosen.
        let mut fresh = self.name(1)?;
        let pending = &self.slot.pending[fresh.place];
        let first = self.take_run(count, |page, first| {
            let offset = self.space.page_offset(first);
            if pending.load(Relaxed) != offset {
                pending.store(offset, Release);
            }
            let large = Kind::Large { owner: self.owner, first };
            page.kind.compare_exchange(0, large.bits(), AcqRel, Acquire).is_ok()
        })?;
        fresh.offset = self.space.page_offset(first);
        Ok(fresh)
    }

    /// Finds pages behind each other that are free, and has `take` take each. Returns the first.
    fn take_run(&self, count: u64, mut take: impl FnMut(&Page, u64) -> bool) -> Result<u64> {
        let hint = &self.space.header().free_hint;
        let begin = hint.load(Relaxed).min(self.space.committed());
        let first = match self.search(begin, count, &mut take) {
            // The hint may have passed pages that were being freed.
            Err(_) if begin > 0 => self.search(0, count, &mut take)?,
            found => found?,
        };
        if count == 1 || first == begin {
            let _ = hint.compare_exchange(begin, first + count, Relaxed, Relaxed);
        }
        Ok(first)
    }

    fn search(
        &self,
        mut first: u64,
        count: u64,
        take: &mut impl FnMut(&Page, u64) -> bool,
    ) -> Result<u64> {
        loop {
            if first + count > self.space.committed() {
                self.space.commit(first + count)?;
            }
            let is_free = |at: &u64| self.space.page(*at).map(Kind::of) == Some(Kind::Free);
            if let Some(taken) = (first..first + count).rev().find(|at| !is_free(at)) {
                first = taken + 1;
                continue;
            }
            let is_taken = |at: &u64| self.space.page(*at).is_some_and(|page| take(page, first));
            let taken = (first..first + count).take_while(is_taken).count() as u64;
            if taken == count {
                return Ok(first);
            }
            if count > 1 {
                free_run(self.space, first, self.owner);
            }
            first += taken + 1;
        }
    }
}

impl Class {
    /// A free block: its page, and its place there.
    fn find(&mut self, space: &Space, class: usize) -> Option<(u64, u64)> {
        let blocks = blocks_of(class);
        for at in self.current.0..self.pages.len() {
            let page = space.page(self.pages[at])?;
            let from = if at == self.current.0 { self.current.1 } else { 0 };
            for word in from..blocks.div_ceil(64) as usize {
                let first = word as u64 * 64;
                let free = first + u64::from(page.bits[word].load(Acquire).trailing_ones());
                if free < blocks.min(first + 64) {
                    self.current = (at, word);
                    return Some((self.pages[at], free));
                }
            }
        }
        None
    }
}

/// Makes a page that this worker has taken one of blocks.
fn prepare(page: &Page, owner: u16, class: usize) {
    page.bits.iter().for_each(|bits| fill(bits, 0));
    page.kind.store(Kind::Small { owner, class }.bits(), Release);
}

/// Frees a block. An offset that names none is ignored.
pub(crate) fn free(space: &Space, offset: u64) {
    let Some((index, page)) = space.page_of(offset).and_then(|at| Some((at, space.page(at)?)))
    else {
        return;
    };
    match Kind::of(page) {
        Kind::Small { owner, class } => {
            let block = index_of(space, offset, class);
            if block < blocks_of(class) {
                page.bits[block as usize / 64].fetch_and(!(1 << (block % 64)), AcqRel);
            }
            if u64::from(owner) < space.layout().workers {
                let (freed, bit) = (&space.slot(owner.into()).inbox.freed, 1 << class);
                if freed.load(Relaxed) & bit == 0 {
                    freed.fetch_or(bit, AcqRel);
                }
            }
        }
        Kind::Large { owner, first } if first == index => free_run(space, first, owner),
        _ => {}
    }
}

/// Frees the pages of a run, the last one first: what a death leaves still begins where it did.
pub(crate) fn free_run(space: &Space, first: u64, owner: u16) {
    let large = Kind::Large { owner, first };
    let pages = (first..).map_while(|at| space.page(at));
    let count = pages.take_while(|page| Kind::of(page) == large).count() as u64;
    for page in (first..first + count).rev().filter_map(|at| space.page(at)) {
        let _ = page.kind.compare_exchange(large.bits(), 0, AcqRel, Acquire);
    }
    space.header().free_hint.fetch_min(first, Relaxed);
}

/// The block that is named where a link says.
fn named_by(space: &Space, link: u64) -> Option<u64> {
    if link & WIDE == 0 {
        return space.word_anywhere(link).map(|word| word.load(Acquire) & BLOCK_MASK);
    }
    let bits: &AtomicBits = space.get(Offset::new(link & !WIDE)).ok()?;
    Some(bits.load(Acquire) as u64)
}

/// Frees the blocks that a dead worker had in its hands, and that no word names.
pub(crate) fn recover(space: &Space, owner: u16) {
    let slot = space.slot(owner.into());
    for (pending, link) in slot.pending.iter().zip(&slot.links) {
        let offset = pending.load(Acquire);
        if offset == 0 {
            continue;
        }
        let is_linked = named_by(space, link.load(Acquire)) == Some(offset);
        let kind = space.page_of(offset).and_then(|at| space.page(at)).map(Kind::of);
        let is_own = matches!(kind,
            Some(Kind::Small { owner: of, .. } | Kind::Large { owner: of, .. }) if of == owner);
        if is_own && !is_linked {
            free(space, offset);
        }
        pending.store(0, Release);
    }
}
