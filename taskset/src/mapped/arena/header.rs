//! The header of an arena: what the file is, and the few words that belong to no worker.
//!
//! What never changes is written before the magic number, and has a checksum. Each of the other
//! words is changed by one atomic step, and right after each.

use xxhash_rust::xxh3::xxh3_64;

use super::{PAGE_BYTES, Page, Slot};
use crate::limits::{LAYOUT_VERSION, WORKERS_MAX};
use crate::mapped::shared::shared;
use crate::sync::AtomicU64;

/// Levels of a [table](crate::mapped::table).
pub(crate) const LEVELS: usize = 8;

/// How an arena begins.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"UMarena\n");

/// How a file begins that is about to become an arena.
pub(super) const UNFINISHED: u64 = u64::from_le_bytes(*b"UMbegun\n");

/// Bytes in front of the slots.
pub(super) const HEADER_BYTES: u64 = 4096;

/// Words that never change after the arena is made.
pub(super) const FIXED_WORDS: usize = 7;

shared! {
    /// See the [module](self).
    pub(crate) struct Header {
        /// The first seven: see [`Fixed`].
        pub(super) fixed: [AtomicU64; FIXED_WORDS],
        /// The job that has the arena.
        pub(super) job: AtomicU64,
        /// How many pages are reserved; it only grows.
        pub(crate) committed: AtomicU64,
        /// No page below this one is free, as far as is known.
        pub(crate) free_hint: AtomicU64,
        /// No worker has had a number from this one on.
        pub(crate) workers_used: AtomicU64,
        /// A bit for each worker that waits for tasks; a hint.
        pub(crate) idle: [AtomicU64; WORKERS_MAX / 64],
        /// The sets, by their names: a [table](crate::mapped::table).
        pub(crate) sets: [AtomicU64; LEVELS],
    }
}

/// What an arena is, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) build: u64,
    pub(super) layout: Layout,
    pub(super) owner: u64,
}

impl Fixed {
    pub(super) fn words(&self) -> [u64; FIXED_WORDS] {
        let Layout { pages, workers, .. } = self.layout;
        let words = [MAGIC, LAYOUT_VERSION, self.build, pages, workers, self.owner];
        let [magic, version, build, pages, workers, owner] = words;
        [magic, version, build, pages, workers, owner, checksum(words)]
    }

    /// `None` if it is damaged.
    pub(super) fn from_words(words: [u64; FIXED_WORDS]) -> Option<Self> {
        let [magic, version, build, pages, workers, owner, sum] = words;
        let is_whole = sum == checksum([magic, version, build, pages, workers, owner]);
        let layout = Layout::new(pages, workers).filter(|_| is_whole)?;
        Some(Self { build, layout, owner })
    }
}

fn checksum(words: [u64; FIXED_WORDS - 1]) -> u64 {
    xxh3_64(&words.map(u64::to_le_bytes).concat())
}

/// Where everything is, in bytes from the file's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) pages: u64,
    pub(crate) workers: u64,
    descriptors_at: u64,
    pub(crate) pages_at: u64,
    pub(super) file_bytes: u64,
}

impl Layout {
    /// `None` if no file can be so large.
    pub(super) fn new(pages: u64, workers: u64) -> Option<Self> {
        let slots = workers.checked_mul(size_of::<Slot>() as u64)?;
        let descriptors_at = HEADER_BYTES.checked_add(slots)?.checked_next_multiple_of(4096)?;
        let descriptors = pages.checked_mul(size_of::<Page>() as u64)?;
        let end = descriptors_at.checked_add(descriptors)?;
        let pages_at = end.checked_next_multiple_of(PAGE_BYTES)?;
        let file_bytes = pages_at.checked_add(pages.checked_mul(PAGE_BYTES)?)?;
        // The words that name blocks have 48 bits for their offsets.
        let is_fit = file_bytes < 1 << 48 && (1..=WORKERS_MAX as u64).contains(&workers);
        is_fit.then_some(Self { pages, workers, descriptors_at, pages_at, file_bytes })
    }

    pub(super) fn slot(worker: usize) -> u64 {
        HEADER_BYTES + (worker * size_of::<Slot>()) as u64
    }

    pub(super) fn descriptor(&self, page: u64) -> u64 {
        self.descriptors_at + page * size_of::<Page>() as u64
    }

    /// What lies in front of the descriptors.
    pub(super) fn front_bytes(&self) -> u64 {
        self.descriptors_at
    }
}
