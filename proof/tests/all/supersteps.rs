//! Bulk-synchronous runs, searched exhaustively; and mutants of them, which the search must find.
//!
//! A search prints how many states it has visited.

use crate::hold;
use ultramarine_proof::search::first_fault;
use ultramarine_proof::supersteps::{
    CHECKPOINTS_ARE_SAFE, Habit, NO_MACHINE_PANICS, OUTPUTS_ARE_RIGHT, Program,
    SUPERSTEPS_ARE_APART, SuperstepsCase, SuperstepsMutant, VIEWS_ARE_APART,
};
use ultramarine_skeletons::bsp::machine::{Saving, When};

#[test]
fn two_pes_end_with_the_outputs_of_one_loop() {
    hold(SuperstepsCase::quick(), |name| name.starts_with("two"));
}

#[test]
fn three_pes_end_with_the_outputs_of_one_loop() {
    hold(SuperstepsCase::quick(), |name| name.starts_with("three"));
}

#[test]
fn four_pes_end_with_the_outputs_of_one_loop() {
    hold(SuperstepsCase::quick(), |name| name.starts_with("four"));
}

#[test]
fn each_rule_is_needed() {
    use SuperstepsMutant::{
        AwaitsNoReceipts, BelievesFormerViews, ForgetsTooSoon, MeetsTooBriefly, MixesSupersteps,
        ReusesTickets, TrustsPartners,
    };
    let of_three = |supersteps| SuperstepsCase::new(3, 3, supersteps);
    let four = SuperstepsCase {
        deaths: 0,
        saving: Saving::in_memory(When::Never),
        ..SuperstepsCase::new(4, 4, 2)
    };
    let four = SuperstepsCase {
        // What is sent so far is acknowledged: the meeting does not imply that it has come.
        program: Program { habit: Habit::Ring(3), ..four.program },
        ..four
    };
    for (mutant, case, broken) in [
        (AwaitsNoReceipts, four.clone(), OUTPUTS_ARE_RIGHT),
        (MeetsTooBriefly, four, OUTPUTS_ARE_RIGHT),
        (MixesSupersteps, of_three(3), SUPERSTEPS_ARE_APART),
        (BelievesFormerViews, of_three(2), VIEWS_ARE_APART),
        (ReusesTickets, of_three(2), NO_MACHINE_PANICS),
        (ForgetsTooSoon, of_three(4), CHECKPOINTS_ARE_SAFE),
        (TrustsPartners, of_three(4), CHECKPOINTS_ARE_SAFE),
    ] {
        let search = first_fault(SuperstepsCase { mutant: Some(mutant), ..case });
        println!("{mutant:?}: {search}");
        assert!(search.breaks(broken), "{mutant:?}: {search}");
    }
}
