//! The agreement on who is dead, searched exhaustively; and a mutant of it, which the search must
//! find.
//!
//! A search prints how many states it has visited.

use ultramarine_proof::membership::{
    FEW_INNOCENTS, MembershipCase, NOBODY_DISAGREES_FOR_EVER, NOBODY_IS_MISLED,
};
use ultramarine_proof::search::{all, first_fault};
use ultramarine_runtime::protocol::membership::MembershipMutant;

#[test]
fn nobody_disagrees_for_ever() {
    for (name, case) in MembershipCase::quick() {
        let search = all(case);
        println!("{name}: {search}");
        assert!(search.is_good(), "{name}: {search}");
    }
}

/// A tree alone leaves somebody out if a bulletin is lost.
#[test]
fn the_heartbeats_in_the_ring_are_needed() {
    let search = first_fault(MembershipCase { deaf: true, lost: 1, ..MembershipCase::new(4, 1) });
    println!("without heartbeats: {search}");
    assert!(search.breaks(NOBODY_DISAGREES_FOR_EVER), "{search}");
}

#[test]
fn each_rule_is_needed() {
    let doubted = MembershipCase { doubts: 1, ..MembershipCase::new(3, 0) };
    for (mutant, case, broken) in [
        (MembershipMutant::BelievesAccusers, doubted.clone(), FEW_INNOCENTS),
        (MembershipMutant::BelievesHeralds, doubted.clone(), NOBODY_IS_MISLED),
        (
            MembershipMutant::TrustsOldSights,
            MembershipCase { crashes: 1, ..doubted },
            FEW_INNOCENTS,
        ),
        (
            MembershipMutant::ExpelsBoth,
            MembershipCase { cuts: 1, ..MembershipCase::new(3, 0) },
            FEW_INNOCENTS,
        ),
    ] {
        let search = first_fault(MembershipCase { mutant: Some(mutant), ..case });
        println!("{mutant:?}: {search}");
        assert!(search.breaks(broken), "{mutant:?}: {search}");
    }
}
