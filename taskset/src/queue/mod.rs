//! The queue of a worker: the owner pushes and pops at the bottom, thieves steal at the top.
//!
//! This is the deque of Chase and Lev with the memory orderings of Lê, Pop, Cohen and Zappa
//! Nardelli (“Correct and efficient work-stealing for weak memory models”, PPoPP 2013). Its state
//! is two indices that only grow but for one step of `bottom`, and the offset of a *ring*, an array
//! of entries. Entry `i` lies at place `i` modulo the ring's length; those from `top` up to, not
//! including, `bottom` are in the queue.
//!
//! A queue never knows what its entries are. They are numbers other than 0, such as offsets of
//! tasks.
//!
//! # When the owner dies
//!
//! Another worker calls [`adopt`](Queue::adopt) and is the owner. Nothing is copied, and thieves go
//! on stealing meanwhile. The queue is consistent after each store of the owner:
//!
//! | in | after the store to | the queue holds |
//! |---|---|---|
//! | `push` | the entry | what it held: the entry's place is outside of it |
//! | `push` | `bottom` | the new entry, too |
//! | `pop` | `bottom` | one entry less. If it was the last, a thief may yet take it |
//! | `pop` | `top`, for the last entry | none; `bottom` is `top - 1` |
//! | `pop` | `bottom` again | none; `bottom` is `top` |
//! | `grow` | the new ring | what it held: thieves cannot see the new ring yet |
//! | `grow` | `ring` | what it held: all entries are in the new ring |
//!
//! So a dead owner leaves one trace: it has lowered `bottom` past the last entry, and has not
//! settled which of thief and owner gets it. `adopt` settles that. Until then thieves see an empty
//! queue.
//!
//! # Entries that a dead worker has taken
//!
//! An entry is lost if its taker dies between the change of an index and the task's claim.
//! Therefore [`pop_into`](Queue::pop_into) and [`steal_into`](Queue::steal_into) first write the
//! entry to the worker's *running slot*, and only then take it out of the queue. At every instant
//! it is in the queue, in the slot, or in both. A slot may name an entry that another worker won:
//! the claim of the task decides. With `pop` and `steal` the caller needs another way to find the
//! task, such as a sweep over all tasks that are ready.
//!
//! # Two owners
//!
//! A worker that was taken for dead may come back and go on as owner, beside the one that adopted
//! its queue. Entries can then be taken twice or be lost, as with a dead taker; indices and entries
//! stay within bounds. Owners check that they are still members before they use their queue.
//!
//! # Damage
//!
//! A queue without a usable ring (zeroed, or damaged) is empty and full: nothing is found in it,
//! and [`grow`](Queue::grow) gives it a ring. Entries of a damaged ring may be any number: the
//! caller checks what an entry names.
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use ultramarine_taskset::{Memory, queue::{Queue, Steal}};
//!
//! struct Words(Vec<AtomicU64>);
//!
//! impl Memory for Words {
//!     fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
//!         let first = usize::try_from(offset / 8).ok()?;
//!         self.0.get(first..first.checked_add(count)?)
//!     }
//! }
//!
//! let memory = Words((0..24).map(|_| AtomicU64::new(0)).collect());
//! let queue = Queue::default();
//! queue.grow(&memory, 64, 16)?;
//! queue.push(&memory, 11)?;
//! queue.push(&memory, 22)?;
//! assert_eq!(queue.steal(&memory), Steal::Taken(11));
//! assert_eq!(queue.pop(&memory), Some(22));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(all(test, loom))]
mod model;
mod ring;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::memory::Memory;
use crate::sync::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

use ring::Ring;
pub use ring::{BadRing, RING_ALIGN};

/// See the [module](self).
///
/// All of it lies in one cache line, so that a thief that comes for the first time waits for that
/// line and the entry's. With `top` in a line of its own its first steal took 1.5 times as long
/// (410 ns beside `crossbeam-deque`'s 270 ns; now both take the same).
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Queue {
    /// The oldest entry. It only grows.
    top: AtomicU64,
    /// Above the youngest entry. Only the owner changes it.
    bottom: AtomicU64,
    /// See [`Ring::word`]. Only the owner changes it.
    ring: AtomicU64,
}

