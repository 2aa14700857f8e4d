//! Computes a graph on one thread, node after node: what it should compute on many.

use super::builder::Builder;
use super::error::DagError;
use super::handles::Wanted;
use super::value::Value;
use std::collections::BTreeSet;

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
    let mut builder = Builder::new(0, 1);
    let wanted = build(&mut builder, argument).ids();
    let block = builder.finish();
    let mut values: Vec<Option<Value>> = vec![None; block.len() as usize];
    let is_needed = block.needed(&wanted, &BTreeSet::new());
    for index in (0..block.len()).filter(|index| is_needed[*index as usize]) {
        // Inputs have smaller numbers, and are needed, too.
        let inputs: Option<Vec<Value>> =
            block.inputs(index).map(|input| values[input.index as usize].clone()).collect();
        let inputs = inputs.unwrap_or_else(|| unreachable!("inputs are computed before"));
        values[index as usize] = Some(block.compute(index, &inputs)?);
    }
    let results = wanted.iter().filter_map(|node| values[node.index as usize].clone());
    Ok(W::results(results.collect()))
}
