//! A task in the arena: what is to be done, how that stands, and what came of it.
//!
//! All but the state, the result and the list of those that await it is written before any word
//! names the task, and never changes. A *seal* over it tells a task from anything else, so that a
//! damaged offset in a queue or a table is an error.
//!
//! Behind the fixed part lie the argument, a bit for each task that this one awaits, and an entry
//! for each of them: see [`dependencies`](crate::mapped::dependencies).
//!
//! # The result
//!
//! The state FINISHED names the result, so the one that finishes the task decides on it, whoever
//! else has begun to write one. A short result of the first worker that ran the task lies in the
//! task. Later ones have a block each: the first may only seem dead, and still write.

use crate::mapped::arena::Space;
use crate::mapped::blocks::{Blocks, Fresh};
use crate::mapped::error::{Error, Result};
use crate::mapped::shared::{Offset, shared};
use crate::state::{State, Status};
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{fill, load};

/// Bytes of a result that lie in the task.
const SHORT_BYTES: usize = 16;

/// What a task does, in 16 bytes that only the program understands: a code reference, or a number.
pub type Code = [u8; 16];

shared! {
    /// See the [module](self).
    pub(crate) struct Task {
        pub(crate) state: AtomicU64,
        /// The first of those that await this task: [`Wait`](crate::mapped::dependencies::Wait).
        pub(crate) dependents: AtomicU64,
        seal: AtomicU64,
        set: AtomicU64,
        number: AtomicU64,
        code: [AtomicU64; 2],
        /// Bytes of the argument; and above them in the word, how many tasks it awaits.
        sizes: AtomicU64,
        result_bytes: AtomicU64,
        result: [AtomicU64; SHORT_BYTES / 8],
    }
}

/// What a new task is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'p> {
    /// The offset of its set.
    pub(crate) set: u64,
    pub(crate) number: u64,
    pub(crate) code: Code,
    pub(crate) argument: &'p [u8],
    /// The offsets of the tasks that it awaits.
    pub(crate) awaited: &'p [u64],
}

/// A task whose seal is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRef<'a> {
    pub(crate) space: &'a Space,
    pub(crate) task: &'a Task,
    pub(crate) offset: u64,
    sizes: u64,
}

impl Task {
    /// Bytes of all that belongs to it.
    pub(crate) fn bytes(argument_bytes: usize, awaited: usize) -> u64 {
        let words = argument_bytes.div_ceil(8) + awaited.div_ceil(64) + 3 * awaited;
        (size_of::<Self>() + 8 * words) as u64
    }

    /// Writes the fixed part, for a task that no word names yet.
    pub(crate) fn write(&self, offset: u64, plan: &Plan<'_>, status: Status) {
        let sizes = plan.argument.len() as u64 | (plan.awaited.len() as u64) << 32;
        let code = words_of(plan.code);
        fill(&self.state, State::new(status).bits());
        fill(&self.dependents, 0);
        fill(&self.set, plan.set);
        fill(&self.number, plan.number);
        self.code.iter().zip(code).for_each(|(word, value)| fill(word, value));
        fill(&self.sizes, sizes);
        fill(&self.seal, seal([offset, plan.set, plan.number, code[0], code[1], sizes]));
    }
}

impl Task {
    /// Empties the list of those that await it. It has finished, and no other worker has the arena.
    pub(crate) fn forget_dependents(&self) {
        if self.dependents.load(Relaxed) != 0 {
            self.dependents.store(0, SeqCst);
        }
    }
}

fn words_of(code: Code) -> [u64; 2] {
    let (low, high) = code.split_at(8);
    [low, high].map(|half| u64::from_le_bytes(half.try_into().expect("a half has eight bytes")))
}

