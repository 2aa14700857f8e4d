//! Membership, searched exhaustively; and mutants of it, which the search must find.
//!
//! A search prints how many states it has visited.

use crate::hold;
use ultramarine_proof::membership::{
    ALL_AGREE_IN_THE_END, Cut, FEW_INNOCENTS, LISTS_BEGIN_ALIKE, MembershipCase, NONE_IS_MISLED,
    ONE_RESULT_COUNTS, ONE_SIDE_GOES_ON,
};
use ultramarine_proof::search::first_fault;
use ultramarine_runtime::protocol::membership::MembershipMutant;

#[test]
fn all_living_pes_agree_in_the_end() {
    hold(MembershipCase::quick(), |name| !name.contains("and one"));
}

#[test]
fn all_agree_though_paths_break_and_pes_are_suspected() {
    hold(MembershipCase::quick(), |name| name.contains("and one"));
}

#[test]
fn another_pe_takes_the_roots_place() {
    let is_small =
        |name: &str| [", and", "of four", "for a while"].iter().all(|it| !name.contains(it));
    hold(MembershipCase::with_succession(), is_small);
}

#[test]
fn another_pe_takes_the_roots_place_among_four() {
    hold(MembershipCase::with_succession(), |name| name.contains("of four"));
}

#[test]
fn another_pe_takes_the_roots_place_though_a_main_task_ends() {
    let is_it = |name: &str| name.contains("and a main task ends") && !name.contains("for a while");
    hold(MembershipCase::with_succession(), is_it);
}

#[test]
fn another_pe_takes_the_roots_place_though_all_are_parted() {
    hold(MembershipCase::with_succession(), |name| name.contains("parted, and one crashes"));
}

#[test]
fn another_pe_takes_the_roots_place_though_paths_break_for_a_while() {
    hold(MembershipCase::with_succession(), |name| name.contains("for a while"));
}

#[test]
fn another_pe_takes_the_roots_place_though_paths_break() {
    let is_it = |name: &str| name.contains("and a path breaks") && !name.contains("for a while");
    hold(MembershipCase::with_succession(), is_it);
}

#[test]
fn another_pe_takes_the_roots_place_though_one_is_slandered() {
    hold(MembershipCase::with_succession(), |name| name.contains("and one is slandered"));
}

#[test]
fn each_rule_of_the_succession_is_needed() {
    let parted = MembershipCase { partitions: 1, ..MembershipCase::processes(3, 0) };
    let halves = MembershipCase { partitions: 1, ..MembershipCase::processes(2, 0) };
    let cut = MembershipCase { cuts: 1, ..MembershipCase::processes(3, 1) };
    let slandered = MembershipCase { slandered: 1, ..MembershipCase::hosts(3, 1) };
    let both = MembershipCase { slandered: 1, patient: true, ..cut.clone() };
    let ended = MembershipCase { partitions: 1, ends: 2, ..MembershipCase::processes(3, 0) };
    let rejected = MembershipCase { cut: Cut::Answers, ..parted.clone() };
    let both_end = MembershipCase { cut: Cut::Answers, ..ended.clone() };
    for (mutant, case, broken) in [
        (MembershipMutant::LeavesAtTheEnd, &ended, ONE_RESULT_COUNTS),
        (MembershipMutant::BelievesRefusals, &rejected, ALL_AGREE_IN_THE_END),
        (MembershipMutant::BelievesRefusals, &both_end, ONE_RESULT_COUNTS),
        (MembershipMutant::NeedsNoVotes, &parted, ALL_AGREE_IN_THE_END),
        (MembershipMutant::IgnoresSilence, &parted, ALL_AGREE_IN_THE_END),
        (MembershipMutant::ReturnsToFormerJudge, &cut, LISTS_BEGIN_ALIKE),
        (MembershipMutant::VotesAtOnce, &slandered, FEW_INNOCENTS),
        (MembershipMutant::ForgetsWitnessed, &both, ALL_AGREE_IN_THE_END),
        (MembershipMutant::GivesUp, &parted, ONE_SIDE_GOES_ON),
        (MembershipMutant::WaitsAtHalf, &halves, ALL_AGREE_IN_THE_END),
        (MembershipMutant::ConfirmsAlone, &parted, ALL_AGREE_IN_THE_END),
    ] {
        let search = first_fault(MembershipCase { mutant: Some(mutant), ..case.clone() });
        println!("{mutant:?}: {search}");
        assert!(search.breaks(broken), "{mutant:?}: {search}");
    }
}

/// If a bulletin is lost, the tree alone leaves out a PE.
#[test]
fn the_heartbeats_in_the_ring_are_needed() {
    let search = first_fault(MembershipCase { deaf: true, lost: 1, ..MembershipCase::new(4, 1) });
    println!("without heartbeats: {search}");
    assert!(search.breaks(ALL_AGREE_IN_THE_END), "{search}");
}

#[test]
fn each_rule_is_needed() {
    let doubted = MembershipCase { doubts: 1, ..MembershipCase::new(3, 0) };
    for (mutant, case, broken) in [
        (MembershipMutant::BelievesAccusers, doubted.clone(), FEW_INNOCENTS),
        (MembershipMutant::BelievesHeralds, doubted.clone(), NONE_IS_MISLED),
        (
            MembershipMutant::TrustsOldSights,
            MembershipCase { crashes: 1, hosts_crash: true, ..doubted },
            FEW_INNOCENTS,
        ),
        (
            MembershipMutant::ExpelsBoth,
            MembershipCase { cuts: 1, ..MembershipCase::new(3, 0) },
            FEW_INNOCENTS,
        ),
        (MembershipMutant::OverlooksGaps, MembershipCase::new(4, 2), LISTS_BEGIN_ALIKE),
        (MembershipMutant::NeverAnnouncesLater, MembershipCase::new(4, 2), ALL_AGREE_IN_THE_END),
    ] {
        let search = first_fault(MembershipCase { mutant: Some(mutant), ..case });
        println!("{mutant:?}: {search}");
        assert!(search.breaks(broken), "{mutant:?}: {search}");
    }
}
