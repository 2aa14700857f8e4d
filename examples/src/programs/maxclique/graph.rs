//! Graphs, and the DIMACS files that they are read from.

use crate::{random, read_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use ultramarine::{Error, Result, log_line};

/// An undirected graph: for each vertex the vertices that it is joined to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Graph {
    neighbours: Vec<Vertices>,
    /// The number of each vertex in the file, counted from 1.
    names: Vec<u32>,
}

/// The largest number of vertices, four times that of the largest benchmark graphs. Their
/// neighbours take 32 MiB, which fit one message.
pub(crate) const VERTICES_MAX: usize = 16_384;

/// The largest size of a file: 128 MiB, twice that of the largest benchmark graph (`MANN_a81`).
const FILE_BYTES_MAX: u64 = 128 << 20;

/// A set of vertices, one bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Vertices {
    words: Vec<u64>,
}

impl Vertices {
    /// An empty set with room for this number of vertices.
    fn none(of: usize) -> Self {
        Vertices { words: vec![0; of.div_ceil(64)] }
    }

    /// The set of this number of vertices.
    pub(crate) fn all(of: usize) -> Self {
        let mut all = Vertices::none(of);
        (0..of).for_each(|vertex| all.insert(vertex));
        all
    }

    fn insert(&mut self, vertex: usize) {
        self.words[vertex / 64] |= 1 << (vertex % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, vertex: usize) {
        self.words[vertex / 64] &= !(1 << (vertex % 64));
    }

    fn contains(&self, vertex: usize) -> bool {
        self.words[vertex / 64] >> (vertex % 64) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The intersection.
    #[inline]
    pub(crate) fn both(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(own, other)| own & other).collect();
        Vertices { words }
    }

    /// Removes, in order, each vertex that is not joined to a vertex removed before. The removed
    /// vertices form an independent set.
    #[inline]
    pub(crate) fn take_independent(&mut self, graph: &Graph, mut taken: impl FnMut(usize)) {
        let mut free = self.words.clone();
        for at in 0..free.len() {
            while free[at] != 0 {
                let vertex = 64 * at + free[at].trailing_zeros() as usize;
                self.remove(vertex);
                free[at] &= free[at] - 1;
                let neighbours = &graph.neighbours[vertex].words;
                free[at..].iter_mut().zip(&neighbours[at..]).for_each(|(f, n)| *f &= !n);
                taken(vertex);
            }
        }
    }
}

/// Why a file is malformed.
#[derive(Debug)]
pub(crate) struct Malformed {
    line: usize,
    reason: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl Graph {
    /// Reads a file in DIMACS format. Warns if the file has fewer edges than it announces.
    pub(crate) fn read(path: &Path) -> Result<Graph> {
        let name = path.display();
        let (graph, announced, found) = Graph::parse(&read_text(path, "graph", FILE_BYTES_MAX)?)
            .map_err(|e| Error::other(format!("the graph {name} is malformed: {e}")))?;
        if found < announced {
            log_line(format_args!(
                "warning: the graph {name} announces {announced} edges and has {found}: is it \
                 whole?"
            ));
        }
        Ok(graph)
    }

    /// A graph in which each two vertices are joined with this probability in percent.
    pub(crate) fn drawn(vertices: usize, percent: u64, seed: u64) -> Graph {
        let (mut graph, mut random) = (Graph::empty(vertices), random(seed));
        for one in 0..vertices {
            (0..one).filter(|_| random() % 100 < percent).for_each(|other| graph.join(one, other));
        }
        graph
    }

    fn empty(vertices: usize) -> Graph {
        let neighbours = vec![Vertices::none(vertices); vertices];
        Graph { neighbours, names: (1..).take(vertices).collect() }
    }

    /// The graph, the number of edges that the text announces, and the number that it has.
    fn parse(text: &str) -> std::result::Result<(Graph, usize, usize), Malformed> {
        let (mut graph, mut announced, mut edges) = (None, 0, 0);
        let mut last = 1;
        for (line, words) in (1..).zip(text.lines()) {
            last = line;
            let malformed = |reason| Malformed { line, reason };
            let words: Vec<_> = words.split_whitespace().collect();
            match (words.as_slice(), &mut graph) {
                ([] | ["c", ..], _) => {}
                (["p", ..], Some(_)) => {
                    return Err(malformed("there is a `p` line already".to_owned()));
                }
                (["p", "edge" | "col", vertices, edges], graph) => {
                    let vertices = number(vertices, 0..=VERTICES_MAX).map_err(malformed)?;
                    announced = number(edges, 0..=usize::MAX).map_err(malformed)?;
                    *graph = Some(Graph::empty(vertices));
                }
                (["e", one, other], Some(graph)) => {
                    let vertices = 1..=graph.vertices();
                    let one = number(one, vertices.clone()).map_err(malformed)?;
                    let other = number(other, vertices).map_err(malformed)?;
                    if one == other {
                        return Err(malformed(format!("an edge joins vertex {one} to itself")));
                    }
                    graph.join(one - 1, other - 1);
                    edges += 1;
                }
                (["e", _, _], None) => {
                    return Err(malformed("an edge before the `p` line".to_owned()));
                }
                (words, _) => {
                    let reason = "`c …`, `p edge VERTICES EDGES` or `e VERTEX VERTEX` is expected";
                    return Err(malformed(format!("{reason}, not `{}`", words.join(" "))));
                }
            }
        }
        let missing = || "there is no `p` line: is that a DIMACS file?".to_owned();
        let graph = graph.ok_or_else(|| Malformed { line: last, reason: missing() })?;
        Ok((graph, announced, edges))
    }

    fn join(&mut self, one: usize, other: usize) {
        self.neighbours[one].insert(other);
        self.neighbours[other].insert(one);
    }

    pub(crate) fn vertices(&self) -> usize {
        self.neighbours.len()
    }

    #[inline]
    pub(crate) fn neighbours(&self, vertex: usize) -> &Vertices {
        &self.neighbours[vertex]
    }

    /// The number of a vertex in the file.
    pub(crate) fn name(&self, vertex: usize) -> u32 {
        self.names[vertex]
    }

    /// The same graph with its vertices in another order: each vertex has the fewest neighbours
    /// among itself and the vertices before it. So vertices with many neighbours come first, and
    /// greedy colouring needs fewer colours.
    pub(crate) fn sorted(&self) -> Graph {
        let vertices = self.vertices();
        let mut degrees: Vec<_> = self.neighbours.iter().map(Vertices::count).collect();
        let mut left: Vec<_> = (0..vertices).collect();
        let mut order = Vec::new();
        while let Some(at) = (0..left.len()).min_by_key(|at| degrees[left[*at]]) {
            let vertex = left.remove(at);
            let is_joined = |other: &&usize| self.neighbours[vertex].contains(**other);
            left.iter().filter(is_joined).for_each(|other| degrees[*other] -= 1);
            order.push(vertex);
        }
        order.reverse();
        let moved = |one: &usize| {
            let mut moved = Vertices::none(vertices);
            let is_joined = |other: &usize| self.neighbours[*one].contains(*other);
            (0..vertices).filter(|at| is_joined(&order[*at])).for_each(|at| moved.insert(at));
            moved
        };
        Graph {
            neighbours: order.iter().map(moved).collect(),
            names: order.iter().map(|vertex| self.names[*vertex]).collect(),
        }
    }
}

/// Reads a number in this range.
fn number(
    text: &str,
    range: std::ops::RangeInclusive<usize>,
) -> std::result::Result<usize, String> {
    let number = text.parse().map_err(|e| format!("`{text}`: {e}"))?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!("{number} is not from {} to {}", range.start(), range.end()))
}
