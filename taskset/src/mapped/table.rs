//! A table that finds objects by a number: tasks by theirs, sets by the hash of their names.
//!
//! It has *levels*, each eight times as large as the one before and made when it is first needed.
//! In each level a number has one *bucket*, a cache line of eight words. Numbers that follow each
//! other have the same bucket or the next one, so that tasks that are added in order are found, and
//! swept, in the order in which they lie in memory. (A million tasks: 23 ns each to sweep instead
//! of 120.) An object is put into the first free word on the way through the levels, and stays
//! there: the words before it on its way are those of other objects, for good. So of two workers
//! that insert the same number one wins, and the other finds that.
//!
//! Each word is written once, by one compare-and-swap, with the object complete. A death before it
//! changes nothing, and one after it nothing more.

use crate::mapped::arena::Space;
pub(crate) use crate::mapped::arena::header::LEVELS;
use crate::mapped::blocks::{Blocks, Fresh};
use crate::mapped::error::{Error, Result};
use crate::state::BLOCK_MASK;
use crate::sync::Ordering::{Acquire, SeqCst};
use crate::sync::{AtomicU64, load};

/// Words of a bucket.
const BUCKET: usize = 8;

/// A word whose object was removed. Only a worker that has the arena alone writes it.
const VACANT: u64 = 1;

const CROWDED: Error = Error::Crowded("tasks, cells or sets with such numbers or names");

/// The words that name the levels, and the arena that they lie in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    pub(crate) space: &'a Space,
    pub(crate) levels: &'a [AtomicU64; LEVELS],
}

/// What became of an object that was to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    New(u64),
    /// There was one already. The new one is freed.
    Old(u64),
}

/// The end of a number's way through a table.
enum Place<'a> {
    Found(u64),
    Free(&'a AtomicU64),
    /// All words are taken up to this level, which is not there yet.
    NoLevel(usize),
}

impl<'a> Table<'a> {
    /// The object with this number for which `is_it`.
    pub(crate) fn find(self, number: u64, is_it: impl Fn(u64) -> bool) -> Result<Option<u64>> {
        match self.place(number, &is_it)? {
            Place::Found(offset) => Ok(Some(offset)),
            Place::Free(_) | Place::NoLevel(_) => Ok(None),
        }
    }

    /// Inserts an object, unless there is one with this number for which `is_it`.
    pub(crate) fn insert(
        self,
        blocks: &Blocks<'_>,
        number: u64,
        fresh: Fresh<'_>,
        is_it: impl Fn(u64) -> bool,
    ) -> Result<Inserted> {
        loop {
            match self.place(number, &is_it)? {
                Place::Found(offset) => return Ok(Inserted::Old(offset)),
                Place::NoLevel(level) => {
                    let word = self.levels.get(level).ok_or(CROWDED)?;
                    blocks.take_zeroed(8 * length(level) as u64)?.link_once(word);
                }
                Place::Free(word) => {
                    fresh.announce(word);
                    let named = tag(number) | fresh.offset;
                    let old = word.load(Acquire);
                    let is_free = [0, VACANT].contains(&old);
                    if is_free && word.compare_exchange(old, named, SeqCst, Acquire).is_ok() {
                        return Ok(Inserted::New(fresh.linked()));
                    }
                }
            }
        }
    }

    fn place(self, number: u64, is_it: &impl Fn(u64) -> bool) -> Result<Place<'a>> {
        let (mut vacant, tag) = (None, tag(number));
        for level in 0..LEVELS {
            let Some(words) = self.level(level)? else {
                return Ok(vacant.map_or(Place::NoLevel(level), Place::Free));
            };
            for word in &words[bucket(number, words.len() / BUCKET) * BUCKET..][..BUCKET] {
                match load(word) {
                    0 => return Ok(Place::Free(vacant.unwrap_or(word))),
                    VACANT => vacant = vacant.or(Some(word)),
                    named if named & !BLOCK_MASK == tag && is_it(named & BLOCK_MASK) => {
                        return Ok(Place::Found(named & BLOCK_MASK));
                    }
                    _ => {}
                }
            }
        }
        Ok(vacant.map_or(Place::NoLevel(LEVELS), Place::Free))
    }

    fn level(self, level: usize) -> Result<Option<&'a [AtomicU64]>> {
        match load(&self.levels[level]) {
            0 => Ok(None),
            offset => self.space.words_at(offset, length(level)).map(Some),
        }
    }

    /// The offsets of all objects. What is damaged is left out.
    pub(crate) fn objects(self) -> impl Iterator<Item = u64> + use<'a> {
        self.words().map(|word| load(word) & BLOCK_MASK).filter(|at| *at > VACANT)
    }

    fn words(self) -> impl Iterator<Item = &'a AtomicU64> + use<'a> {
        (0..LEVELS).filter_map(move |level| self.level(level).ok().flatten()).flatten()
    }

    /// The offsets of the levels.
    pub(crate) fn levels(self) -> impl Iterator<Item = u64> + use<'a> {
        self.levels.iter().map(|level| level.load(Acquire)).filter(|offset| *offset != 0)
    }

    /// Removes the objects that are not to be kept. No other process has the arena.
    pub(crate) fn retain(self, keep: impl Fn(u64) -> bool) {
        for word in self.words() {
            let offset = word.load(Acquire) & BLOCK_MASK;
            if offset > VACANT && !keep(offset) {
                word.store(VACANT, SeqCst);
            }
        }
    }
}

fn length(level: usize) -> usize {
    64 << (3 * level)
}

/// The bucket of a number in a level with this many, a power of two. Each run of numbers that fills
/// a level begins somewhere else, so that numbers far apart do not share a few buckets.
fn bucket(number: u64, buckets: usize) -> usize {
    let near = number / BUCKET as u64;
    let run = near / buckets as u64;
    near.wrapping_add(if run == 0 { 0 } else { mix(run) }) as usize % buckets
}

/// Bits of all of the number, beside the object's offset: others with the same bucket need not be
/// looked at.
fn tag(number: u64) -> u64 {
    mix(number) << 48
}

/// Mixes all bits into all others (Steele, Lea and Flood 2014).
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
