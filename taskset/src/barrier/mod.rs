//! A barrier whose members may join, leave and die while others wait.
//!
//! It has a *slot* for each member, and one word of 128 bits that a single compare-and-swap
//! changes: how many members wait, a sequence number of the membership, and one of the releases. A
//! member that arrives counts the active slots. If it is the last, it sets the number of those
//! waiting to 0 and adds 1 to the release sequence; else it adds 1 to the number of those waiting,
//! and waits for a change of either sequence.
//!
//! # A change of the membership cancels all waiting
//!
//! The number of those waiting counts arrivals *since a sequence last changed*. The step that adds
//! 1 to the membership sequence also sets that number to 0. All members that waited return
//! [`Outcome::Changed`], help with what a dead member left, and come back. So no one corrects the
//! number for a member that died, and whether it had been counted does not matter; and a change
//! that is announced twice costs a round of returns, no more.
//!
//! # A slot
//!
//! | state | becomes | by |
//! |---|---|---|
//! | free | active | `join`, with a higher incarnation; then the change is announced |
//! | active | leaving | `leave`, or `remove` by one of those that notice a death |
//! | leaving | free | anyone, *after* it has announced the change |
//!
//! A member that finds a slot leaving announces the change and frees it, so that the death of
//! the one that began this holds up no one. Each step is a compare-and-swap of the slot with its
//! incarnation: of two that notice one death, one removes it, and a helper that is late changes
//! nothing for the next incarnation.
//!
//! # Why a release is right
//!
//! A member reads the word, then all slots, then changes the word if it is still the same. If it
//! has met a slot that is leaving, the word is not: it has announced that change itself. Suppose
//! that member X is counted in the word and has since been removed. X's slot was active when it
//! arrived, so it was set to leaving after that, and freed after an announcement, which changed the
//! word. A member that sees the slot free or leaving can no longer change the word that counts X.
//! So at a successful change each member that is counted was seen active; if as many are counted as
//! are active, these are the same members. Likewise for one that joins: its slot is active before
//! it announces the change, so each arrival after that counts it.
//!
//! Acquire and release suffice for that: the announcement happens before the slot is freed
//! (release), a member that sees it free (acquire) can no longer change the older word, and all
//! changes of the word are read-modify-writes, so that each acquires those before it.
//!
//! # When a member dies
//!
//! The others notice (the barrier does not know how) and call [`remove`](Barrier::remove). This is
//! right wherever the member died: in `join` before the announcement its slot is active, and the
//! others wait for it until it is removed; in `leave` any waiting member finishes its step; while
//! waiting, it may be counted, and even let the others go, as it had arrived. Members that wait
//! must be able to notice a death, so [`wait`](Barrier::wait) calls the caller's `pause` between
//! its looks at the word.
//!
//! A member that was removed by mistake gets [`Removed`] at its next `wait`, and cannot join with
//! its old incarnation.
//!
//! The barrier never knows what its members do, nor who is alive.
//!
//! ```
//! use ultramarine_taskset::barrier::{Barrier, Outcome, pause};
//!
//! let barrier = Barrier::<4>::new();
//! let mut anna = barrier.join(0, 1)?;
//! let bert = barrier.join(1, 1)?;
//! // Bert has joined since Anna did.
//! assert_eq!(barrier.wait(&mut anna, pause)?, Outcome::Changed);
//! barrier.leave(bert);
//! assert_eq!(barrier.wait(&mut anna, pause)?, Outcome::Changed);
//! assert_eq!(barrier.wait(&mut anna, pause)?, Outcome::Released { leader: true });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(all(test, loom))]
mod model;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod word;

use std::{array, thread, time::Duration};

use crate::sync::{
    AtomicBits, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
    spin_loop,
};

use slot::{Slot, State};
use word::Word;

/// Looks at the word before a member pauses, about 2 µs. With ten times as many, four processes on
/// two cores took three times as long to meet (34 µs, not 13 µs); two on two cores took the same.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// See the [module](self). It has room for `SLOTS` members.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Barrier<const SLOTS: usize> {
    word: AtomicBits,
    /// No slot from this one on has ever had a member: arrivals do not read them.
    slots_used: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

/// A membership, in the member's own memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    slot: usize,
    incarnation: u32,
    /// The membership sequence that it has answered with [`Outcome::Changed`], or at which it
    /// joined.
    seen: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All members have met.
    Released {
        /// Whether this is the member that came last. It may die before it does anything.
        leader: bool,
    },
    /// The membership has changed since this member last returned, or [`Barrier::recall`] was
    /// called: look for work, and come back.
    Changed,
}

