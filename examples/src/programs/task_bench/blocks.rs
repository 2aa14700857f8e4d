//! The same graph in blocks of some steps: for grids larger than the memory, or without end.

use super::pattern::{Grid, compute};
use super::sum;
use std::iter;
use ultramarine::skeletons::dag::{Builder, Node};

/// A grid, and the number of steps of a block.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Blocks {
    pub(crate) grid: Grid,
    pub(crate) steps: u32,
}

impl Blocks {
    /// The number of blocks.
    pub(crate) fn count(&self) -> u32 {
        self.grid.steps.div_ceil(self.steps)
    }

    /// Where the row of a step begins in its block.
    fn place(&self, step: u32) -> u32 {
        (step - step % self.steps..step).map(|step| self.grid.width_at(step)).sum()
    }
}

/// A block of the graph. It returns the points of its last step, and then the sum of all points
/// that no other needs, as far as they are known.
pub(crate) fn build(g: &mut Builder, blocks: &Blocks) -> Vec<Node<u64>> {
    let Blocks { grid, steps } = *blocks;
    let first = g.block() * steps;
    // A stream begins blocks that the program does not ask for.
    let end = grid.steps.min(first + steps).max(first);
    let (mut row, mut ends) = (Vec::new(), Vec::new());
    if let Some(last) = first.checked_sub(1) {
        let (before, place) = (g.block() - 1, blocks.place(last));
        let width = grid.width_at(last);
        row = (0..width).map(|point| g.node_of(before, place + point)).collect();
        ends.push(g.node_of(before, place + width));
    }
    let source = |(point, iterations): &(u32, u32)| compute(*point, *iterations, iter::empty());
    let later = |(point, iterations): &(u32, u32), inputs: &[&u64]| {
        compute(*point, *iterations, inputs.iter().map(|input| **input))
    };
    for step in first..end {
        let own = (0..grid.width_at(step)).map(|point| (point, grid.iterations));
        if step == 0 {
            row = own.map(|own| g.source(source, own)).collect();
            continue;
        }
        ends.extend(grid.unread(step).into_iter().map(|point| row[point as usize]));
        let node = |own: (u32, u32)| {
            let inputs = grid.inputs(step, own.0).map(|input| row[input as usize]);
            g.reduce(later, own, inputs)
        };
        row = own.map(node).collect();
    }
    row.push(g.reduce(|(), ends: &[&u64]| sum(ends.iter().map(|end| **end)), (), ends));
    row
}
