//! Receive credit: limits how much all peers together may have in flight towards this port.
//!
//! Each peer may always have one frame in flight. For more it borrows from the port's budget. Each
//! frame says how many bytes wait behind it, so the port lends a peer no more than it can use; an
//! acknowledgement carries the loan to the peer. A loan is a position in the peer's stream and
//! never goes back, so a lost or late frame does no harm. As the bytes arrive, the loan shrinks,
//! and no loan is ever called back.
//!
//! A peer that has sent everything mostly owes nothing. But what has come at once will come at once
//! again: for more than twice that, up to [`AHEAD_BYTES_MAX`], it has a loan ahead of need, as long
//! as others have borrowed little of the budget. So a message of some frames waits for no answer,
//! also if the receiver is busy, and is acknowledged with what is sent back. (Two PEs, steps of
//! 30 µs, messages of two frames: one step in four waited for the other PE's.)
//!
//! Peers that wait for credit get equal shares. A peer that finds the whole budget lent out goes on
//! with one frame for each acknowledgement.

use super::peer::Flow;

/// The most that a peer has ahead of need, in bytes beyond the one frame.
const AHEAD_BYTES_MAX: u64 = 128 << 10;

/// Nothing more is lent ahead of need once this part of the budget is lent. A peer that sends
/// nothing more keeps such a loan, and cannot rest: so there are a few hundred of these at most.
const AHEAD_SHARE: u64 = 8;

/// What a port lends to its peers.
pub(super) struct Budget {
    bytes: u64,
    /// The bytes that are lent at the moment; not more than `bytes`.
    lent: u64,
    /// The number of peers that have more to send than the one frame that is always allowed.
    borrowers: u64,
}

/// What one peer has borrowed.
#[derive(Default)]
pub(super) struct Loan {
    /// The peer may send its stream up to this position.
    limit: u64,
    /// The part of the budget that it takes, in bytes.
    lent: u64,
    is_borrower: bool,
    /// About the most bytes that have waited behind a frame lately, up to [`AHEAD_BYTES_MAX`].
    burst: u64,
}

impl Loan {
    /// Whether a peer whose stream has arrived up to `position` has borrowed nothing.
    pub(super) fn is_over(&self, position: u64) -> bool {
        self.lent == 0 && !self.is_borrower && self.credit(position) == 0
    }

    /// How many bytes the peer may send beyond `position`, apart from the one frame.
    pub(super) fn credit(&self, position: u64) -> u32 {
        self.limit.saturating_sub(position).try_into().unwrap_or(u32::MAX)
    }

    /// This many bytes wait behind a frame. What was rare is forgotten after dozens of frames.
    fn note_burst(&mut self, waiting: u64) {
        let lately = self.burst - self.burst.div_ceil(8);
        self.burst = lately.max(waiting.min(AHEAD_BYTES_MAX));
    }

