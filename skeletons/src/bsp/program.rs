//! What a bulk-synchronous program is.

use super::comm::Comm;
use std::fmt::Debug;
use std::ops::Range;
use ultramarine_runtime::executor::Portable;

/// A bulk-synchronous program: the state of one of its ranks, and what a rank does in a superstep.
/// See [`bsp`](super::bsp).
///
/// It should do the same each time with the same state and messages: after a death some supersteps
/// are computed again. (It may use random numbers, if the state of their generator is a part of its
/// own.)
pub trait Program: Portable {
    /// What each rank is made from.
    type Argument: Portable + Sync;
    /// What a rank does in a superstep. The default is the first.
    type Stage: Portable + Clone + Default + Debug;
    /// What ranks send each other.
    type Message: Portable;
    /// What a rank leaves to the program that waits for the end.
    type Output: Portable;

    /// A rank's state before the first superstep.
    fn new(start: &Start, argument: &Self::Argument) -> Self;

    /// What a rank does in a superstep. It has what was sent to it in the one before, and the
    /// results of the collective operations in which it took part there.
    fn step(&mut self, stage: Self::Stage, comm: &mut Comm<Self>) -> Next<Self>;

    /// The state has been read from a checkpoint: what it does not keep there (a field with
    /// `#[serde(skip)]`, say a matrix that can be made again) is made again. That happens to all
    /// ranks after a death, and also when some [move](super::Bsp::balance).
    fn restored(&mut self, _start: &Start, _argument: &Self::Argument) {}
}

/// What a rank knows of itself before the first superstep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Start {
    /// Its number, from 0 on. Neighbours in number are near each other in the machine.
    pub rank: u32,
    /// The number of ranks.
    pub ranks: u32,
}

/// The range of the items that is a rank's, if each item is one rank's. The lengths of the ranges
/// differ by 1 at most.
pub fn own_range(items: usize, rank: u32, ranks: u32) -> Range<usize> {
    let bound = |rank: u32| (items as u128 * u128::from(rank) / u128::from(ranks)) as usize;
    bound(rank)..bound(rank + 1)
}

/// What a rank does next.
#[derive(Debug)]
pub enum Next<P: Program> {
    /// This stage, in the next superstep.
    Stage(P::Stage),
    /// This stage, in the first superstep to which something was sent to it. If all ranks sleep or
    /// have ended, and nothing was sent, all that sleep are woken: see [`Comm::all_slept`]. The
    /// result of a collective operation does not wake a rank, and is lost if it sleeps.
    Sleep(P::Stage),
    /// The rank ends. What is sent to it after that is an error.
    End(P::Output),
}
