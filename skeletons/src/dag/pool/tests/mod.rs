mod forwards;
mod group;
mod memory;
mod pushing;
mod short;
mod world;

use self::pushing::pushed_and_begun;
use self::world::{
    Drawn, FAILED, Site, act, drawn, idle, node, pool_of, pools, run_for_last, run_of, want,
    weighed,
};
use super::state::PUSHES_MAX;
use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn each_needed_node_is_computed_once_and_sent_once_to_each_pe(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let (expected, last) = (graph.expected(1)[0], graph.last(0));
        let needed = (0..).map(node).zip(graph.needed());
        let once = needed.filter_map(|(node, is_needed)| is_needed.then_some((node, 1))).collect();
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        world.run(&choices, &[]);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        prop_assert_eq!(&notes.borrow().begun, &once);
        prop_assert!(notes.borrow().sent.values().all(|sent| *sent == 1));
    }

    /// Of the PEs that know who reads what, none asks; the program asks for what it wants.
    #[test]
    fn of_a_whole_graph_only_the_program_asks(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let (expected, last) = (graph.expected(1)[0], graph.last(0));
        let is_far = u64::from(graph.owners.last() != Some(&0));
        let graph = Drawn { may_move: false, forwards: true, ..graph };
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        world.run(&choices, &[]);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        prop_assert!(notes.borrow().asked <= is_far, "{}", notes.borrow().asked);
        prop_assert!(notes.borrow().sent.values().all(|sent| *sent == 1));
    }

    #[test]
    fn as_long_as_one_pe_lives_the_result_comes(
        graph in (1..40_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..60_usize, 0..5_usize), 0..5),
    ) {
        let (expected, last) = (graph.expected(1)[0], graph.last(0));
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        world.run(&choices, &deaths);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
    }

    #[test]
    fn with_little_memory_the_result_comes_and_no_pool_holds_more_than_it_must(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        limit in 0..8_u64,
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..60_usize, 0..5_usize), 0..3),
    ) {
        let (expected, last) = (graph.expected(1)[0], graph.last(0));
        let (mut world, notes) = run_for_last(graph, tokens, limit);
        world.run(&choices, &deaths);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        for pool in pools(&world) {
            let all = (0..=last.index).filter(|index| pool.result(node(*index as usize)).is_some());
            let results = all.count() as u64;
            prop_assert_eq!(pool.memory.held(), results);
            // In the end no node waits, so that only wanted results are held beside.
            prop_assert!(results <= limit + 1, "{} of {}", results, limit);
        }
    }

    /// Theorems 1 and 3: in the end all tokens are there; and if no node is begun or computed any
    /// more, loads are balanced after a bounded number of pushes.
    #[test]
    fn tokens_come_back_and_pushes_come_to_rest(
        graph in (1..60_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        steps in 0..40_usize,
    ) {
        let (last, pes, nodes) = (graph.last(0), graph.pes, graph.inputs.len() as u64);
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        (0..steps).for_each(|step| _ = world.step(choices[step % choices.len()]));
        let pushed = notes.borrow().pushed;
        notes.borrow_mut().is_frozen = true;
        world.run(&choices, &[]);
        let pushed = notes.borrow().pushed - pushed;
        prop_assert!(pushed <= u64::from(PUSHES_MAX) * nodes, "{} pushes", pushed);
        notes.borrow_mut().is_frozen = false;
        (0..pes).for_each(|pe| _ = world.act(Pe::new(pe), Site::thaw));
        world.run(&choices, &[]);
        prop_assert!(notes.borrow().delivered.contains_key(&last));
        for pool in pools(&world) {
            prop_assert_eq!(pool.tokens, tokens);
        }
    }

    /// Nothing is computed twice that its computer has not taken with it.
    #[test]
    fn the_others_go_on_without_the_pe_that_wants_the_results_and_another_joins(
        graph in (1..40_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        choices in prop::collection::vec(any::<usize>(), 1..50),
        (when, keeps) in (0..60_usize, 0..5_usize),
        is_renewed in any::<bool>(),
    ) {
        let (expected, last, pes) = (graph.expected(1)[0], graph.last(0), graph.pes);
        let (mut world, notes) = run_for_last(graph, 1, u64::MAX);
        world.run(&choices, &[(0, when, keeps)]);
        let before = notes.borrow().begun.clone();
        notes.borrow_mut().delivered.clear();
        for pe in (1..pes).map(Pe::new).filter(|_| is_renewed) {
            act(&mut world, pe, Pool::renew);
        }
        want(&mut world, Pe::new(1), last);
        world.run(&choices, &[]);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        prop_assert_eq!(&notes.borrow().begun, &before, "the others had computed all of it");
    }

    /// What was computed rightly is not computed again.
    #[test]
    fn what_has_failed_is_tried_again_in_the_next_opening(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        failing in prop::collection::btree_set(0..40_usize, 1..4),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        (before, steps) in (0..60_usize, 0..60_usize),
    ) {
        let (expected, last, pes) = (graph.expected(1)[0], graph.last(0), graph.pes);
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        notes.borrow_mut().failing = failing.into_iter().map(node).collect();
        (0..before).for_each(|step| _ = world.step(choices[step % choices.len()]));
        let is_well = |node: &NodeId| {
            pools(&world).any(|pool| pool.result(*node).is_some_and(|one| one != FAILED))
        };
        let well: Vec<NodeId> = (0..=last.index as usize).map(node).filter(is_well).collect();
        notes.borrow_mut().failing.clear();
        let has_failed = notes.borrow_mut().delivered.remove(&last) == Some(FAILED);
        for pe in (0..pes).map(Pe::new) {
            world.act(pe, |site, out| site.renew(2, out));
            // Those that have not heard of it yet get requests, and send what has failed.
            (0..steps % 5).for_each(|step| _ = world.step(7 * step + steps));
            if pe == Pe::ROOT && has_failed {
                want(&mut world, Pe::ROOT, last);
            }
        }
        world.run(&choices, &[]);
        let notes = notes.borrow();
        prop_assert!(well.contains(&last) || notes.delivered.get(&last) == Some(&expected));
        prop_assert!(well.iter().all(|node| notes.begun[node] == 1), "{:?}", notes.begun);
    }

    /// No more than what is wanted is left, and nothing is computed twice for it.
    #[test]
    fn results_that_all_readers_have_are_dropped(
        graph in (1..40_usize, 1..5_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        may_move in any::<bool>(),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let (expected, last) = (graph.expected(1)[0], graph.last(0));
        let needed = graph.needed().into_iter().filter(|is_needed| *is_needed).count();
        let graph = Drawn { may_move, drops_used: true, ..graph };
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        world.run(&choices, &[]);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        prop_assert_eq!(notes.borrow().begun.len(), needed);
        prop_assert!(notes.borrow().begun.values().all(|begun| *begun == 1));
        for pool in pools(&world) {
            prop_assert_eq!(pool.memory.held(), u64::from(pool.result(last).is_some()));
        }
    }

    #[test]
    fn dropped_results_are_computed_again_where_deaths_make_them_needed(
        graph in (1..40_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        may_move in any::<bool>(),
        tokens in 1..3_usize,
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..60_usize, 0..5_usize), 0..5),
    ) {
        let (expected, last, pes) = (graph.expected(1)[0], graph.last(0), graph.pes);
        let graph = Drawn { may_move, drops_used: true, ..graph };
        let (mut world, notes) = run_for_last(graph, tokens, u64::MAX);
        world.run(&choices, &deaths);
        prop_assert_eq!(notes.borrow().delivered.get(&last).copied(), Some(expected));
        // What was dropped in vain is not dropped again.
        let begun = &notes.borrow().begun;
        prop_assert!(begun.values().all(|begun| *begun <= 2 * pes), "{:?}", begun);
    }

    /// The root consumes the blocks one after the other, some ahead of what is over.
    #[test]
    fn a_stream_goes_on_after_deaths_and_forgets_what_is_over(
        graph in (1..8_usize, 2..6_u32).prop_flat_map(|(nodes, pes)| drawn(nodes, pes)),
        (blocks, window) in (1..12_u32, 1..5_u32),
        tokens in 1..3_usize,
        limit in prop_oneof![Just(u64::MAX), 0..8_u64],
        choices in prop::collection::vec(any::<usize>(), 1..50),
        deaths in prop::collection::vec((1..6_u32, 0..200_usize, 0..5_usize), 0..5),
    ) {
        let (expected, graph) = (graph.expected(blocks), Drawn { wanted: Vec::new(), ..graph });
        let (mut world, notes) = run_of(graph.clone(), tokens, limit);
        for block in 0..window.min(blocks) {
            want(&mut world, Pe::ROOT, graph.last(block));
        }
        let mut first = 0;
        world.run_with(&choices, &deaths, |world| {
            while notes.borrow().delivered.contains_key(&graph.last(first)) {
                if first + window < blocks {
                    want(world, Pe::ROOT, graph.last(first + window));
                }
                first += 1;
                world.act(Pe::ROOT, |site, out| site.advance(first, out));
            }
        });
        let delivered: Vec<u64> = notes.borrow().delivered.values().copied().collect();
        prop_assert_eq!(delivered, expected);
        for pool in pools(&world) {
            prop_assert_eq!(pool.blocks.range(..blocks - 1).count(), 0);
        }
    }
}

/// Each node but the first two reads the two before: as many paths as Fibonacci numbers.
#[test]
fn an_heir_does_not_compute_again_what_it_has_dropped_for_each_reader() {
    let inputs = (0..40_u32).map(|index| (index.saturating_sub(2)..index).collect()).collect();
    let (wanted, owners) = (vec![node(39)], vec![1; 40]);
    let graph = Drawn {
        inputs,
        owners,
        pes: 2,
        wanted,
        may_move: false,
        drops_used: true,
        forwards: false,
    };
    let (mut world, notes) = run_of(graph, 1, u64::MAX);
    world.run(&[0], &[(1, 30, 4)]);
    want(&mut world, Pe::ROOT, node(39));
    world.run(&[0], &[]);
    let notes = notes.borrow();
    assert!(notes.delivered.contains_key(&node(39)));
    assert!(notes.begun.values().all(|begun| *begun <= 3), "{:?}", notes.begun);
}

/// Theorem 3 rests on it.
#[test]
fn a_node_that_was_pushed_as_often_as_it_may_stays() {
    for (pushes_left, expected) in [(0, None), (1, Some(0)), (PUSHES_MAX, Some(PUSHES_MAX - 1))] {
        let mut pool = pool_of(vec![Vec::new(); 32], vec![1; 32], u64::MAX);
        // A node took long, so that others are worth a push.
        pool.computed(node(1), weighed(1));
        for index in 2..32 {
            pool.receive(Pe::new(1), PoolMessage::Push(node(index), pushes_left));
        }
        let left = |effect| match effect {
            PoolEffect::Send(_, PoolMessage::Push(_, left)) => Some(left),
            _ => None,
        };
        let pushed: BTreeSet<u8> = pool.take_effects().into_iter().filter_map(left).collect();
        assert_eq!(pushed, expected.into_iter().collect());
    }
}

/// The owners of results count their readers, and do not know of those that are computed elsewhere.
#[test]
fn nothing_is_pushed_where_readers_are_counted() {
    for drops_used in [false, true] {
        let (inputs, owners, wanted) = (vec![Vec::new(); 32], vec![0; 32], Vec::new());
        let graph =
            Drawn { inputs, owners, pes: 2, wanted, may_move: true, drops_used, forwards: false };
        let mut pool = idle(graph, u64::MAX);
        pool.start();
        pool.computed(node(1), weighed(1));
        (2..32).for_each(|n| pool.receive(Pe::new(1), PoolMessage::Request(node(n))));
        let is_push =
            |effect: &PoolEffect<u64>| matches!(effect, PoolEffect::Send(_, PoolMessage::Push(..)));
        assert_eq!(pool.take_effects().iter().any(is_push), !drops_used);
    }
}

/// Who pushes counts what it has pushed, and must hear that it is done.
#[test]
fn a_pool_that_has_computed_what_was_pushed_says_so() {
    let mut pool = pool_of(vec![Vec::new(); 4], vec![1; 4], u64::MAX);
    let pusher = Pe::new(1);
    (1..3).for_each(|index| pool.receive(pusher, PoolMessage::Push(node(index), 0)));
    (1..3).for_each(|index| pool.computed(node(index), weighed(1)));
    let load = PoolEffect::Send(pusher, PoolMessage::Load(0));
    assert!(pool.take_effects().contains(&load));
}

#[test]
fn a_node_that_waits_again_has_all_inputs_when_it_is_computed() {
    let mut pool = pool_of(vec![vec![], vec![], vec![0, 1]], vec![1, 1, 0], 0);
    let mut computes = |message: PoolMessage<u64>| {
        pool.receive(Pe::new(1), message.map(weighed));
        pool.take_effects().contains(&PoolEffect::Compute(node(2)))
    };
    assert!(!computes(PoolMessage::Request(node(2))));
    // It comes from elsewhere, and there is no memory for it.
    assert!(!computes(PoolMessage::Result(node(2), 7)));
    assert!(!computes(PoolMessage::Request(node(2))));
    assert!(!computes(PoolMessage::Result(node(0), 1)));
    assert!(computes(PoolMessage::Result(node(1), 2)));
}

#[test]
fn where_memory_is_short_a_result_goes_first_that_all_readers_have() {
    let (inputs, owners) = (vec![vec![], vec![], vec![1], vec![0, 2]], vec![0, 0, 0, 1]);
    let (wanted, may_move, drops_used) = (vec![node(3)], true, false);
    let graph = Drawn { inputs, owners, pes: 2, wanted, may_move, drops_used, forwards: false };
    let mut pool = idle(graph, 2);
    pool.start();
    pool.computed(node(1), weighed(1));
    pool.computed(node(0), weighed(1));
    pool.receive(Pe::new(1), PoolMessage::Request(node(2)));
    pool.computed(node(2), weighed(1));
    assert_eq!([0, 1].map(|index| pool.result(node(index)).is_some()), [true, false]);
}

#[test]
fn a_block_that_is_not_there_is_asked_for_again_in_the_next_opening() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![1; 2], u64::MAX);
    // PE 0 owns it: the owners of the next block are the next PEs.
    let far = NodeId { block: 1, index: 0 };
    pool.receive(Pe::new(1), PoolMessage::Request(far));
    for _ in 0..2 {
        assert!(pool.take_effects().contains(&PoolEffect::Build(1)));
        pool.renew();
    }
}

