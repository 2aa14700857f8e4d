//! How much is computed again where the memory is a little too small.

use super::world::{Drawn, idle, node, run_of, want};
use super::*;

/// The inputs of the nodes of a graph.
type Inputs = Vec<Vec<u32>>;

fn add(graph: &mut Inputs, inputs: Vec<u32>) -> u32 {
    graph.push(inputs);
    graph.len() as u32 - 1
}

/// A node that has all these as ancestors, one read after the other.
fn end(graph: &mut Inputs, all: impl IntoIterator<Item = u32>) {
    let mut all = all.into_iter();
    let first: Vec<u32> = all.next().into_iter().collect();
    let begin = add(graph, first);
    all.fold(begin, |before, one| add(graph, vec![one, before]));
}

/// The Cholesky factor of a matrix of this many rows of tiles, whose tiles are then read.
fn cholesky(rows: usize) -> Inputs {
    let mut graph = Inputs::new();
    let row = |graph: &mut _, row| (0..=row).map(|_| add(graph, Vec::new())).collect();
    let mut tiles: Vec<Vec<u32>> = (0..rows).map(|n| row(&mut graph, n)).collect();
    for k in 0..rows {
        tiles[k][k] = add(&mut graph, vec![tiles[k][k]]);
        for row in k + 1..rows {
            tiles[row][k] = add(&mut graph, vec![tiles[row][k], tiles[k][k]]);
        }
        for row in k + 1..rows {
            for column in k + 1..=row {
                let inputs = vec![tiles[row][column], tiles[row][k], tiles[column][k]];
                tiles[row][column] = add(&mut graph, inputs);
            }
        }
    }
    end(&mut graph, tiles.concat());
    graph
}

/// Each point needs itself and its neighbours of the step before.
fn stencil(width: usize, steps: usize) -> Inputs {
    let mut graph = Inputs::new();
    let mut points: Vec<u32> = (0..width).map(|_| add(&mut graph, Vec::new())).collect();
    for _ in 0..steps {
        let near = |n: usize| points[n.saturating_sub(1)..width.min(n + 2)].to_vec();
        points = (0..width).map(|n| add(&mut graph, near(n))).collect();
    }
    end(&mut graph, points);
    graph
}

/// The butterflies of a Fourier transform of 2 to the power `steps` points.
fn butterflies(steps: u32) -> Inputs {
    let mut graph = Inputs::new();
    let mut points: Vec<u32> = (0..1 << steps).map(|_| add(&mut graph, Vec::new())).collect();
    for step in 0..steps {
        let both = |n: usize| vec![points[n], points[n ^ (1 << step)]];
        points = (0..points.len()).map(|n| add(&mut graph, both(n))).collect();
    }
    end(&mut graph, points);
    graph
}

/// Computes the last node on one PE, one node after the other, unless that takes more than this
/// number. Returns how many were computed, and what was said of the memory. Each result takes a
/// byte.
fn computed(inputs: &Inputs, limit: u64, most: usize) -> (usize, Vec<Shortage>) {
    let last = node(inputs.len() - 1);
    let (owners, wanted) = (vec![0; inputs.len()], vec![last]);
    let (inputs, pes, may_move, drops_used) = (inputs.clone(), 1, false, false);
    let mut pool =
        idle(Drawn { inputs, owners, pes, wanted, may_move, drops_used, forwards: false }, limit);
    let (mut count, mut told) = (0, Vec::new());
    pool.start();
    while pool.result(last).is_none() && count <= most {
        for effect in pool.take_effects() {
            match effect {
                PoolEffect::Compute(node) => {
                    count += 1;
                    pool.computed(node, Weighed { result: 1, bytes: 1.0, cost_ns: 1e6 });
                }
                PoolEffect::Short(shortage) => told.push(shortage),
                _ => {}
            }
        }
    }
    told.extend(pool.take_shortage());
    (count, told)
}

/// The least memory with which no node is computed again.
fn need(inputs: &Inputs) -> u64 {
    let nodes = inputs.len();
    let limits: Vec<u64> = (1..nodes as u64).collect();
    limits[limits.partition_point(|limit| computed(inputs, *limit, nodes).0 > nodes)]
}

#[test]
fn a_little_too_little_memory_costs_little() {
    // How many tenths of the nodes are computed at most, if a byte is missing, a tenth of the need,
    // and a quarter. (A stencil lives on its last step: what is lost of that costs a triangle.)
    for (name, graph, most) in [
        ("cholesky", cholesky(10), &[11, 15, 20][..]),
        ("stencil", stencil(20, 20), &[11, 15]),
        ("butterflies", butterflies(6), &[11, 15, 40]),
    ] {
        let (need, nodes) = (need(&graph), graph.len());
        for (limit, most) in [need - 1, need * 9 / 10, need * 3 / 4].into_iter().zip(most) {
            let count = computed(&graph, limit, 10 * nodes).0;
            assert!(count * 10 <= nodes * most, "{name}: {count} of {nodes}, {limit} of {need}");
        }
    }
}

#[test]
fn that_the_memory_is_too_small_is_said_once_and_by_what() {
    let graph = cholesky(10);
    let need = need(&graph);
    assert_eq!(computed(&graph, need, usize::MAX).1, []);
    // It costs hardly anything, and is told in the end.
    let [shortage] = computed(&graph, need - 1, usize::MAX).1[..] else { panic!("it is short") };
    assert!(shortage.again < 10 && (1..10).contains(&shortage.missing), "{shortage}");
    let (count, told) = computed(&graph, need / 2, usize::MAX);
    let [shortage] = told[..] else { panic!("{told:?}") };
    assert!(shortage.again > 0 && shortage.again < count as u64, "{shortage}");
    assert!(shortage.missing > 0 && shortage.missing <= need, "{shortage}");
    let text = shortage.to_string();
    assert!(text.contains("is too small for the graph on PE 0, by "), "{text}");
}

/// It has all nodes of the dead, of which it computed none, and must know their readers as well.
#[test]
fn an_heir_drops_no_more_than_the_dead_would_have() {
    let inputs = cholesky(10);
    let (nodes, limit) = (inputs.len(), need(&inputs) * 9 / 10);
    let (last, owners) = (node(nodes - 1), vec![1; nodes]);
    let (wanted, may_move, drops_used) = (vec![last], false, false);
    let graph = Drawn { inputs, owners, pes: 2, wanted, may_move, drops_used, forwards: false };
    let (mut world, notes) = run_of(graph, 1, limit);
    world.run(&[0], &[(1, 1, 0)]);
    want(&mut world, Pe::ROOT, last);
    world.run(&[0], &[]);
    let notes = notes.borrow();
    assert!(notes.delivered.contains_key(&last));
    let begun = notes.begun.values().sum::<u32>();
    assert!(begun * 2 <= nodes as u32 * 3, "{begun} of {nodes}");
}
