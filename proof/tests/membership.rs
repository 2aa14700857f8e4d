//! The agreement on who is dead, searched exhaustively; and a mutant of it, which the search must
//! find.
//!
//! A search prints how many states it has visited.

use ultramarine_proof::membership::{Case, NOBODY_DISAGREES_FOR_EVER};
use ultramarine_proof::search::{all, first_fault};

#[test]
fn nobody_disagrees_for_ever() {
    for (name, case) in Case::quick() {
        let search = all(case);
        println!("{name}: {search}");
        assert!(search.is_good(), "{name}: {search}");
    }
}

/// A tree alone leaves somebody out if a bulletin is lost.
#[test]
fn the_heartbeats_in_the_ring_are_needed() {
    let search = first_fault(Case { deaf: true, ..Case::new(4, 1, 0, 1) });
    println!("without heartbeats: {search}");
    assert!(search.breaks(NOBODY_DISAGREES_FOR_EVER), "{search}");
}
