//! Who has a worker's slot: one word, changed by compare-and-swap.
//!
//! ```text
//! FREE ──→ ALIVE(process) ──→ TAKEN(by worker) ──→ FREE, or SILENT
//!   ↑          │ it leaves          ↑ │ that one has died, too
//!   └──────────┘                    └─┘
//! ```
//!
//! Each step to ALIVE begins a new incarnation. A worker is dead as soon as its word is TAKEN: what
//! it had is taken over by that one worker, and by another if that one dies. A worker that was
//! given up since it was silent may still live, and use its queue and its pages. So its slot stays
//! SILENT, and is not given to another until the arena is opened alone.

use crate::state::Runner;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Free,
    /// The number of its process.
    Alive(u32),
    /// The number of the worker that takes it over.
    Taken(u32),
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) phase: Phase,
    pub(crate) incarnation: u32,
}

/// Numbers of processes are below 2^22 on Linux.
const WHO_BITS: u32 = 22;

impl Life {
    pub(crate) fn load(word: &AtomicU64) -> Self {
        Self::from_bits(word.load(Acquire))
    }

    pub(crate) fn bits(self) -> u64 {
        let (tag, who) = match self.phase {
            Phase::Free => (0, 0),
            Phase::Alive(process) => (1, process),
            Phase::Taken(worker) => (2, worker),
            Phase::Silent => (3, 0),
        };
        tag << 62 | u64::from(who) << 32 | u64::from(self.incarnation)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        let who = (bits >> 32) as u32 & ((1 << WHO_BITS) - 1);
        let phase = match bits >> 62 {
            0 => Phase::Free,
            1 => Phase::Alive(who),
            2 => Phase::Taken(who),
            _ => Phase::Silent,
        };
        Self { phase, incarnation: bits as u32 }
    }

    /// Goes to `phase`, unless another was quicker.
    pub(crate) fn become_in(self, word: &AtomicU64, phase: Phase) -> bool {
        let new = Self { phase, ..self };
        word.compare_exchange(self.bits(), new.bits(), AcqRel, Acquire).is_ok()
    }

    /// Begins the next incarnation in a free slot, for a process.
    pub(crate) fn begin(self, word: &AtomicU64, process: u32) -> Option<Self> {
        let next = Self {
            phase: Phase::Alive(process & ((1 << WHO_BITS) - 1)),
            incarnation: self.incarnation.wrapping_add(1),
        };
        let is_mine = self.phase == Phase::Free
            && word.compare_exchange(self.bits(), next.bits(), AcqRel, Acquire).is_ok();
        is_mine.then_some(next)
    }

    /// Whether this life of the worker goes on.
    pub(crate) fn has(self, runner: Runner) -> bool {
        self.incarnation == runner.incarnation && matches!(self.phase, Phase::Alive(_))
    }
}
