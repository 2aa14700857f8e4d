//! The tree of cliques, and its bound.
//!
//! A node is a clique with its *candidates*, the vertices that are joined to all of its vertices.
//! The candidates are coloured greedily, such that joined vertices have different colours. A clique
//! has at most one vertex of each colour, so with candidates of the first k colours it grows by at
//! most k (Tomita and Kameda, An efficient branch-and-bound algorithm for finding a maximum clique,
//! 2007). Sets are bit sets, so a colour class takes few operations (San Segundo, Rodríguez-Losada
//! and Jiménez, An exact bit-parallel algorithm for the maximum clique problem, 2011: BBMC).

use super::graph::{Graph, Vertices};
use crate::expanded::note_expanded;
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;

/// A clique, and the candidates that it may grow by.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clique {
    pub(crate) vertices: Vec<u32>,
    candidates: Vertices,
    /// An upper bound of its size after growing.
    bound: u32,
}

impl Clique {
    /// The empty clique.
    pub(crate) fn root(graph: &Graph) -> Self {
        let all = graph.vertices();
        Clique { vertices: Vec::new(), candidates: Vertices::all(all), bound: all as u32 }
    }
}

/// The cliques with one more vertex, the greatest bound first. Each keeps only the candidates of
/// the later ones, so that each clique is generated once.
struct LargerCliques<'a> {
    graph: &'a Graph,
    from: Clique,
    /// The candidates with their colours, in ascending order from 1.
    coloured: Vec<(u32, u32)>,
}

impl Iterator for LargerCliques<'_> {
    type Item = Clique;

    #[inline]
    fn next(&mut self) -> Option<Clique> {
        let (vertex, colour) = self.coloured.pop()?;
        let Clique { vertices, candidates, .. } = &mut self.from;
        candidates.remove(vertex as usize);
        let bound = vertices.len() as u32 + colour;
        let candidates = candidates.both(self.graph.neighbours(vertex as usize));
        let mut grown = Vec::with_capacity(vertices.len() + 1);
        grown.extend_from_slice(vertices);
        grown.push(vertex);
        Some(Clique { vertices: grown, candidates, bound })
    }
}

impl Tree for Graph {
    type Node = Clique;

    fn children(&self, from: Clique) -> impl Iterator<Item = Clique> + Send {
        note_expanded();
        let mut coloured = Vec::new();
        let (mut uncoloured, mut colour) = (from.candidates.clone(), 0);
        while !uncoloured.is_empty() {
            colour += 1;
            uncoloured.take_independent(self, |vertex| coloured.push((vertex as u32, colour)));
        }
        LargerCliques { graph: self, from, coloured }
    }
}

impl Bounded for Graph {
    fn value(&self, node: &Clique) -> Option<u64> {
        Some(node.vertices.len() as u64)
    }

    fn bound(&self, node: &Clique) -> u64 {
        node.bound.into()
    }

    fn has_falling_bounds(&self) -> bool {
        true
    }
}

/// Finds a largest clique with one thread.
pub(crate) fn maximise(graph: &Graph) -> Clique {
    let mut best = Clique::default();
    let mut levels = vec![graph.children(Clique::root(graph))];
    while let Some(level) = levels.last_mut() {
        // Bounds only fall, so the first child with too low a bound ends the level.
        let child = level.next().filter(|child| child.bound as usize > best.vertices.len());
        let Some(child) = child else {
            levels.pop();
            continue;
        };
        if child.vertices.len() > best.vertices.len() {
            best.clone_from(&child);
        }
        levels.push(graph.children(child));
    }
    best
}
