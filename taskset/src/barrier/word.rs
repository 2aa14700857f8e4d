//! The barrier's word: three numbers that one compare-and-swap changes.

use crate::sync::Bits;

/// Bits of `waiting`, and of each of the sequences. These pass 2^48 in 8 years of a change each
/// microsecond.
#[cfg(not(loom))]
const WIDTHS: (u32, u32) = (32, 48);
#[cfg(loom)]
const WIDTHS: (u32, u32) = (16, 24);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Members that wait, of those that came since one of the sequences last changed.
    pub(super) waiting: u64,
    /// How many times the membership has changed.
    pub(super) membership: u64,
    /// How many times the barrier has been released.
    pub(super) release: u64,
}

impl Word {
    pub(super) fn arrived(self) -> Self {
        Self { waiting: self.waiting + 1, ..self }
    }

    pub(super) fn released(self) -> Self {
        Self { waiting: 0, release: self.release + 1, ..self }
    }

    pub(super) fn changed(self) -> Self {
        Self { waiting: 0, membership: self.membership + 1, ..self }
    }

    pub(super) fn bits(self) -> Bits {
        let field = |value: u64, width: u32| Bits::from(value) & ((1 << width) - 1);
        let (waiting, sequence) = WIDTHS;
        field(self.waiting, waiting)
            | field(self.membership, sequence) << waiting
            | field(self.release, sequence) << (waiting + sequence)
    }

    pub(super) fn from_bits(bits: Bits) -> Self {
        let field = |at: u32, width: u32| (bits >> at) as u64 & ((1 << width) - 1);
        let (waiting, sequence) = WIDTHS;
        Self {
            waiting: field(0, waiting),
            membership: field(waiting, sequence),
            release: field(waiting + sequence, sequence),
        }
    }
}
