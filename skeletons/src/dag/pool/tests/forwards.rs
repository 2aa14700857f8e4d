//! Results that go to their readers unasked.

use super::*;

const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);

/// Node 0 is PE 0's, and read by three nodes, two of PE 1 and one of PE 2; and these by the last,
/// which is PE 0's, and wanted.
fn fan() -> Drawn {
    let inputs = vec![vec![], vec![0], vec![0], vec![0], vec![1, 2, 3]];
    let (owners, wanted) = (vec![0, 1, 1, 2, 0], vec![node(4)]);
    let (may_move, drops_used) = (true, false);
    Drawn { inputs, owners, pes: 3, wanted, may_move, drops_used, forwards: true }
}

/// What a pool sends, but for loads.
fn sent(pool: &mut Pool<Drawn>) -> Vec<(Pe, PoolMessage<u64>)> {
    let send = |effect| match effect {
        PoolEffect::Send(to, message) => Some((to, message)),
        _ => None,
    };
    let sent = pool.take_effects().into_iter().filter_map(send);
    sent.filter(|(_, message)| !matches!(message, PoolMessage::Load(_))).collect()
}

fn requests<const N: usize>(of: [(Pe, usize); N]) -> Vec<(Pe, PoolMessage<u64>)> {
    of.map(|(pe, index)| (pe, PoolMessage::Request(node(index)))).into()
}

/// The pool of PE 0 of this graph, which has started, and what it begins then.
fn started(graph: Drawn, limit: u64) -> (Pool<Drawn>, VecDeque<PoolEffect<u64>>) {
    let mut pool = idle(graph, limit);
    pool.start();
    let effects = pool.take_effects();
    (pool, effects)
}

#[test]
fn a_result_is_computed_and_sent_unasked_and_none_is_asked_for() {
    let (mut pool, effects) = started(fan(), u64::MAX);
    assert!(effects.contains(&PoolEffect::Compute(node(0))));
    pool.computed(node(0), weighed(7));
    let result = |pe| (pe, PoolMessage::Result(node(0), 7));
    assert_eq!(sent(&mut pool), [result(ONE), result(TWO)], "and the inputs of the last come");
    for (pe, index) in [(TWO, 3), (ONE, 1), (ONE, 2)] {
        pool.receive(pe, PoolMessage::Result(node(index), weighed(1)));
    }
    assert_eq!(pushed_and_begun(&mut pool).1, [4]);
}

#[test]
fn a_pe_that_has_asked_gets_the_result_once() {
    let (mut pool, _) = started(fan(), u64::MAX);
    pool.receive(ONE, PoolMessage::Request(node(0)));
    pool.computed(node(0), weighed(7));
    let mut to: Vec<Pe> = sent(&mut pool).iter().map(|(to, _)| *to).collect();
    to.sort_unstable();
    assert_eq!(to, [ONE, TWO]);
}

#[test]
fn after_a_death_all_is_asked_for_that_was_awaited_and_what_is_needed_later() {
    let (mut pool, _) = started(fan(), u64::MAX);
    pool.computed(node(0), weighed(7));
    sent(&mut pool);
    // Of what PE 1 has sent it may have died before the last came: PE 2 is its heir.
    pool.receive(ONE, PoolMessage::Result(node(1), weighed(1)));
    pool.died(ONE);
    assert_eq!(sent(&mut pool), requests([(TWO, 2), (TWO, 3)]));
    let (mut pool, _) = started(fan(), u64::MAX);
    pool.died(ONE);
    pool.computed(node(0), weighed(7));
    let result = vec![(TWO, PoolMessage::Result(node(0), 7))];
    let later = requests([(TWO, 1), (TWO, 2), (TWO, 3)]);
    assert_eq!(sent(&mut pool), [result, later].concat(), "the dead one gets nothing");
}

/// Another pool may have been made anew, and lacks what was forwarded to the one before.
#[test]
fn a_pool_that_is_renewed_has_its_readers_ask() {
    let (mut pool, _) = started(fan(), u64::MAX);
    pool.computed(node(0), weighed(7));
    sent(&mut pool);
    pool.receive(ONE, PoolMessage::Ask);
    let asked = requests([(ONE, 1), (ONE, 2), (TWO, 3)]);
    assert_eq!(sent(&mut pool), asked);
    pool.receive(ONE, PoolMessage::Ask);
    assert_eq!(sent(&mut pool), [], "it has asked");
    for _ in 0..2 {
        pool.renew();
        let asks = [ONE, TWO].map(|pe| (pe, PoolMessage::Ask));
        assert_eq!(sent(&mut pool), [asks.to_vec(), asked.clone()].concat(), "in each opening");
    }
}

