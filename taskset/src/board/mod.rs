//! The board of a process: a few tasks, in bytes, that the other processes of its host may take.
//!
//! Its *owner* posts them. A *taker*, any other process, takes one with a compare-and-swap. The
//! owner takes back what no other process has taken, in the same way: each task goes to one of
//! them. There are no locks, and a taker may die at any instruction.
//!
//! ```text
//!   empty ── owner posts ──▶ ready ── taker ──▶ taken by it ── owner has noticed ──▶ empty
//!                              └───── owner takes it back ──────────────────────────▶ empty
//! ```
//!
//! A slot's state is one word: what is in it, the *level* (which takers may have it), the length,
//! and the number of the posting.
//!
//! - **A taker copies first, and takes then.** A death in between leaves the slot as it was. The
//!   words of two postings differ in their numbers. So if the compare-and-swap succeeds, the slot
//!   has been ready with this posting all the time since the taker saw it, and the copy is whole:
//!   the owner fills a slot again only after it has seen it taken, or has taken it back.
//! - **The owner learns who has it.** A slot stays taken until the owner frees it. So a taker that
//!   dies after the compare-and-swap is known by its number.
//! - **If the owner dies,** its tasks stay where they are as long as a process has the board open.
//!   What that means is for the program to say.
//!
//! Beside the slots there are *signals*: bits that other processes set, and the owner takes. So it
//! looks at no other board, and at no slot, before there is a reason to. What a process did before
//! it set a bit is seen by the owner after it has taken it.
//!
//! Only the owner, and one thread of it at a time, calls what says so.

#[cfg(not(loom))]
mod file;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub use file::{Address, OwnBoard, Refusal, SharedFile};

use std::array;

use crate::memory::Memory;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The number of slots.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 16 };

/// The words of a slot.
const SLOT_WORDS: usize = if cfg!(loom) { 1 } else { 128 };

/// The longest task, in bytes.
pub const BYTES_MAX: usize = 8 * SLOT_WORDS;

/// The number of processes that can set a bit of a signal. Others cannot take part.
pub const SIGNALLERS_MAX: usize = 64 * SIGNAL_WORDS;

const SIGNAL_WORDS: usize = if cfg!(loom) { 1 } else { 4 };

/// Where things are, in words. What different processes write lies in different cache lines, or
/// pairs of them, since processors fetch two at once.
const IDENTITY_AT: usize = 0;
const SIGNALS_AT: usize = 16;
const NEED_AT: usize = 32;
const STATES_AT: usize = 48;
const SLOTS_AT: usize = 64;
const WORDS: usize = SLOTS_AT + SLOTS * SLOT_WORDS;

/// How a board begins, and the version of all that lies in it.
const MAGIC: u64 = u64::from_le_bytes(*b"UMboard\x01");

/// A board in this memory, which is all zeros at first.
#[derive(Debug)]
pub struct Board<M> {
    memory: M,
}

/// What a process says to the owner of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The process asks the owner to post something.
    Asks,
    /// The process has posted something on its own board for the owner.
    Posted,
}

/// What is in a slot, as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing.
    Empty,
    /// A task.
    Ready,
    /// A task that the process of this number has taken.
    Taken(u32),
}

/// A task that is posted: its state in bits.
///
/// | bits | of a task that is ready | of one that is taken |
/// |---|---|---|
/// | 0, 1 | 1 | 2 |
/// | 2 to 9 | the level | the taker, |
/// | 10 to 20 | the length in bytes | in bits 2 to 33 |
/// | from 21 | the number of the posting | |
#[derive(Clone, Copy, PartialEq, Eq)]
struct Posting {
    level: u8,
    number: u64,
    bytes: usize,
}

const EMPTY: u64 = 0;
const READY: u64 = 1;
const TAKEN: u64 = 2;
const KIND_MASK: u64 = 3;
const KIND_BITS: u32 = 2;
const LENGTH_AT: u32 = 10;
const NUMBER_AT: u32 = 21;

impl Posting {
    fn to_bits(self) -> u64 {
        let Posting { level, number, bytes } = self;
        READY | u64::from(level) << KIND_BITS | (bytes as u64) << LENGTH_AT | number << NUMBER_AT
    }

    /// `None` if nothing is ready there, or nothing that makes sense.
    fn from_bits(bits: u64) -> Option<Self> {
        let bytes = (bits >> LENGTH_AT) as usize & ((1 << (NUMBER_AT - LENGTH_AT)) - 1);
        let level = (bits >> KIND_BITS) as u8;
        let is_ready = bits & KIND_MASK == READY && bytes <= BYTES_MAX;
        is_ready.then_some(Posting { level, number: bits >> NUMBER_AT, bytes })
    }
}

impl<M: Memory> Board<M> {
    /// How much memory a board takes, in bytes.
    pub const MEMORY_BYTES: usize = 8 * WORDS;

    /// A board in this memory.
    ///
    /// # Panics
    /// The memory is shorter than [`MEMORY_BYTES`](Self::MEMORY_BYTES).
    pub fn new(memory: M) -> Self {
        assert!(memory.words(0, WORDS).is_some(), "there is room for a board");
        Board { memory }
    }

