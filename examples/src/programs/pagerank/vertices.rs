//! The vertices of one rank, and the edges that end at them.

use super::graph::{Graph, Method};
use crate::own_range;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The edges that end at the vertices of a rank.
#[derive(Default)]
pub struct Edges {
    ends: Vec<usize>,
    /// Where the share stands that comes along each edge: behind those of the rank's own vertices
    /// are those of others.
    places: Vec<u32>,
    /// The other ranks, and the places of what they send.
    pub others: Vec<(u32, Range<usize>)>,
    /// The number of these edges that begin at each vertex of the graph.
    pub counts: Vec<f64>,
}

impl Edges {
    /// Those of this rank.
    pub fn of(graph: &Graph, rank: u32, ranks: u32) -> Self {
        let size = graph.size();
        let own = own_range(size, rank, ranks);
        let (ends, mut places) = graph.edges_to(own.clone());
        let mut counts = vec![0.0; size];
        places.iter().for_each(|source| counts[*source as usize] += 1.0);
        let (mut place_of, mut width) = (vec![0; size], own.len());
        (0..).zip(&mut place_of[own]).for_each(|(place, of)| *of = place);
        let mut others = Vec::new();
        for other in (0..ranks).filter(|other| *other != rank) {
            let begin = width;
            for vertex in own_range(size, other, ranks).filter(|vertex| counts[*vertex] > 0.0) {
                place_of[vertex] = width as u32;
                width += 1;
            }
            others.push((other, begin..width));
        }
        places.iter_mut().for_each(|place| *place = place_of[*place as usize]);
        Edges { ends, places, others, counts }
    }
}

/// A sum of ranks or of their changes, as a whole number of units: it is the same in any order.
pub type Sum = u64;

/// The number of units in 1. (All ranks come to 1, and their changes to 2 at most.)
const ONE: f64 = (1_u64 << 62) as f64;

/// A rank, or a change, as a [`Sum`].
pub fn units(change: f64) -> Sum {
    (change * ONE) as Sum
}

/// The vertices of a rank.
#[derive(Default, Serialize, Deserialize)]
pub struct Vertices {
    /// The number of vertices of the graph.
    size: f64,
    /// Their ranks.
    pub ranks: Vec<f64>,
    /// The number of edges that begin at each.
    degrees: Vec<f64>,
    /// What each edge passes on that begins at a vertex: of the own ones, then of others.
    #[serde(skip)]
    pub shares: Vec<f64>,
}

impl Vertices {
    /// Those at which these edges end.
    pub fn of(graph: &Graph, edges: &Edges) -> Self {
        let (size, own) = (graph.size() as f64, edges.ends.len());
        let (ranks, degrees) = (vec![1.0 / size; own], vec![0.0; own]);
        let mut vertices = Vertices { size, ranks, degrees, shares: Vec::new() };
        vertices.make_room(edges);
        vertices
    }

    /// Makes room for the shares.
    pub fn make_room(&mut self, edges: &Edges) {
        let width = edges.others.last().map_or(self.ranks.len(), |(_, places)| places.end);
        self.shares.resize(width, 0.0);
    }

    /// How many edges a rank has from each vertex is given. Returns those from which it has any: it
    /// is to be sent their shares.
    pub fn count(&mut self, counts: &[f64]) -> Vec<u32> {
        self.degrees.iter_mut().zip(counts).for_each(|(degree, count)| *degree += count);
        (0..).zip(counts).filter(|(_, count)| **count > 0.0).map(|(vertex, _)| vertex).collect()
    }

    /// Divides the rank of each vertex among its edges. Returns the sum of the ranks of those
    /// without any.
    pub fn share(&mut self) -> Sum {
        let mut dangling = 0;
        let vertices = self.ranks.iter().zip(&self.degrees);
        for (share, (rank, degree)) in self.shares.iter_mut().zip(vertices) {
            if *degree > 0.0 {
                *share = rank / degree;
            } else {
                dangling += units(*rank);
            }
        }
        dangling
    }

    /// The shares of these vertices.
    pub fn shares_of(&self, vertices: &[u32]) -> Vec<f64> {
        vertices.iter().map(|vertex| self.shares[*vertex as usize]).collect()
    }

    /// The next ranks. Returns by how much they differ, all in all. The rank of vertices without
    /// edges goes to all in equal parts.
    pub fn step(&mut self, edges: &Edges, method: Method, dangling: Sum) -> Sum {
        let damping = method.damping;
        let base = (1.0 - damping + damping * (dangling as f64 / ONE)) / self.size;
        let (mut begin, mut change) = (0, 0);
        for (&end, rank) in edges.ends.iter().zip(&mut self.ranks) {
            let places = &edges.places[std::mem::replace(&mut begin, end)..end];
            let sum: f64 = places.iter().map(|place| self.shares[*place as usize]).sum();
            let next = base + damping * sum;
            change += units((next - *rank).abs());
            *rank = next;
        }
        change
    }
}