/// Its inputs are known to be read by its owner only.
#[test]
fn the_inputs_of_a_node_that_was_pushed_here_are_asked_for() {
    let graph = Drawn {
        inputs: vec![vec![], vec![0], vec![1]],
        owners: vec![1, 2, 0],
        wanted: vec![node(2)],
        ..fan()
    };
    let (mut pool, _) = started(graph, u64::MAX);
    pool.receive(TWO, PoolMessage::Push(node(1), 0));
    assert_eq!(sent(&mut pool), requests([(ONE, 0)]));
    pool.receive(ONE, PoolMessage::Result(node(0), weighed(1)));
    pool.computed(node(1), weighed(2));
    assert_eq!(sent(&mut pool), [(TWO, PoolMessage::Result(node(1), 2))]);
}

#[test]
fn the_pe_that_has_computed_a_pushed_node_does_not_get_its_result() {
    let (inputs, wanted) = (vec![vec![], vec![0], vec![0], vec![1, 2]], vec![node(3)]);
    let graph = Drawn { inputs, owners: vec![0, 1, 2, 0], wanted, ..fan() };
    let mut pool = idle(graph, u64::MAX);
    pool.tokens = 0;
    pool.start();
    pool.push(node(0), ONE);
    sent(&mut pool);
    pool.receive(ONE, PoolMessage::Result(node(0), weighed(7)));
    assert_eq!(sent(&mut pool), [(TWO, PoolMessage::Result(node(0), 7))]);
}

/// Where memory counts an owner computes no sooner than its readers want it.
#[test]
fn where_results_are_dropped_all_is_asked_for() {
    for (drops_used, limit) in [(true, u64::MAX), (false, 100)] {
        let (_, effects) = started(Drawn { drops_used, ..fan() }, limit);
        let asked = requests([(ONE, 1), (ONE, 2), (TWO, 3)]);
        let asked: Vec<_> = asked.into_iter().map(|(pe, ask)| PoolEffect::Send(pe, ask)).collect();
        assert_eq!(effects, asked);
    }
}

/// Others wait for their inputs, wherever they are.
#[test]
fn of_what_is_begun_unasked_nodes_without_inputs_count_as_load_and_may_be_pushed() {
    for (inputs, is_pushed) in [(vec![], true), (vec![0], false)] {
        let inputs = std::iter::once(vec![]).chain(vec![inputs; 30]).chain([(1..31).collect()]);
        let owners = [vec![0; 31], vec![1]].concat();
        let wanted = vec![node(31)];
        let graph = Drawn { inputs: inputs.collect(), owners, pes: 2, wanted, ..fan() };
        let mut pool = idle(graph, u64::MAX);
        pool.tokens = 0;
        pool.computed(node(0), weighed(1));
        pool.tokens = 0;
        pool.start();
        let (pushed, begun) = pushed_and_begun(&mut pool);
        assert_eq!((pushed.is_empty(), begun), (!is_pushed, vec![]));
        assert!(pushed.iter().all(|index| *index >= 15), "the last that was built comes first");
    }
}

/// As in a sequential program.
#[test]
fn what_others_read_is_begun_in_the_order_in_which_it_was_built() {
    let inputs = vec![vec![], vec![], vec![0], vec![], vec![1], vec![2, 3, 4]];
    let (owners, wanted) = (vec![0, 0, 0, 0, 0, 1], vec![node(5)]);
    let (mut pool, effects) = started(Drawn { inputs, owners, wanted, ..fan() }, u64::MAX);
    pool.out.extend(effects);
    let mut begun = Vec::new();
    while let Some(index) = pushed_and_begun(&mut pool).1.first().copied() {
        begun.push(index);
        pool.computed(node(index as usize), Weighed { cost_ns: 1.0, ..weighed(1) });
    }
    assert_eq!(begun, [0, 2, 3, 1, 4]);
}