#[test]
fn the_keeper_asks_no_other_for_a_node_of_a_block_that_is_over() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![1; 2], u64::MAX);
    pool.advance(Pe::ROOT, 3);
    // PE 1 owns it.
    let over = NodeId { block: 2, index: 0 };
    pool.receive(Pe::new(1), PoolMessage::Request(over));
    assert_eq!(pool.take_effects(), []);
}

#[test]
fn what_is_forgotten_is_not_noted_as_unused() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![0; 2], 100);
    (0..2).for_each(|index| pool.computed(node(index), weighed(1)));
    assert_eq!((pool.memory.held(), pool.memory.noted()), (2, 2));
    pool.advance(Pe::ROOT, 5);
    assert_eq!((pool.memory.held(), pool.memory.noted()), (0, 0));
}

#[test]
fn what_the_program_uses_stays_where_memory_is_short() {
    let mut pool = pool_of(vec![Vec::new(); 4], vec![0; 4], 1);
    pool.supply(node(0), weighed(1));
    pool.want(node(1));
    pool.computed(node(1), weighed(1));
    pool.computed(node(2), weighed(1));
    pool.computed(node(3), weighed(1));
    let there = [0, 1, 2, 3].map(|index| pool.result(node(index)).is_some());
    assert_eq!(there, [true, true, false, false]);
    assert_eq!((pool.memory.held(), pool.take_discarded().results.len()), (2, 2));
}