/// The queue holds as many entries as its ring: [`Queue::grow`] it, or run the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: give it a longer ring, or run the task at once")]
pub struct Full;

/// What a thief got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// The queue was empty.
    Empty,
    /// Another worker was quicker. There may be more.
    Retry,
    /// The oldest entry.
    Taken(u64),
}

/// How many entries lie between the indices; -1 within `pop`, other negative numbers by damage.
fn count(top: u64, bottom: u64) -> i64 {
    bottom.wrapping_sub(top).cast_signed()
}

/// # For the owner
impl Queue {
    /// Adds an entry at the bottom. All that the owner wrote before is visible to the one that
    /// takes it.
    ///
    /// # Errors
    /// [`Full`].
    pub fn push(&self, memory: &impl Memory, value: u64) -> Result<(), Full> {
        // Acquire: the thief that moved `top` has read the entry whose place is overwritten here.
        let top = self.top.load(Acquire);
        let bottom = self.bottom_from(top);
        let ring = self.ring(memory).ok_or(Full)?;
        if count(top, bottom) >= ring.length() {
            return Err(Full);
        }
        ring.entry(bottom).store(value, Relaxed);
        self.set_bottom(bottom.wrapping_add(1));
        Ok(())
    }

    /// Takes the youngest entry.
    pub fn pop(&self, memory: &impl Memory) -> Option<u64> {
        self.pop_with(memory, |_| ())
    }

    /// Takes the youngest entry, after it has written it to the slot `running`. The slot is 0 if
    /// there was none.
    pub fn pop_into(&self, memory: &impl Memory, running: &AtomicU64) -> Option<u64> {
        let popped = self.pop_with(memory, |value| running.store(value, Relaxed));
        if popped.is_none() {
            running.store(0, Relaxed);
        }
        popped
    }

    fn pop_with(&self, memory: &impl Memory, announce: impl FnOnce(u64)) -> Option<u64> {
        let bottom = self.bottom.load(Relaxed);
        // An old `top` is a lower one: what is empty by it is empty.
        if count(self.top.load(Relaxed), bottom) <= 0 {
            return None;
        }
        let ring = self.ring(memory)?;
        let last = bottom.wrapping_sub(1);
        let value = ring.entry(last).load(Relaxed);
        announce(value);
        self.set_bottom(last);
        // Either a thief's fence comes after this one, and it sees the new `bottom`; or before, and
        // `top` is read here no older than it was read there. So owner and thief cannot both
        // believe, without the compare-and-swap, that the last entry is theirs.
        fence(SeqCst);
        let top = self.top.load(Relaxed);
        let left = count(top, last);
        if left > 0 {
            return Some(value);
        }
        // The last entry belongs to the one that moves `top`.
        let won = left == 0 && self.move_top(top);
        self.set_bottom(bottom);
        won.then_some(value)
    }

    /// Gives the queue a longer ring: `length` entries, a power of two, in the `8 * length` bytes
    /// from `offset`, which is a multiple of [`RING_ALIGN`] and not 0. Their content does not
    /// matter.
    ///
    /// A thief may still read the old ring, and an owner that was taken for dead write to it. It
    /// can be freed when no such worker is left, for example after all have met at a barrier. All
    /// old rings together are shorter than the new one.
    ///
    /// # Errors
    /// [`BadRing`]: the numbers break these rules, or the ring is too short for what the queue
    /// holds.
    pub fn grow(&self, memory: &impl Memory, offset: u64, length: u64) -> Result<(), BadRing> {
        let bad = BadRing { offset, length };
        let new = Ring::new(memory, offset, length).ok_or(bad)?;
        let top = self.top.load(Acquire);
        let bottom = self.bottom_from(top);
        let held = count(top, bottom);
        match self.ring(memory).filter(|old| held <= old.length()) {
            Some(_) if held > new.length() => return Err(bad),
            Some(old) => {
                for index in (0..held.cast_unsigned()).map(|step| top.wrapping_add(step)) {
                    new.entry(index).store(old.entry(index).load(Relaxed), Relaxed);
                }
            }
            // Damage: the entries are gone, and thieves take none without a ring. As in `push`.
            None => self.top.store(bottom, Release),
        }
        // Release: a thief that sees the new ring sees its entries.
        self.ring.store(Ring::word(offset, length), Release);
        Ok(())
    }