    #[inline]
    fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        self.memory.words(8 * at as u64, count).expect("there is room for a board")
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words(at, 1)[0]
    }

    #[inline]
    fn state(&self, slot: usize) -> &AtomicU64 {
        &self.words(STATES_AT, SLOTS)[slot]
    }

    fn content(&self, slot: usize) -> &[AtomicU64] {
        self.words(SLOTS_AT + slot * SLOT_WORDS, SLOT_WORDS)
    }

    /// Says whose board this is. The owner calls this once; until then no other process uses it.
    pub fn announce(&self, identity: [u64; 2]) {
        for (word, value) in self.words(IDENTITY_AT + 1, 2).iter().zip(identity) {
            word.store(value, Relaxed);
        }
        self.word(IDENTITY_AT).store(MAGIC, Release);
    }

    /// Whether it is the board of this identity. `None`: its owner has not said so yet.
    pub fn is_of(&self, identity: [u64; 2]) -> Option<bool> {
        match self.word(IDENTITY_AT).load(Acquire) {
            0 => None,
            MAGIC => {
                let words = self.words(IDENTITY_AT + 1, 2);
                Some(words.iter().zip(identity).all(|(word, value)| word.load(Relaxed) == value))
            }
            _ => Some(false),
        }
    }

    /// Owner: posts a task in an empty slot. `number` must be greater than of all tasks before.
    ///
    /// # Panics
    /// It is longer than [`BYTES_MAX`].
    pub fn post(&self, slot: usize, level: u8, number: u64, bytes: &[u8]) {
        assert!(bytes.len() <= BYTES_MAX, "a task of {} bytes is on no board", bytes.len());
        for (word, part) in self.content(slot).iter().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(whole), Relaxed);
        }
        let posting = Posting { level, number, bytes: bytes.len() };
        self.state(slot).store(posting.to_bits(), Release);
    }

    /// Owner: what is in a slot.
    #[inline]
    pub fn slot(&self, slot: usize) -> Slot {
        // With what the taker did before: it has copied the task.
        let bits = self.state(slot).load(Acquire);
        match bits & KIND_MASK {
            EMPTY => Slot::Empty,
            TAKEN => Slot::Taken((bits >> KIND_BITS) as u32),
            _ => Slot::Ready,
        }
    }

    /// Owner: takes back the task in a slot that is not empty.
    ///
    /// # Errors
    /// This process has taken it.
    pub fn take_back(&self, slot: usize) -> Result<(), u32> {
        let state = self.state(slot);
        let bits = state.load(Relaxed);
        if bits & KIND_MASK == READY && state.compare_exchange(bits, EMPTY, AcqRel, Acquire).is_ok()
        {
            return Ok(());
        }
        match self.slot(slot) {
            Slot::Taken(taker) => Err(taker),
            Slot::Empty | Slot::Ready => Ok(()),
        }
    }

    /// Owner: the slot of a task that was taken is empty again.
    pub fn free(&self, slot: usize) {
        self.state(slot).store(EMPTY, Release);
    }

    /// Takes the oldest task of the smallest level not below `nearest`, as the process `taker`, and
    /// writes it into `bytes`. Returns whether there was one.
    pub fn take(&self, taker: u32, nearest: u8, bytes: &mut Vec<u8>) -> bool {
        // Each time that this fails, another process has taken one.
        for _ in 0..2 * SLOTS {
            let states = self.words(STATES_AT, SLOTS);
            let ready = states.iter().enumerate().filter_map(|(slot, state)| {
                // With what the owner wrote before.
                let posting = Posting::from_bits(state.load(Acquire))?;
                (posting.level >= nearest).then_some((posting, slot))
            });
            let first = ready.min_by_key(|(posting, _)| (posting.level, posting.number));
            let Some((posting, slot)) = first else { return false };
            bytes.clear();
            for word in &self.content(slot)[..posting.bytes.div_ceil(8)] {
                bytes.extend_from_slice(&word.load(Relaxed).to_le_bytes());
            }
            bytes.truncate(posting.bytes);
            let taken = TAKEN | u64::from(taker) << KIND_BITS;
            // Release: the copy is made before the owner sees this, and fills the slot anew.
            let swapped = states[slot].compare_exchange(posting.to_bits(), taken, AcqRel, Relaxed);
            if swapped.is_ok() {
                return true;
            }
        }
        false
    }

    /// Sets the bit of this process, which is below [`SIGNALLERS_MAX`].
    pub fn raise(&self, signal: Signal, process: usize) {
        // Also if it is set: the owner may be about to take it, and has not seen what is new.
        self.word(signal.at() + process / 64).fetch_or(1 << (process % 64), AcqRel);
    }

    /// Owner: whether one of the first `processes` has set its bit.
    #[inline]
    pub fn is_raised(&self, signal: Signal, processes: usize) -> bool {
        let words = self.words(signal.at(), processes.div_ceil(64).min(SIGNAL_WORDS));
        words.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Owner: takes the bits that are set.
    pub fn take_raised(&self, signal: Signal) -> impl Iterator<Item = usize> + use<M> {
        let words = self.words(signal.at(), SIGNAL_WORDS);
        let bits: [u64; SIGNAL_WORDS] = array::from_fn(|at| match words[at].load(Relaxed) {
            0 => 0,
            _ => words[at].swap(0, AcqRel),
        });
        (0..SIGNALLERS_MAX).filter(move |process| bits[process / 64] >> (process % 64) & 1 == 1)
    }

    /// Owner: says how much it needs tasks, as a number whose meaning is the program's.
    pub fn set_need(&self, need: u64) {
        self.word(NEED_AT).store(need, Relaxed);
    }

    /// How much the owner needs tasks; 0 at first.
    pub fn need(&self) -> u64 {
        self.word(NEED_AT).load(Relaxed)
    }
}

impl Signal {
    fn at(self) -> usize {
        match self {
            Signal::Asks => SIGNALS_AT,
            Signal::Posted => SIGNALS_AT + SIGNAL_WORDS,
        }
    }
}
