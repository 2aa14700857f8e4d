//! Cuts that answer: a firewall rejects what two sides send each other.

use super::world::World;
use super::{DetectorSettings, FailureEvent, MS, MembershipStatus, SECOND, dead};
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

const SETTINGS: DetectorSettings = DetectorSettings {
    heartbeat: MS.saturating_mul(450),
    dead_after: SECOND.saturating_mul(2),
    stalled_after: SECOND.saturating_mul(30),
    root_after: SECOND.saturating_mul(30),
    succession: true,
};

/// The PEs that are judges in office, as members.
fn judges(world: &World) -> BTreeSet<Pe> {
    let is_judge = |pe: &Pe| {
        let member = world.membership(*pe);
        member.status() == MembershipStatus::Member
            && member.is_judge()
            && member.heading().in_office
    };
    world.running().filter(is_judge).collect()
}

fn both_ways(world: &mut World, side: u32, pes: u32) {
    world.reject(0..side, &(side..pes));
    world.reject(side..pes, &(0..side));
}

#[test]
fn of_two_sides_of_a_cut_that_answers_one_goes_on_and_has_a_result() {
    for (side, winner) in [(4, 0), (3, 3), (2, 2), (6, 0)] {
        let mut world = World::with(8, 1, SETTINGS);
        world.run_until(SECOND * 10);
        both_ways(&mut world, side, 8);
        world.run_until(SECOND * 10 + MS * 200);
        assert_eq!(world.events, [], "a refused call is no death");
        world.run_until(SECOND * 30);
        assert_eq!(judges(&world), BTreeSet::from([Pe::new(winner)]), "{side} of 8");
        world.running().collect::<Vec<_>>().into_iter().for_each(|pe| world.ask_end(pe));
        world.run_until(SECOND * 40);
        let agreed = world.events.iter().filter(|(.., event)| *event == FailureEvent::EndAgreed);
        assert_eq!(agreed.map(|(pe, ..)| *pe).collect::<Vec<_>>(), [Pe::new(winner)]);
    }
}

#[test]
fn a_cut_that_answers_and_heals_in_time_costs_nothing() {
    let mut world = World::with(4, 2, SETTINGS);
    world.run_until(SECOND * 10);
    both_ways(&mut world, 4, 8);
    world.run_until(SECOND * 11);
    world.heal();
    world.run_until(SECOND * 60);
    assert_eq!(world.events, []);
}

/// Before, a refused call of one PE had all of them take the root for dead.
#[test]
fn a_root_that_one_cannot_call_stays_the_root() {
    for is_one_sided in [true, false] {
        let mut world = World::with(5, 1, SETTINGS);
        world.run_until(SECOND * 10);
        world.reject(4..5, &(0..1));
        if !is_one_sided {
            world.reject(0..1, &(4..5));
        }
        world.run_until(SECOND * 60);
        assert_eq!(judges(&world), BTreeSet::from([Pe::ROOT]));
        let lost: Vec<_> = world.events.iter().filter(|(pe, ..)| pe.number() != 4).collect();
        assert!(lost.iter().all(|(.., event)| *event == dead(&[4])), "{lost:?}");
    }
}

#[test]
fn without_a_guard_only_those_of_its_host_witness_a_death() {
    for (pes_each, is_guarded, is_at_once) in [(1, true, true), (2, false, true), (1, false, false)]
    {
        let mut world = World::with(8 / pes_each, pes_each, SETTINGS);
        world.is_guarded = is_guarded;
        world.run_until(SECOND * 10);
        world.kill(Pe::new(5));
        world.run_until(SECOND * 10 + MS * 30);
        assert_eq!(world.dead(Pe::ROOT) == [Pe::new(5)], is_at_once, "{pes_each} on each host");
        world.run_until(SECOND * 13);
        for pe in world.running() {
            assert_eq!(world.events_of(pe), [dead(&[5])], "at {pe}");
        }
    }
}

#[test]
fn the_root_is_succeeded_as_fast_if_a_guard_or_a_sibling_witnesses_its_death() {
    for (pes_each, is_guarded, is_at_once) in [(1, true, true), (2, false, true), (1, false, false)]
    {
        let mut world = World::with(8 / pes_each, pes_each, SETTINGS);
        world.is_guarded = is_guarded;
        world.run_until(SECOND * 10);
        world.kill(Pe::ROOT);
        world.run_until(SECOND * 10 + MS * 300);
        let is_succeeded = judges(&world) == BTreeSet::from([Pe::new(1)]);
        assert_eq!(is_succeeded, is_at_once, "{pes_each} on each host");
        world.run_until(SECOND * 16);
        assert_eq!(judges(&world), BTreeSet::from([Pe::new(1)]));
        assert_eq!(world.running().count(), 7);
    }
}
