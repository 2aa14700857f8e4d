//! Jobs that go on without their root.

use super::*;

/// Hosts of two PEs each.
fn world(hosts: u32) -> World {
    let settings = DetectorSettings { succession: true, ..DetectorSettings::default() };
    World::with(hosts, 2, settings)
}

/// Holds that all that run follow this judge, and know the same dead.
fn check(world: &World, judge: u32, dead: &[u32]) {
    let dead: BTreeSet<Pe> = dead.iter().copied().map(Pe::new).collect();
    for pe in world.running() {
        let membership = world.membership(pe);
        let heading = membership.heading();
        assert_eq!((heading.term.judge, heading.in_office), (Pe::new(judge), true), "{pe}");
        assert_eq!(membership.dead().iter().copied().collect::<BTreeSet<_>>(), dead, "{pe}");
        let last = world.events_of(pe).into_iter().rev().find_map(|event| match event {
            FailureEvent::Succession { judge } => Some(judge),
            _ => None,
        });
        assert_eq!(last.unwrap_or(Pe::ROOT), Pe::new(judge), "{pe} was told");
    }
}

#[test]
fn the_next_takes_the_place_of_a_killed_root_at_once() {
    let mut world = world(4);
    world.run_until(SECOND);
    for root in 0..7 {
        world.kill(Pe::new(root));
        let dead: Vec<u32> = (0..=root).collect();
        world.run_until(SECOND * (root + 1) + MS * 30);
        check(&world, root + 1, &dead);
        world.run_until(SECOND * (root + 2));
    }
    assert_eq!(world.running().collect::<Vec<_>>(), [Pe::new(7)]);
}

#[test]
fn when_the_roots_host_falls_silent_the_others_vote() {
    let mut world = world(4);
    world.run_until(SECOND);
    world.isolate(Pe::ROOT);
    world.isolate(ONE);
    world.run_until(SECOND * 10);
    let running: Vec<Pe> = world.running().collect();
    assert_eq!(running, (2..8).map(Pe::new).collect::<Vec<_>>(), "the smaller side leaves");
    check(&world, 2, &[0, 1]);
}

#[test]
fn of_two_halves_the_one_with_the_root_goes_on() {
    let mut world = world(4);
    world.run_until(SECOND);
    (0..4).map(Pe::new).for_each(|pe| world.isolate(pe));
    world.run_until(SECOND * 15);
    assert_eq!(world.running().collect::<Vec<_>>(), (0..4).map(Pe::new).collect::<Vec<_>>());
    check(&world, 0, &[4, 5, 6, 7]);
}

/// The list of the next, in which they had it, was never in office.
#[test]
fn what_others_have_seen_is_told_to_the_candidate_after_the_next() {
    let mut world = world(3);
    world.run_until(SECOND);
    world.stall(Pe::new(2));
    world.kill(Pe::new(5));
    world.run_until(SECOND + MS * 3);
    world.kill(Pe::ROOT);
    world.run_until(SECOND + MS * 300);
    world.kill(ONE);
    world.run_until(SECOND * 5);
    world.resume_all();
    world.run_until(SECOND * 10);
    check(&world, 2, &[0, 1, 5]);
}

/// It looks at some before itself when it hears that the old root had declared them dead.
#[test]
fn a_candidate_that_hears_of_deaths_late_stands() {
    let mut world = world(4);
    world.run_until(SECOND);
    world.stall(Pe::new(4));
    for (ms, pe) in [(1022, 1), (1024, 3), (1027, 2), (3471, 0)] {
        world.run_until(MS * ms);
        world.kill(Pe::new(pe));
    }
    world.run_until(SECOND * 8);
    world.resume_all();
    world.run_until(SECOND * 10);
    check(&world, 4, &[0, 1, 2, 3]);
}

#[test]
fn a_root_hears_that_the_others_agree_to_the_end_unless_it_is_cut_off() {
    let mut world = world(4);
    world.run_until(SECOND);
    world.ask_end(Pe::ROOT);
    world.run_until(SECOND + MS * 30);
    assert_eq!(world.events_of(Pe::ROOT), [FailureEvent::EndAgreed]);

    let mut world = self::world(4);
    world.run_until(SECOND);
    world.isolate(Pe::ROOT);
    world.isolate(ONE);
    world.ask_end(Pe::ROOT);
    world.run_until(SECOND * 10);
    assert!(!world.events_of(Pe::ROOT).contains(&FailureEvent::EndAgreed));
    check(&world, 2, &[0, 1]);
    world.ask_end(Pe::new(2));
    world.run_until(SECOND * 11);
    assert!(world.events_of(Pe::new(2)).contains(&FailureEvent::EndAgreed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// PEs are killed and stopped for a while, the root too; and perhaps a host falls silent.
    #[test]
    fn all_that_run_agree_on_the_root(
        hosts in 2..6_u32,
        killed in prop::collection::vec((0..12_u32, 1000..4000_u32), 0..6),
        stalled in prop::collection::vec((0..12_u32, 1000..4000_u32), 0..3),
        isolated in prop::option::of(0..12_u32),
    ) {
        let mut world = world(hosts);
        let pe = |number: u32| Pe::new(number % (2 * hosts));
        let kills = killed.iter().map(|(number, ms)| (*ms, 0, pe(*number)));
        let stalls = stalled.iter().map(|(number, ms)| (*ms, 1, pe(*number)));
        let mut faults: Vec<_> = kills.chain(stalls).collect();
        faults.sort_unstable();
        for (ms, kind, pe) in faults {
            world.run_until(MS * ms);
            if world.running().any(|running| running == pe) {
                if kind == 0 { world.kill(pe) } else { world.stall(pe) }
            }
        }
        if let Some(number) = isolated {
            let host = pe(number).number() / 2 * 2;
            [host, host + 1].map(Pe::new).into_iter().for_each(|pe| world.isolate(pe));
        }
        world.run_until(SECOND * 8);
        world.resume_all();
        world.run_until(SECOND * 60);
        let running: Vec<u32> = world.running().map(Pe::number).collect();
        let Some(judge) = running.first() else { return Ok(()) };
        let gone: Vec<u32> = (0..2 * hosts).filter(|number| !running.contains(number)).collect();
        check(&world, *judge, &gone);
    }
}