/// Mixes what never changes of a task into one word.
#[inline]
fn seal(words: [u64; 6]) -> u64 {
    words.into_iter().fold(0x7461_736b_7365_616c, |sum, word| {
        (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

impl<'a> TaskRef<'a> {
    /// The task at this offset.
    ///
    /// # Errors
    /// There is none, or a damaged one.
    #[inline]
    pub(crate) fn open(space: &'a Space, offset: u64) -> Result<Self> {
        let task: &Task = space.get(Offset::new(offset))?;
        let sizes = task.sizes.load(Relaxed);
        let [set, number] = [&task.set, &task.number].map(|word| word.load(Relaxed));
        let [low, high] = [&task.code[0], &task.code[1]].map(|word| word.load(Relaxed));
        if task.seal.load(Relaxed) != seal([offset, set, number, low, high, sizes]) {
            return Err(Error::Damaged { what: "task", offset });
        }
        Ok(Self { space, task, offset, sizes })
    }

    pub(crate) fn set(self) -> u64 {
        self.task.set.load(Relaxed)
    }

    pub(crate) fn number(self) -> u64 {
        self.task.number.load(Relaxed)
    }

    pub(crate) fn code(self) -> Code {
        let [low, high] = [0, 1].map(|half| self.task.code[half].load(Relaxed).to_le_bytes());
        std::array::from_fn(|at| if at < 8 { low[at] } else { high[at - 8] })
    }

    pub(crate) fn state(self) -> State {
        State::load(&self.task.state)
    }

    pub(crate) fn is_finished(self) -> bool {
        matches!(self.state().status, Status::Finished(_))
    }

    /// How many tasks it awaits.
    pub(crate) fn awaited(self) -> usize {
        (self.sizes >> 32) as usize
    }

    fn argument_words(self) -> Result<&'a [AtomicU64]> {
        self.behind(0, self.argument_bytes().div_ceil(8))
    }

    pub(crate) fn argument_bytes(self) -> usize {
        self.sizes as u32 as usize
    }

    pub(crate) fn argument(self) -> Result<Vec<u8>> {
        Ok(read(self.argument_words()?, self.argument_bytes()))
    }

    pub(crate) fn write_argument(self, argument: &[u8]) -> Result<()> {
        write(self.argument_words()?, argument);
        Ok(())
    }

    /// Whether the two are the same task for the program.
    pub(crate) fn is_like(self, plan: &Plan<'_>) -> bool {
        self.code() == plan.code && self.argument_bytes() == plan.argument.len()
    }

    /// Words behind the fixed part.
    pub(crate) fn behind(self, skip: usize, count: usize) -> Result<&'a [AtomicU64]> {
        self.space.words_at(self.offset + (size_of::<Task>() + 8 * skip) as u64, count)
    }

    /// What it has come to; `None` if it has not finished.
    pub(crate) fn result(self) -> Result<Option<Vec<u8>>> {
        match self.state().status {
            Status::Finished(0) => {
                let bytes = self.task.result_bytes.load(Relaxed) as usize;
                Ok(Some(read(&self.task.result, bytes.min(SHORT_BYTES))))
            }
            Status::Finished(block) => read_block(self.space, block).map(Some),
            _ => Ok(None),
        }
    }

    /// Writes a result where `as_claimed` leaves room for it, and finishes the task; `false` if it
    /// was another's by now. An error leaves it as it is.
    pub(crate) fn finish(
        self,
        blocks: &Blocks<'_>,
        as_claimed: State,
        result: &[u8],
    ) -> Result<bool> {
        let state = &self.task.state;
        if as_claimed.deaths == 0 && result.len() <= SHORT_BYTES {
            // Others can see the task, so a death in the middle is one to reckon with.
            self.task.result_bytes.store(result.len() as u64, Relaxed);
            write_by(&self.task.result, result, |word, value| word.store(value, Relaxed));
            return Ok(as_claimed.become_in(state, Status::Finished(0)));
        }
        let fresh = write_block(self.space, blocks, result)?;
        fresh.announce(state);
        let is_mine = as_claimed.become_in(state, Status::Finished(fresh.offset));
        if is_mine {
            fresh.linked();
        }
        Ok(is_mine)
    }

    /// The head of the list of those that await it.
    pub(crate) fn first_dependent(self) -> u64 {
        load(&self.task.dependents)
    }
}

/// Bytes in a block of their own, behind their number.
pub(crate) fn write_block<'b>(
    space: &Space,
    blocks: &'b Blocks<'_>,
    bytes: &[u8],
) -> Result<Fresh<'b>> {
    let fresh = blocks.take(8 + bytes.len() as u64)?;
    let words = space.words_at(fresh.offset, 1 + bytes.len().div_ceil(8))?;
    fill(&words[0], bytes.len() as u64);
    write(&words[1..], bytes);
    Ok(fresh)
}

/// See [`write_block`].
pub(crate) fn read_block(space: &Space, offset: u64) -> Result<Vec<u8>> {
    let bytes = space.words_at(offset, 1)?[0].load(Relaxed) as usize;
    Ok(read(space.words_at(offset + 8, bytes.div_ceil(8))?, bytes))
}

/// Writes bytes to words that no other worker reads yet.
fn write(words: &[AtomicU64], bytes: &[u8]) {
    write_by(words, bytes, fill);
}

fn write_by(words: &[AtomicU64], bytes: &[u8], store: impl Fn(&AtomicU64, u64)) {
    for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
        let mut value = [0; 8];
        value[..chunk.len()].copy_from_slice(chunk);
        store(word, u64::from_le_bytes(value));
    }
}

fn read(words: &[AtomicU64], count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 * words.len());
    words.iter().for_each(|word| bytes.extend(word.load(Relaxed).to_le_bytes()));
    bytes.truncate(count);
    bytes
}
