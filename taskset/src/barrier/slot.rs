//! A slot of the barrier: which incarnation of a member it has, and how that stands.

use crate::sync::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Active,
    /// Between active and free, until the change has been announced.
    Leaving,
    /// No member has left it so.
    Damaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The last member; 0 if there was none.
    pub(super) incarnation: u32,
    pub(super) state: State,
}

impl Slot {
    pub(super) fn load(at: &AtomicU64) -> Self {
        Self::from_bits(at.load(Acquire))
    }

    /// Changes the slot to `new` if it is still as `self`.
    pub(super) fn become_in(self, at: &AtomicU64, new: Self) -> bool {
        at.compare_exchange(self.bits(), new.bits(), AcqRel, Acquire).is_ok()
    }

    fn bits(self) -> u64 {
        u64::from(self.incarnation) << 2 | self.state as u64
    }

    fn from_bits(bits: u64) -> Self {
        let known = [State::Free, State::Active, State::Leaving];
        let incarnation = u32::try_from(bits >> 2);
        let state = known.get((bits & 3) as usize).filter(|_| incarnation.is_ok());
        Self {
            incarnation: incarnation.unwrap_or_default(),
            state: *state.unwrap_or(&State::Damaged),
        }
    }
}
