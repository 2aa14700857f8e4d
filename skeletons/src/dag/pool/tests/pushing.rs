//! Nodes that are pushed to other PEs.

use super::*;

/// The nodes that a pool pushes, and those that it begins.
pub(super) fn pushed_and_begun(pool: &mut Pool<Drawn>) -> (Vec<u32>, Vec<u32>) {
    let (mut pushed, mut begun) = (Vec::new(), Vec::new());
    for effect in pool.take_effects() {
        match effect {
            PoolEffect::Send(_, PoolMessage::Push(node, _)) => pushed.push(node.index),
            PoolEffect::Compute(node) => begun.push(node.index),
            _ => {}
        }
    }
    (pushed, begun)
}

/// What it has sent before may still be on its way.
#[test]
fn nothing_is_pushed_to_a_pe_that_is_dead() {
    for is_dead in [false, true] {
        let mut pool = pool_of(vec![Vec::new(); 32], vec![1; 32], u64::MAX);
        pool.computed(node(1), weighed(1));
        if is_dead {
            pool.died(Pe::new(1));
        }
        pool.receive(Pe::new(1), PoolMessage::Load(0));
        for index in 2..32 {
            pool.receive(Pe::new(1), PoolMessage::Push(node(index), PUSHES_MAX));
        }
        assert_eq!(pushed_and_begun(&mut pool).0.is_empty(), is_dead);
    }
}

#[test]
fn what_was_pushed_to_a_pe_that_dies_is_computed_here() {
    let mut pool = pool_of(vec![Vec::new(); 32], vec![1; 32], u64::MAX);
    pool.computed(node(1), weighed(1));
    let wanted = (2..32).filter(|index| index % 8 != 0);
    wanted.for_each(|index| pool.receive(Pe::new(1), PoolMessage::Push(node(index), PUSHES_MAX)));
    let (pushed, mut all) = pushed_and_begun(&mut pool);
    assert!(!pushed.is_empty());
    // It was asked for them again, and gets them again.
    pool.renew();
    assert_eq!(pushed_and_begun(&mut pool).0, pushed);
    pool.died(Pe::new(1));
    let mut next = 0;
    while let Some(index) = all.get(next).copied() {
        pool.computed(node(index as usize), weighed(1));
        let (again, begun) = pushed_and_begun(&mut pool);
        assert!(again.is_empty(), "PE 1 is dead");
        all.extend(begun);
        next += 1;
    }
    all.sort_unstable();
    assert_eq!(all, (2..32).filter(|index| index % 8 != 0).collect::<Vec<_>>());
}

/// Its inputs were gone when it was to be computed.
#[test]
fn a_node_that_was_skipped_gives_its_token_back() {
    let mut pool = pool_of(vec![Vec::new(); 3], vec![0; 3], u64::MAX);
    (0..2).for_each(|index| pool.want(node(index)));
    assert_eq!(pushed_and_begun(&mut pool), (vec![], vec![0]), "there is one token");
    pool.skipped(node(0));
    assert_eq!((pushed_and_begun(&mut pool).1.len(), pool.tokens), (1, 0));
    // The result has come in another way: nothing is to be done for it.
    (0..2).for_each(|index| pool.supply(node(index), weighed(7)));
    pool.skipped(node(0));
    assert_eq!((pushed_and_begun(&mut pool).1, pool.tokens), (vec![], 1));
}

/// What is pushed of these nodes, which PE 1 asks for, if one that was computed took this long.
fn pushed_after(cost_ns: f32, requested: std::ops::Range<usize>) -> Vec<u32> {
    let (inputs, owners, wanted) = (vec![Vec::new(); 32], vec![0; 32], Vec::new());
    let graph = Drawn {
        inputs,
        owners,
        pes: 2,
        wanted,
        may_move: true,
        drops_used: false,
        forwards: false,
    };
    let mut pool = idle(graph, u64::MAX);
    pool.tokens = 0;
    pool.computed(node(1), Weighed { result: 1, bytes: 1.0, cost_ns });
    requested.for_each(|n| pool.receive(Pe::new(1), PoolMessage::Request(node(n))));
    pushed_and_begun(&mut pool).0
}

/// Here the newest is begun next.
#[test]
fn of_the_nodes_that_wait_the_oldest_is_pushed_first() {
    // The first is begun at once. Half of the others are pushed.
    assert_eq!(pushed_after(1e6, 2..11), [3, 4, 5]);
}

#[test]
fn nodes_are_worth_a_push_from_20_us_on() {
    for (cost_ns, is_pushed) in [(19_999.0, false), (20_000.0, true)] {
        assert_eq!(pushed_after(cost_ns, 2..32).is_empty(), !is_pushed, "{cost_ns}");
    }
}
