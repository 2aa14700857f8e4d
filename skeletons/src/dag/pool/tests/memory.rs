//! What is held, and what is dropped, as readers come and go.

use super::*;

/// The pool of PE 0 of a graph whose last node is wanted.
fn pool_with(inputs: Vec<Vec<u32>>, owners: Vec<u32>, drops_used: bool, limit: u64) -> Pool<Drawn> {
    let pes = owners.iter().max().map_or(1, |last| last + 1);
    let wanted = vec![node(inputs.len() - 1)];
    idle(Drawn { inputs, owners, pes, wanted, may_move: false, drops_used, forwards: false }, limit)
}

fn are_there<const N: usize>(pool: &Pool<Drawn>, nodes: [usize; N]) -> [bool; N] {
    nodes.map(|index| pool.result(node(index)).is_some())
}

/// The readers are counted anew, as others may have become owners.
#[test]
fn after_a_death_those_that_have_read_a_result_before_are_not_awaited() {
    let inputs = vec![vec![], vec![0], vec![0], vec![1, 2], vec![3]];
    let mut pool = pool_with(inputs, vec![0, 0, 1, 0, 2], true, u64::MAX);
    pool.computed(node(0), weighed(1));
    pool.computed(node(1), weighed(1));
    pool.died(Pe::new(2));
    assert_eq!(are_there(&pool, [0, 1]), [true, true], "each has a reader more");
    pool.receive(Pe::new(1), PoolMessage::Request(node(0)));
    assert_eq!(are_there(&pool, [0, 1]), [false, true]);
}

/// Its reader has the other.
#[test]
fn a_copy_that_is_asked_for_again_needs_no_input_here() {
    let inputs = vec![vec![], vec![0], vec![1], vec![], vec![2, 3]];
    let mut pool = pool_with(inputs, vec![0, 1, 0, 0, 0], false, 1);
    let cost = |cost_ns| Weighed { result: 1, bytes: 1.0, cost_ns };
    pool.computed(node(0), cost(1e9));
    pool.receive(Pe::new(1), PoolMessage::Result(node(1), cost(0.0)));
    assert_eq!(are_there(&pool, [0, 1]), [true, false], "a copy is cheap");
    pool.receive(Pe::new(1), PoolMessage::Request(node(1)));
    pool.receive(Pe::new(1), PoolMessage::Request(node(0)));
    pool.computed(node(3), cost(1e6));
    assert_eq!(are_there(&pool, [0, 3]), [false, true], "no one needs the first any more");
}

#[test]
fn what_is_missing_is_what_was_dropped_before_it_was_read() {
    // The fourth is read by none.
    let inputs = vec![vec![], vec![], vec![], vec![], vec![0, 1, 2]];
    let mut pool = pool_with(inputs, vec![0; 5], false, 0);
    (0..4).for_each(|index| pool.computed(node(index), weighed(1)));
    assert_eq!(pool.take_shortage(), None, "nothing is computed again yet");
    pool.computed(node(0), weighed(1));
    let shortage = pool.take_shortage().expect("it is");
    assert_eq!((shortage.missing, shortage.again), (3, 1));
    assert_eq!(pool.take_shortage(), None, "it was told");
}

/// They are the user's to drop.
#[test]
fn the_blocks_and_results_that_are_forgotten_are_discarded() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![0; 2], u64::MAX);
    (0..2).for_each(|index| pool.computed(node(index), weighed(7)));
    pool.advance(Pe::ROOT, 1);
    let kept = pool.take_discarded();
    assert_eq!((kept.results.len(), kept.blocks.len()), (0, 0), "the next may read them");
    pool.advance(Pe::ROOT, 2);
    let discarded = pool.take_discarded();
    assert_eq!((discarded.results, discarded.blocks.len()), (vec![7, 7], 1));
    assert!(pool.blocks.is_empty());
}

/// Of a long stream.
#[test]
fn those_that_wait_for_what_is_forgotten_need_no_memory_for_ever() {
    let mut pool = pool_of(vec![Vec::new(); 2], vec![1; 2], u64::MAX);
    for block in 0..20 {
        for index in 0..2 {
            pool.receive(Pe::new(1), PoolMessage::Request(NodeId { block, index }));
        }
        pool.advance(Pe::ROOT, block + 2);
    }
    assert_eq!(pool.waiters.most(), 2);
}

/// In a graph in blocks. The readers are not known, so a result may be read again.
#[test]
fn where_memory_is_short_what_was_not_used_for_long_goes_though_it_costs_more() {
    let mut pool = pool_of(vec![Vec::new(); 21], vec![0; 21], 2);
    let cost = |cost_ns| Weighed { result: 1, bytes: 1.0, cost_ns };
    pool.computed(node(0), cost(3e6));
    (1..5).for_each(|index| pool.computed(node(index), cost(1e6)));
    assert_eq!(are_there(&pool, [0, 3, 4]), [true, false, true]);
    (5..21).for_each(|index| pool.computed(node(index), cost(1e6)));
    assert_eq!(are_there(&pool, [0, 19, 20]), [false, true, true]);
}
