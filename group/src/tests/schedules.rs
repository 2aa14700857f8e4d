//! Random schedules.

use super::*;
use proptest::prelude::*;

fn choices() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..1000_usize, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// In any order, whatever others die: the group is complete as long as the PE lives that has
    /// opened it, and in the end no PE keeps anything of it.
    #[test]
    fn a_group_is_complete_and_then_closed_whatever_dies(
        pes in 1..9_u32,
        is_owned: bool,
        tells_all: bool,
        choices in choices(),
        deaths in prop::collection::vec((1..9_u32, 0..60_usize, 0..5_usize), 0..5),
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, is_owned, 1, inviting(pes, tells_all));
        world.run(&choices, &deaths);
        prop_assert_eq!(ended(&world, Pe::ROOT), Some(Ok(())));
        prop_assert_eq!(kept(&world), []);
    }

    /// What is opened after the end of a group of the same name has nothing of that one.
    #[test]
    fn a_name_may_be_used_again(
        pes in 1..9_u32,
        tells_all: bool,
        choices in choices(),
        deaths in prop::collection::vec((1..9_u32, 0..60_usize, 0..5_usize), 0..5),
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(pes, tells_all));
        let mut opened = 1;
        world.run_with(&choices, &deaths, |world| {
            if opened < 3 && ended(world, Pe::ROOT).is_some() {
                let next = Invitation { number: opened, ..inviting(pes, tells_all) };
                open(world, Pe::ROOT, false, 1, next);
                opened += 1;
            }
        });
        prop_assert_eq!((opened, ended(&world, Pe::ROOT)), (3, Some(Ok(()))));
        prop_assert_eq!(kept(&world), []);
    }

    /// The next root opens it again, and the end of the former group does not disturb it.
    #[test]
    fn the_next_root_joins_it(
        pes in 2..7_u32,
        tells_all: bool,
        choices in choices(),
        death in (0..40_usize, 0..5_usize),
        other in (1..7_u32, 0..60_usize, 0..5_usize),
        when in 0..60_usize,
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(pes, tells_all));
        world.run(&choices, &[(0, death.0, death.1)]);
        let root = world.root();
        prop_assert!(root != Pe::ROOT);
        open(&mut world, root, false, 2, inviting(pes, tells_all));
        let other = (other.0, when + other.1, other.2);
        world.run(&choices, &[other].map(|(pe, at, keeps)| {
            (if pe == root.number() { pes } else { pe }, at, keeps)
        }));
        prop_assert_eq!(ended(&world, root), Some(Ok(())));
        prop_assert_eq!(kept(&world), []);
    }

    /// Where the root has died, and no other has opened the group again: if any PE has been
    /// invited, its part tells all others something, and they ask it.
    #[test]
    fn what_goes_on_without_a_root_reaches_all(
        pes in 2..7_u32,
        choices in choices(),
        death in (0..20_usize, 0..5_usize),
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::ROOT, false, 1, inviting(pes, true));
        world.run(&choices, &[(0, death.0, death.1)]);
        let known = world.living().filter_map(|pe| Some(world.actor(pe)?.groups.known()));
        let begun: Vec<bool> = known.flatten().map(Life::<Roll>::has_begun).collect();
        let has_any_begun = begun.contains(&true);
        prop_assert!(begun.iter().all(|has_begun| *has_begun == has_any_begun), "{:?}", begun);
    }

    /// What is owned ends with its owner.
    #[test]
    fn an_owned_group_is_closed_when_its_owner_dies(
        pes in 2..7_u32,
        tells_all: bool,
        choices in choices(),
        at in 0..40_usize,
        keeps in 0..5_usize,
    ) {
        let mut world = world(pes);
        open(&mut world, Pe::new(1), true, 1, inviting(pes, tells_all));
        world.run(&choices, &[(1, at, keeps)]);
        prop_assert_eq!(kept(&world), []);
    }

    /// A PE that cannot make its part: the group fails, unless that PE dies.
    #[test]
    fn a_part_that_cannot_be_made_fails_the_group(
        pes in 2..7_u32,
        unable in 1..7_u32,
        tells_all: bool,
        choices in choices(),
        deaths in prop::collection::vec((1..7_u32, 0..60_usize, 0..5_usize), 0..2),
    ) {
        let mut world = world(pes);
        let invitation = Invitation { unable: Some(Pe::new(unable)), ..inviting(pes, tells_all) };
        open(&mut world, Pe::ROOT, false, 1, invitation);
        world.run(&choices, &deaths);
        let is_dead = unable >= pes || world.actor(Pe::new(unable)).is_none();
        match ended(&world, Pe::ROOT) {
            Some(Err(failed)) => prop_assert_eq!(failed, Pe::new(unable)),
            ended => prop_assert!(is_dead && ended == Some(Ok(())), "{:?}", ended),
        }
        prop_assert_eq!(kept(&world), []);
    }
}

/// A stopped PE hears of the group when all is over.
#[test]
fn what_comes_after_the_end_is_dropped() {
    let mut world = world(3);
    open(&mut world, Pe::ROOT, false, 1, inviting(3, false));
    world.stop(Pe::new(1));
    world.run(&[0], &[]);
    assert_eq!(ended(&world, Pe::ROOT), None, "it waits for PE 1");
    world.act(Pe::ROOT, |program, out| {
        program.leave();
        program.post(out);
    });
    world.run(&[0], &[]);
    world.resume(Pe::new(1));
    world.run(&[0], &[]);
    assert_eq!(kept(&world), []);
}