/// What a member found when it arrived.
enum Arrival {
    Over(Outcome),
    /// It waits for a change of one of the sequences in this word.
    Counted(Word),
}

/// The member was removed, or its place has been taken by a later incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("incarnation {incarnation} of member {slot} was removed from the barrier: taken for dead")]
pub struct Removed {
    /// Its slot.
    pub slot: usize,
    /// What it joined as.
    pub incarnation: u32,
}

/// Why a member cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotJoin {
    /// The slot does not exist.
    #[error("member {slot} cannot join: the barrier has {slots} slots")]
    NoSlot {
        /// The slot that was asked for.
        slot: usize,
        /// How many there are.
        slots: usize,
    },
    /// The slot has had this incarnation or a later one; the first is 1.
    #[error("incarnation {incarnation} of member {slot} cannot join: {last} has joined before")]
    Old {
        /// The slot that was asked for.
        slot: usize,
        /// The incarnation that was to join.
        incarnation: u32,
        /// The last one that joined.
        last: u32,
    },
    /// A store went astray: no member has left the slot as it is.
    #[error("member {slot} cannot join: its slot of the barrier is damaged")]
    Damaged {
        /// The slot that was asked for.
        slot: usize,
    },
    /// See [`require_lock_free`].
    #[error(transparent)]
    NotLockFree(#[from] NotLockFree),
}

/// The processor cannot change 128 bits at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this processor has no lock-free compare-and-swap of 128 bits (cmpxchg16b on x86-64): \
     processes cannot meet at a barrier in shared memory"
)]
pub struct NotLockFree;

/// Refuses a processor that cannot change 128 bits at once. There, `portable-atomic` falls back to
/// a lock in the process's own memory, which other processes do not see. It finds that out as the
/// program runs, unless the target's features say so at compile time.
///
/// # Errors
/// [`NotLockFree`].
pub fn require_lock_free() -> Result<(), NotLockFree> {
    #[cfg(not(loom))]
    if !AtomicBits::is_lock_free() {
        return Err(NotLockFree);
    }
    Ok(())
}

/// A pause for [`Barrier::wait`]: gives up the processor, then sleeps, from 20 µs up to 1 ms.
///
/// Works across hosts. A futex, for which the last to come must enter the kernel, was no better on
/// one host where that was measured, whether all come at once or one 3 ms late.
pub fn pause(round: u32) {
    match round.checked_sub(16) {
        None => thread::yield_now(),
        Some(more) => thread::sleep(Duration::from_micros(20 << more.min(6)).min(SLEEP_MAX)),
    }
}

const SLEEP_MAX: Duration = Duration::from_millis(1);

