//! Computes a graph on one thread, node after node: what it should compute on many.

use super::block::Block;
use super::builder::Builder;
use super::error::DagError;
use super::handles::{NodeId, Wanted};
use super::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Computes the wanted nodes of a graph on this thread, and those that they need. For tests, and
/// for graphs that are small.
///
/// ```
/// use ultramarine::skeletons::dag::{self, Builder};
///
/// let sum = |g: &mut Builder, &(a, b): &(u64, u64)| {
///     let (a, b) = (g.source(|a| *a, a), g.source(|b| *b, b));
///     let double = g.map(|factor: &u64, a: &u64| factor * a, 2, a);
///     let product = g.zip(|(), (a, b): (&u64, &u64)| a * b, (), (a, b));
///     g.reduce(|(), all: &[&u64]| all.iter().copied().sum::<u64>(), (), [double, product, b])
/// };
/// assert_eq!(dag::evaluate(sum, &(4, 3)).unwrap(), 8 + 12 + 3);
/// ```
///
/// # Errors
///
/// A node that is needed panicked.
pub fn evaluate<A, W: Wanted>(
    build: impl FnOnce(&mut Builder, &A) -> W,
    argument: &A,
) -> Result<W::Results, DagError> {
    let mut build = Some(build);
    let build_once = |g: &mut Builder, argument: &A| {
        let build = build.take().unwrap_or_else(|| unreachable!("there is one block"));
        build(g, argument)
    };
    evaluate_blocks(build_once, argument, 1)
}

/// [Evaluates](evaluate) a graph that is built [in blocks](super::Dag::blocks).
///
/// # Errors
///
/// A node that is needed panicked, or there is no such node.
///
/// # Panics
///
/// There are no blocks.
pub fn evaluate_blocks<A, W: Wanted>(
    mut build: impl FnMut(&mut Builder, &A) -> W,
    argument: &A,
    blocks: u32,
) -> Result<W::Results, DagError> {
    assert!(blocks > 0, "a graph has at least one block");
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    for number in 0..blocks {
        let mut builder = Builder::new(number, 1);
        wanted = build(&mut builder, argument).ids();
        all.push(builder.finish());
    }
    // Inputs are in the same block, or in earlier ones.
    let mut values: BTreeMap<NodeId, Value> = BTreeMap::new();
    let mut needed = needed(&all, &wanted)?;
    while let Some(node) = needed.pop_first() {
        let block = &all[node.block as usize];
        let inputs = block.inputs(node.index).map(|input| values[&input].clone());
        let value = block.compute(node.index, &inputs.collect::<Vec<_>>())?;
        values.insert(node, value);
    }
    Ok(W::results(wanted.iter().map(|node| values[node].clone()).collect()))
}

/// The nodes that the wanted ones need, and these themselves.
fn needed(blocks: &[Block], wanted: &[NodeId]) -> Result<BTreeSet<NodeId>, DagError> {
    let (mut needed, mut stack) = (BTreeSet::new(), wanted.to_vec());
    while let Some(node) = stack.pop() {
        let block = blocks.get(node.block as usize).filter(|block| node.index < block.len());
        let block = block.ok_or(DagError::NoSuchNode { node })?;
        if needed.insert(node) {
            stack.extend(block.inputs(node.index));
        }
    }
    Ok(needed)
}