/// It is over, and its result is the user's to drop.
#[test]
fn what_is_computed_of_a_block_that_is_forgotten_is_discarded() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![0; 2], u64::MAX);
    pool.want(node(0));
    pool.advance(Pe::ROOT, 5);
    let before = pool.take_discarded().results.len();
    pool.computed(node(0), weighed(7));
    assert_eq!((before, pool.take_discarded().results), (0, vec![7]));
    assert!(pool.result(node(0)).is_none() && pool.blocks.is_empty());
    pool.receive(Pe::new(1), PoolMessage::Result(node(1), weighed(8)));
    assert_eq!(pool.take_discarded().results, [8]);
}

/// Of two results of the same size the one goes that is computed sooner; a copy costs its way only.
#[test]
fn where_memory_is_short_what_is_cheap_to_get_again_goes_first() {
    let cost = |cost_ns: f32| Weighed { result: 1, bytes: 1.0, cost_ns };
    for (first, second, expected) in [(1.0, 9e9, [false, true]), (9e9, 1.0, [true, false])] {
        let mut pool = pool_of(vec![Vec::new(); 3], vec![0; 3], 2);
        pool.computed(node(0), cost(first));
        pool.computed(node(1), cost(second));
        pool.want(node(2));
        pool.computed(node(2), cost(1.0));
        assert_eq!([0, 1].map(|index| pool.result(node(index)).is_some()), expected);
    }
    for (own, is_own_kept) in [(5e3, false), (5e4, true)] {
        let mut pool = pool_of(vec![Vec::new(); 3], vec![0, 1, 0], 2);
        pool.computed(node(0), cost(own));
        pool.receive(Pe::new(1), PoolMessage::Result(node(1), cost(0.0)));
        pool.want(node(2));
        pool.computed(node(2), cost(1.0));
        let there = [0, 1].map(|index| pool.result(node(index)).is_some());
        assert_eq!(there, [is_own_kept, !is_own_kept], "a copy is worth some 10 us");
    }
}