impl<const SLOTS: usize> Default for Barrier<SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SLOTS: usize> Barrier<SLOTS> {
    /// Without members. All bytes of it are zero.
    pub fn new() -> Self {
        Self {
            word: AtomicBits::new(0),
            slots_used: AtomicU64::new(0),
            slots: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Makes the caller a member. The slot is its own as long as it lives; the incarnation is
    /// higher than any before in this slot, and at least 1. An earlier one that is still there is
    /// removed: the caller knows that it is dead.
    ///
    /// # Errors
    /// [`CannotJoin`].
    pub fn join(&self, slot: usize, incarnation: u32) -> Result<Member, CannotJoin> {
        require_lock_free()?;
        let at = self.slots.get(slot).ok_or(CannotJoin::NoSlot { slot, slots: SLOTS })?;
        // Before the slot is active, so before the announcement, which others acquire.
        self.slots_used.fetch_max(slot as u64 + 1, Relaxed);
        loop {
            let old = Slot::load(at);
            let last = old.incarnation;
            match old.state {
                State::Damaged => return Err(CannotJoin::Damaged { slot }),
                _ if last >= incarnation => {
                    return Err(CannotJoin::Old { slot, incarnation, last });
                }
                State::Active | State::Leaving => _ = self.remove(slot, last),
                State::Free if old.become_in(at, Slot { incarnation, state: State::Active }) => {
                    return Ok(Member { slot, incarnation, seen: self.recall() });
                }
                State::Free => {}
            }
        }
    }

    /// Ends a membership. Others go on without it. To join again takes a new incarnation.
    #[expect(clippy::needless_pass_by_value, reason = "the membership is over")]
    pub fn leave(&self, member: Member) {
        self.remove(member.slot, member.incarnation);
    }

    /// Removes a member that has died; `true` if no other has done so before. If the caller
    /// dies within, others finish it, or call this again.
    pub fn remove(&self, slot: usize, incarnation: u32) -> bool {
        let Some(at) = self.slots.get(slot) else { return false };
        let [active, leaving] =
            [State::Active, State::Leaving].map(|state| Slot { incarnation, state });
        let is_first = active.become_in(at, leaving);
        if Slot::load(at) == leaving {
            self.finish_leaving(at, leaving);
        }
        is_first
    }

    /// Removes all members, however its words are. No other process has the barrier.
    pub(crate) fn clear(&self) {
        let words = self.slots.iter().chain([&self.slots_used]);
        words.filter(|word| word.load(Relaxed) != 0).for_each(|word| word.store(0, Relaxed));
    }

    /// Cancels all waiting, as a change of the membership does: members that wait return
    /// [`Outcome::Changed`]. For one that has work to share. Returns the new membership sequence.
    pub fn recall(&self) -> u64 {
        let mut old = self.load();
        loop {
            match self.exchange(old, old.changed()) {
                Ok(()) => return old.changed().membership,
                Err(newer) => old = newer,
            }
        }
    }

    /// How many times the members have met. Those that join can know by it what to go on with.
    pub fn releases(&self) -> u64 {
        self.load().release
    }

    /// Waits until all members do, or until the membership changes. A change that the member has
    /// not been told of ends the wait at once.
    ///
    /// After some 2 µs `pause` is called, and again between looks at the word, with 0, 1, 2, ….
    /// There the caller shows that it lives, looks for dead members and removes them, and sleeps
    /// ([`pause()`] does only that). It can end the wait by [`recall`](Self::recall).
    ///
    /// All that members did before the release happens before it returns.
    ///
    /// # Errors
    /// [`Removed`].
    pub fn wait(
        &self,
        member: &mut Member,
        mut pause: impl FnMut(u32),
    ) -> Result<Outcome, Removed> {
        let arrived = match self.arrive(member)? {
            Arrival::Over(outcome) => return Ok(outcome),
            Arrival::Counted(word) => word,
        };
        for round in 0.. {
            for _ in 0..SPINS {
                let word = self.load();
                if word.release != arrived.release {
                    // Others may have met without it only after its removal.
                    self.require_active(member)?;
                    return Ok(Outcome::Released { leader: false });
                }
                if word.membership != arrived.membership {
                    return self.changed(member, word);
                }
                spin_loop();
            }
            // The member that began to leave may have died.
            let _ = self.count_active();
            pause(round);
        }
        unreachable!("the rounds have no end")
    }

    fn arrive(&self, member: &mut Member) -> Result<Arrival, Removed> {
        loop {
            let word = self.load();
            if word.membership != member.seen {
                return self.changed(member, word).map(Arrival::Over);
            }
            let active = self.count_active();
            self.require_active(member)?;
            // At least: a damaged number must not hold the members up for ever.
            let is_last = word.waiting + 1 >= active;
            let next = if is_last { word.released() } else { word.arrived() };
            match self.exchange(word, next) {
                Ok(()) if is_last => return Ok(Arrival::Over(Outcome::Released { leader: true })),
                Ok(()) => return Ok(Arrival::Counted(next)),
                Err(_) => spin_loop(),
            }
        }
    }

    fn changed(&self, member: &mut Member, word: Word) -> Result<Outcome, Removed> {
        self.require_active(member)?;
        member.seen = word.membership;
        Ok(Outcome::Changed)
    }

    /// How many slots are active. Slots that are leaving are freed, which changes the word.
    fn count_active(&self) -> u64 {
        let used = SLOTS.min(self.slots_used.load(Relaxed) as usize);
        let is_active = |at: &&AtomicU64| {
            let slot = Slot::load(at);
            if slot.state == State::Leaving {
                self.finish_leaving(at, slot);
            }
            slot.state == State::Active
        };
        self.slots[..used].iter().filter(is_active).count() as u64
    }

    /// The order matters: see the module on why a release is right.
    fn finish_leaving(&self, at: &AtomicU64, leaving: Slot) {
        self.recall();
        leaving.become_in(at, Slot { state: State::Free, ..leaving });
    }

    fn require_active(&self, member: &Member) -> Result<(), Removed> {
        let &Member { slot, incarnation, .. } = member;
        let is_active = Slot::load(&self.slots[slot]) == Slot { incarnation, state: State::Active };
        if is_active { Ok(()) } else { Err(Removed { slot, incarnation }) }
    }

    fn load(&self) -> Word {
        Word::from_bits(self.word.load(Acquire))
    }

    fn exchange(&self, old: Word, new: Word) -> Result<(), Word> {
        let exchanged = self.word.compare_exchange(old.bits(), new.bits(), AcqRel, Acquire);
        exchanged.map(drop).map_err(Word::from_bits)
    }
}
