//! Supervision, searched exhaustively; and mutants of it, which the search must find.
//!
//! A search prints how many states it has visited.

use ultramarine_proof::search::{all, first_fault};
use ultramarine_proof::supervision::{NO_FUTURE_STAYS_EMPTY, SupervisionCase, Task};
use ultramarine_runtime::protocol::supervision::SupervisionMutant;

#[track_caller]
fn holds(index: usize) {
    let (name, case) = SupervisionCase::quick().swap_remove(index);
    let search = all(case);
    println!("{name}: {search}");
    assert!(search.is_good(), "{name}: {search}");
}

#[test]
fn a_task_survives_the_death_of_all_workers() {
    holds(0);
}

#[test]
fn a_task_survives_those_that_are_taken_for_dead() {
    holds(1);
}

#[test]
fn two_tasks_survive() {
    holds(2);
}

#[test]
fn two_tasks_survive_that_are_lost_in_two_turns() {
    holds(3);
}

#[test]
fn two_tasks_with_large_values_survive() {
    holds(4);
}

#[test]
fn a_large_task_that_was_placed_survives() {
    holds(5);
}

#[test]
fn an_unsupervised_task_ends() {
    holds(6);
}

#[test]
fn a_task_that_was_placed_survives() {
    holds(7);
}

#[test]
fn a_task_of_another_pe_than_the_root_survives() {
    holds(8);
}

#[test]
fn two_tasks_survive_the_death_of_both_workers() {
    holds(9);
}

#[test]
fn every_quick_case_has_a_test() {
    assert_eq!(SupervisionCase::quick().len(), 10);
}

#[track_caller]
fn is_found(mutant: SupervisionMutant, steps: usize) {
    let case =
        SupervisionCase { mutant: Some(mutant), ..SupervisionCase::new(&[Task::Supervised], 1, 2) };
    let search = first_fault(case.clone());
    println!("{mutant:?}: {search}");
    assert!(search.breaks(NO_FUTURE_STAYS_EMPTY), "{mutant:?}: {search}");
    assert_eq!(search.broken[0].trace.len(), steps, "the shortest way to it is known: {search}");
    let healthy = all(SupervisionCase { mutant: None, ..case });
    assert!(healthy.is_good(), "without the mutant: {healthy}");
}

#[test]
fn the_rule_about_those_known_to_be_dead_is_needed() {
    is_found(SupervisionMutant::ForgetsTheDead, 8);
}

#[test]
fn the_rule_about_ages_is_needed() {
    is_found(SupervisionMutant::IgnoresAge, 12);
}
