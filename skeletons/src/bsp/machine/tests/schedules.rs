//! Random schedules.

use super::program::outputs;
use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// In any order, whatever dies, as long as one PE lives.
    #[test]
    fn the_outputs_are_those_of_one_loop(
        pes in 1..8_u32,
        ranks in 1..10_u32,
        saving in prop_oneof![Just(Saving::Never), (1..4_u64).prop_map(Saving::Every)],
        choices in prop::collection::vec(0..1000_usize, 1..60),
        deaths in prop::collection::vec((0..8_u32, 0..150_usize, 0..5_usize), 0..5),
    ) {
        let topology = Arc::new(Topology::flat(pes));
        let mut world = world(&topology, ranks, saving);
        (0..pes).for_each(|pe| begin(&mut world, Pe::new(pe)));
        let deaths: Vec<_> = deaths.into_iter().filter(|(pe, ..)| *pe + 1 < pes).collect();
        world.run(&choices, &deaths);
        let root = world.actor(world.root()).unwrap();
        let expected = outputs(ranks);
        prop_assert!(root.failed.is_empty(), "{:?}", root.failed);
        prop_assert!(root.ended.iter().all(|ended| *ended == expected));
        prop_assert!(!root.ended.is_empty(), "superstep {}", root.machine.superstep());
    }
}