    /// Makes the caller the owner after the last one has died. It may die within, too: the next one
    /// calls this again. The last stores of the dead must be visible to the caller, as they are
    /// when it has seen the end of the process.
    pub fn adopt(&self) {
        // Acquire: from here on the entries of the last owner are as the caller's own.
        let bottom = self.bottom.load(Acquire);
        // A load might give an old `top`; a read-modify-write gets the newest. Release: a thief
        // that reads this `top` or a later one sees this `bottom`, too.
        let top = self.top.fetch_add(0, AcqRel);
        match count(top, bottom) {
            1.. => {}
            // The last owner may have lowered `bottom` past the last entry, and died before it
            // settled with a thief who gets it. Here that entry is given up, if there is one, or
            // the thief has it; in each case `top` is one more. Otherwise a thief that saw the
            // higher `bottom` would take the next entry pushed for the one that it has read.
            0 => {
                let _ = self.move_top(top);
                self.set_bottom(top.wrapping_add(1));
            }
            _ => self.set_bottom(top),
        }
    }

    /// `bottom`, or `top` where that is above it: two owners can leave them so.
    fn bottom_from(&self, top: u64) -> u64 {
        let bottom = self.bottom.load(Relaxed);
        if count(top, bottom) < 0 { top } else { bottom }
    }

    /// All stores to `bottom` release, not only that of `push`: a thief takes older entries by any
    /// of them, and the slot that `pop_into` wrote is visible when the entry is gone.
    fn set_bottom(&self, bottom: u64) {
        self.bottom.store(bottom, Release);
    }

    /// The ring, in the owner's eyes: it stored it itself, or adopted it.
    fn ring<'a>(&self, memory: &'a impl Memory) -> Option<Ring<'a>> {
        Ring::at(memory, self.ring.load(Relaxed))
    }
}

/// # For all
impl Queue {
    /// Takes the oldest entry.
    pub fn steal(&self, memory: &impl Memory) -> Steal {
        self.steal_with(memory, |_| ())
    }

    /// Takes the oldest entry, after it has written it to the slot `running`. The slot is 0 unless
    /// an entry was taken.
    pub fn steal_into(&self, memory: &impl Memory, running: &AtomicU64) -> Steal {
        let stolen = self.steal_with(memory, |value| running.store(value, Relaxed));
        if !matches!(stolen, Steal::Taken(_)) {
            running.store(0, Relaxed);
        }
        stolen
    }

    fn steal_with(&self, memory: &impl Memory, announce: impl FnOnce(u64)) -> Steal {
        let top = self.top.load(Acquire);
        // `top` is read before `bottom`: see the fence in `pop_with`.
        fence(SeqCst);
        // Acquire: the entries below this `bottom`, and what was written before they were pushed.
        let bottom = self.bottom.load(Acquire);
        let held = count(top, bottom);
        if held <= 0 {
            return Steal::Empty;
        }
        // Acquire: the entries that `grow` copied.
        let Some(ring) = Ring::at(memory, self.ring.load(Acquire)) else {
            return Steal::Empty;
        };
        if held > ring.length() {
            // `top` has moved on meanwhile, or the indices are damaged.
            let is_damaged = self.top.load(Relaxed) == top;
            return if is_damaged { Steal::Empty } else { Steal::Retry };
        }
        let value = ring.entry(top).load(Relaxed);
        announce(value);
        if self.move_top(top) { Steal::Taken(value) } else { Steal::Retry }
    }

    /// Takes the entry at `top`. Of all that try, owner and thieves, one succeeds. Release: what
    /// was written to a running slot before is visible when the entry is gone.
    fn move_top(&self, top: u64) -> bool {
        self.top.compare_exchange(top, top.wrapping_add(1), SeqCst, Relaxed).is_ok()
    }

    /// How many entries there are, roughly: it may be out of date.
    pub fn len(&self) -> u64 {
        let top = self.top.load(Relaxed);
        count(top, self.bottom.load(Relaxed)).max(0).cast_unsigned()
    }

    /// Whether there seem to be no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
