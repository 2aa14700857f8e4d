//! Random schedules.

use super::program::{LAST, outputs};
use super::*;
use proptest::prelude::*;

/// What the root's program knows: its outputs, why there are none, the supersteps that were lost,
/// and from where it went on.
type Known = (Option<BTreeMap<u32, u64>>, Option<Trouble>, Vec<u64>, Vec<u64>);

fn known(world: &mut World<Processor>) -> Known {
    let look = |Member { ended, failed, lost, restored, .. }: &Member| {
        (ended.clone(), failed.clone(), lost.clone(), restored.clone())
    };
    world.act(world.root(), |root, _| root.look(look)).flatten().expect("it has its part")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// In any order, whatever dies, as long as one PE lives: also the root, and before others have
    /// been invited.
    #[test]
    fn the_outputs_are_those_of_one_loop(
        pes in 1..8_u32,
        ranks in 1..10_u32,
        when in prop_oneof![Just(When::Never), (1..4_u64).prop_map(When::Every)],
        in_memory: bool,
        on_disk: bool,
        is_balanced: bool,
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..8_u32, 0..200_usize, 0..5_usize), 0..5),
    ) {
        let saving = Saving { when, in_memory, on_disk };
        let mut world = world(&Plan { is_balanced, ..plan(pes, ranks, saving) });
        world.run(&choices, &deaths);
        let (ended, failed, ..) = known(&mut world);
        prop_assert_eq!(failed, None);
        prop_assert_eq!(ended, Some(outputs(ranks)));
    }

    /// A run goes on from a checkpoint that a PE knew to be whole, or from a later one.
    #[test]
    fn a_checkpoint_that_was_whole_is_not_lost(
        pes in 2..8_u32,
        ranks in 8..12_u32,
        choices in prop::collection::vec(0..1000_usize, 1..60),
        (dead, keeps) in (1..8_u32, 0..5_usize),
        at in 2..=LAST,
    ) {
        let (_, whole, last) = restored_after((pes, ranks), &choices, (dead, keeps), at);
        prop_assert!(last >= whole, "{} is whole, and {} restored", whole, last);
    }

    /// A disk may be so slow that PEs go on from a checkpoint in memory while it is still being
    /// stored: what was stored before says nothing of the ranks of the dead. (The directory checks
    /// that what is said to be whole there is.)
    #[test]
    fn what_was_stored_before_a_death_does_not_count(
        pes in 2..5_u32,
        slowness in 0..80_u32,
        failing in 0..6_u64,
        choices in prop::collection::vec(0..1000_usize, 1..60),
        death in (1..5_u32, 0..600_usize, 0..5_usize),
    ) {
        let saving = Saving { when: When::Every(1), in_memory: true, on_disk: true };
        let mut world = world(&Plan { slowness, failing, ..plan(pes, 8, saving) });
        world.run(&choices, &[death]);
        let (ended, failed, ..) = known(&mut world);
        prop_assert_eq!(failed, None);
        prop_assert_eq!(ended, Some(outputs(8)));
    }

    /// The whole job is killed at any moment, and again, and each time gone on with by other PEs.
    #[test]
    fn another_job_goes_on_from_the_disk(
        jobs in prop::collection::vec((1..6_u32, 0..400_usize), 1..4),
        ranks in 1..8_u32,
        in_memory: bool,
        failing in 0..6_u64,
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..6_u32, 0..200_usize, 0..5_usize), 0..3),
    ) {
        let saving = Saving { when: When::Every(1), in_memory, on_disk: true };
        let mut plan = Plan { failing, ..plan(1, ranks, saving) };
        for (number, (pes, steps)) in jobs.iter().enumerate() {
            plan.topology = Arc::new(Topology::flat(*pes));
            let last = plan.disk.whole(0..ranks).last().copied();
            let mut world = world(&plan);
            if number + 1 < jobs.len() {
                (0..*steps).zip(choices.iter().cycle()).all(|(_, choice)| world.step(*choice));
                continue;
            }
            world.run(&choices, &deaths);
            let (ended, failed, _, restored) = known(&mut world);
            prop_assert_eq!(failed, None);
            prop_assert_eq!(ended, Some(outputs(ranks)));
            let superstep = last.map(|key| key.superstep);
            if deaths.is_empty() && *pes <= ranks {
                prop_assert_eq!(restored.first().copied(), superstep.or(Some(0)));
            }
            // The last two, one before them that is about to be removed, and what became whole as a
            // PE died, so that not all knew.
            let whole = plan.disk.whole(0..ranks).len();
            prop_assert!(whole <= 3 + deaths.len(), "{:?}", plan.disk.keys());
        }
    }
}