#[test]
fn a_node_that_was_skipped_uses_its_inputs_no_more_than_before() {
    let mut pool = pool_of(vec![vec![], vec![0]], vec![0; 2], 1);
    pool.want(node(1));
    pool.computed(node(0), weighed(1));
    let uses = |pool: &Pool<Drawn>| pool.known(node(0)).map(|state| state.uses);
    assert_eq!((pushed_and_begun(&mut pool).1, uses(&pool)), (vec![0, 1], Some(1)));
    pool.skipped(node(1));
    assert_eq!((pushed_and_begun(&mut pool).1, uses(&pool)), (vec![1], Some(1)));
    pool.computed(node(1), weighed(1));
    assert!(pool.result(node(0)).is_none(), "nothing needs it");
}

#[test]
fn what_is_wanted_is_held_until_the_run_is_over() {
    let (inputs, owners, wanted) = (vec![Vec::new(); 3], vec![0; 3], vec![node(0)]);
    let graph = Drawn {
        inputs,
        owners,
        pes: 1,
        wanted,
        may_move: true,
        drops_used: false,
        forwards: false,
    };
    let mut pool = idle(graph, 1);
    pool.start();
    (0..3).for_each(|index| pool.computed(node(index), weighed(1)));
    let there = [0, 1, 2].map(|index| pool.result(node(index)).is_some());
    assert_eq!(there, [true, false, false]);
}
