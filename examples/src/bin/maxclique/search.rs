//! The tree of cliques, and its bound.
//!
//! A node is a clique with its *candidates*, the vertices that are joined to all of it. These are
//! coloured greedily, joined ones in different colours: a clique has at most one vertex of each
//! colour, so one that only uses the candidates up to the k-th colour has at most k of them (Tomita
//! and Kameda, An efficient branch-and-bound algorithm for finding a maximum clique, 2007). The
//! sets are bit by bit, so that a colour class is made with few operations (San Segundo,
//! Rodríguez-Losada and Jiménez, An exact bit-parallel algorithm for the maximum clique problem,
//! 2011: BBMC).

use crate::graph::{Graph, Vertices};
use serde::{Deserialize, Serialize};
use ultramarine::prelude::*;

/// A clique, and what it may grow by.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clique {
    pub(crate) vertices: Vec<u32>,
    candidates: Vertices,
    /// How many vertices it may have at most when it has grown.
    bound: u32,
}

impl Clique {
    /// The empty one.
    pub(crate) fn root(graph: &Graph) -> Self {
        let all = graph.vertices();
        Clique { vertices: Vec::new(), candidates: Vertices::all(all), bound: all as u32 }
    }
}

/// The cliques with one vertex more, those of the greatest bound first. One has all the candidates
/// that come after it still to choose from, so that each clique comes up once.
struct Grown<'a> {
    graph: &'a Graph,
    from: Clique,
    /// The candidates with their colours, which rise from 1.
    coloured: Vec<(u32, u32)>,
}

impl Iterator for Grown<'_> {
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
        let mut coloured = Vec::new();
        let (mut uncoloured, mut colour) = (from.candidates.clone(), 0);
        while !uncoloured.is_empty() {
            colour += 1;
            uncoloured.take_independent(self, |vertex| coloured.push((vertex as u32, colour)));
        }
        Grown { graph: self, from, coloured }
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

/// A largest clique, found by one thread.
pub(crate) fn maximise(graph: &Graph) -> Clique {
    let mut best = Clique::default();
    let mut levels = vec![graph.children(Clique::root(graph))];
    while let Some(level) = levels.last_mut() {
        // After one with too low a bound come none with a higher one.
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