/// Has a PE die once the root has come to a superstep, while a checkpoint is taken whenever the one
/// before is whole. Returns the superstep to which it had come, that of the last checkpoint that
/// any PE knew to be whole, and that from which the run has gone on.
fn restored_after(
    (pes, ranks): (u32, u32),
    choices: &[usize],
    (dead, keeps): (u32, usize),
    at: u64,
) -> (u64, u64, u64) {
    let mut world = world(&plan(pes, ranks, Saving::in_memory(When::Every(1))));
    let victim = Pe::new(1 + dead % (pes - 1));
    let mut reached = None;
    world.run_with(choices, &[], |world| {
        let superstep = world.act(Pe::ROOT, |root, _| root.look(|part| part.machine.superstep));
        if reached.is_none() && superstep.flatten() >= Some(at) {
            let whole =
                (0..pes).filter_map(|pe| world.act(Pe::new(pe), |pe, _| pe.whole()).flatten());
            reached = superstep.flatten().zip(Some(whole.max().unwrap_or(0)));
            world.kill(victim, |sent| keeps % (sent + 1));
        }
    });
    let (ended, failed, lost, restored) = known(&mut world);
    assert_eq!((failed, ended), (None, Some(outputs(ranks))));
    let (reached, whole) = reached.expect("it comes so far");
    assert!(whole == 0 || lost.is_empty(), "{lost:?}");
    (reached, whole, restored.last().copied().expect("it was made"))
}

/// Ranks move, nothing is computed again for that, and PEs that had none get some.
#[test]
fn ranks_move_to_where_less_is_done() {
    for when in [When::Every(100), When::Every(2), When::Told] {
        let saving = Saving::in_memory(when);
        let mut world = world(&Plan { is_balanced: true, ..plan(4, 9, saving) });
        world.run(&[0], &[]);
        let moves = world.act(Pe::ROOT, |root, _| root.look(|part| part.moves)).flatten();
        assert!(moves > Some(1), "{moves:?}");
        let (ended, _, lost, restored) = known(&mut world);
        assert_eq!((ended, lost), (Some(outputs(9)), vec![]));
        assert!(restored.is_sorted(), "{restored:?}");
    }
    let unsaved = Saving::in_memory(When::Never);
    let mut world = self::world(&Plan { is_balanced: true, ..plan(4, 9, unsaved) });
    world.run(&[0], &[]);
    let moves = world.act(Pe::ROOT, |root, _| root.look(|part| part.moves)).flatten();
    assert_eq!(moves, Some(0), "what moves is saved");
}

/// Those on the disk are taken as before.
#[test]
fn copies_that_are_too_long_end_neither_the_run_nor_other_checkpoints() {
    let saving = Saving { when: When::Every(1), in_memory: true, on_disk: true };
    let plan = Plan { are_too_long: true, ..plan(3, 6, saving) };
    let mut world = world(&plan);
    world.run(&[0], &[]);
    let (ended, failed, ..) = known(&mut world);
    assert_eq!((ended, failed), (Some(outputs(6)), None));
    let last = plan.disk.whole(0..6).last().map(|key| key.superstep);
    assert!(last.is_some_and(|last| last + 4 >= LAST), "{last:?}");
}

/// In one superstep a checkpoint is taken and copied, in the next all say so, and in the third one
/// is due, if no message is late.
#[test]
fn a_death_costs_little_with_checkpoints() {
    for (pes, dead, at) in (2..8)
        .flat_map(|pes| (1..pes).flat_map(move |dead| (2..=LAST).map(move |at| (pes, dead, at))))
    {
        let (reached, _, last) = restored_after((pes, 9), &[0], (dead, 0), at);
        assert!(last + 6 >= reached, "{last} after {reached}");
    }
}

/// What was sent is counted: nobody is asked twice, and no PE speaks to all.
#[test]
fn a_superstep_takes_few_messages() {
    for pes in [1, 2, 5, 64] {
        let mut world = world(&plan(pes, 1, Saving::in_memory(When::Never)));
        world.run(&[0], &[]);
        assert!(known(&mut world).0.is_some());
        let rounds = u64::from(pes).next_power_of_two().ilog2();
        for pe in (0..pes).map(Pe::new) {
            let sent = world.actor(pe).map_or(0, |processor| processor.sent);
            // In each superstep, and the outputs.
            let most = (LAST + 1) * u64::from(rounds) + u64::from(pe != Pe::ROOT);
            assert!(sent <= most, "{pe} of {pes}: {sent}");
        }
    }
}