    /// How much to lend ahead of need.
    fn ahead(&self, frame_bytes: u64) -> u64 {
        if self.burst == 0 {
            return 0;
        }
        // Once a peer has used up half of its loan, it must be told at once.
        (2 * self.burst + frame_bytes).next_multiple_of(frame_bytes).min(AHEAD_BYTES_MAX)
    }
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Budget { bytes: bytes as u64, lent: 0, borrowers: 0 }
    }

    /// Adapts a loan: the peer's stream has arrived up to `position`, and at least `waiting` bytes
    /// come after it.
    pub(super) fn renew(
        &mut self,
        loan: &mut Loan,
        position: u64,
        waiting: u32,
        Flow { frame_bytes, window_bytes }: Flow,
    ) {
        let frame_bytes = frame_bytes as u64;
        let window_bytes = window_bytes as u64;
        let wanted = u64::from(waiting).min(window_bytes).saturating_sub(frame_bytes);
        loan.note_burst(waiting.into());
        if wanted == 0 && loan.lent == 0 && !loan.is_borrower && loan.burst == 0 {
            return;
        }
        self.borrowers -= u64::from(std::mem::replace(&mut loan.is_borrower, wanted > 0));
        self.borrowers += u64::from(wanted > 0);
        let others = self.lent - loan.lent;
        let share = (self.bytes / self.borrowers.max(1)).min(self.bytes.saturating_sub(others));
        let held = loan.limit.saturating_sub(position + frame_bytes);
        let room = (self.bytes / AHEAD_SHARE).saturating_sub(others);
        let ahead = loan.ahead(frame_bytes).min(room);
        let ahead = ahead.min(window_bytes.saturating_sub(frame_bytes));
        let granted = wanted.max(ahead).min(share);
        if granted > held {
            loan.limit = position + frame_bytes + granted;
        }
        loan.lent = held.max(granted);
        self.lent = others + loan.lent;
    }

    /// Ends a loan: the peer sends nothing more.
    pub(super) fn end(&mut self, loan: &mut Loan) {
        let loan = std::mem::take(loan);
        self.lent -= loan.lent;
        self.borrowers -= u64::from(loan.is_borrower);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: u64 = 10;
    const WINDOW: u64 = 400;
    const BOTH: Flow = Flow { frame_bytes: FRAME as usize, window_bytes: WINDOW as usize };

    #[test]
    fn one_peer_alone_gets_the_window_or_the_budget() {
        for (budget, credit) in [(1000, WINDOW), (100, 100 + FRAME)] {
            let (mut budget, mut loan) = (Budget::new(budget), Loan::default());
            budget.renew(&mut loan, 7, 5000, BOTH);
            assert_eq!(u64::from(loan.credit(7)), credit);
        }
    }

    #[test]
    fn a_peer_without_much_to_send_borrows_nothing() {
        let (mut budget, mut loan) = (Budget::new(100), Loan::default());
        for position in (0..100).step_by(10) {
            budget.renew(&mut loan, position, 0, BOTH);
        }
        assert_eq!((loan.credit(90), budget.lent, budget.borrowers), (0, 0, 0));
    }

    #[test]
    fn what_comes_at_once_is_lent_ahead_until_it_does_so_no_more() {
        let (mut budget, mut loan) = (Budget::new(1000), Loan::default());
        // A frame, and one behind it that is nearly empty.
        budget.renew(&mut loan, FRAME, 2, BOTH);
        budget.renew(&mut loan, FRAME + 2, 0, BOTH);
        assert!(loan.credit(FRAME + 2) >= 2 * (FRAME as u32 + 2), "again, and as much once more");
        let (mut position, mut renewed) = (FRAME + 2, 0);
        while loan.credit(position) > 0 {
            position += 1;
            budget.renew(&mut loan, position, 0, BOTH);
            renewed += 1;
            assert!(renewed < 100, "single frames need no loan");
        }
        assert!(loan.is_over(position) && budget.lent == 0);
    }

    #[test]
    fn nothing_is_lent_ahead_of_what_others_need() {
        let (mut budget, mut other, mut loan) =
            (Budget::new(100), Loan::default(), Loan::default());
        budget.renew(&mut loan, FRAME, 2, BOTH);
        budget.renew(&mut other, FRAME, 60 + FRAME as u32, BOTH);
        budget.renew(&mut loan, FRAME + 50, 0, BOTH);
        assert_eq!(loan.credit(FRAME + 50), 0);
    }

    #[test]
    fn a_peer_that_is_gone_gives_its_loan_back() {
        let (mut budget, mut loan) = (Budget::new(100), Loan::default());
        budget.renew(&mut loan, 0, 5000, BOTH);
        assert_eq!((budget.lent, budget.borrowers), (100, 1));
        budget.end(&mut loan);
        assert_eq!((budget.lent, budget.borrowers), (0, 0));
    }

    proptest! {
        #[test]
        fn no_more_than_the_budget_is_ever_lent(
            bytes in 0..2000_usize,
            frames in prop::collection::vec((0..5_usize, 0..50_u64, 0..600_u32), 0..200),
        ) {
            let mut budget = Budget::new(bytes);
            let mut peers: [(Loan, u64, u64); 5] = Default::default();
            for (peer, arrived, more) in frames {
                let (loan, position, end) = &mut peers[peer];
                // A peer sends what it may: one frame, or up to its limit.
                *end = (*end).max(*position + u64::from(more));
                let may = FRAME.max(loan.limit.saturating_sub(*position));
                *position = (*position + arrived.min(may)).min(*end);
                budget.renew(loan, *position, (*end - *position) as u32, BOTH);
                let lent = |(loan, position, _): &(Loan, u64, u64)| {
                    loan.limit.saturating_sub(*position + FRAME)
                };
                let may = |peer: &(Loan, u64, u64)| peer.2.max(peer.1 + FRAME + AHEAD_BYTES_MAX);
                prop_assert!(peers.iter().all(|peer| peer.0.limit <= may(peer)));
                prop_assert_eq!(peers.iter().map(lent).sum::<u64>(), budget.lent);
                prop_assert!(budget.lent <= bytes as u64);
            }
        }
    }
}
