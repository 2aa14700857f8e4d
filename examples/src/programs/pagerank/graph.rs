//! Graphs, and what is computed of them.

use crate::{random, ranged, read_text};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use ultramarine::{Error, Result};

/// Which graph, and how its ranks are computed.
#[derive(Clone, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    source: Source,
    /// The number of edges of a random graph.
    #[arg(long, value_name = "E", default_value_t = 10_000_000)]
    #[arg(value_parser = ranged::<u64>(0..=4_000_000_000))]
    edges: u64,
    /// The seed of a random graph.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    method: Method,
}

/// How ranks are computed.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
pub struct Method {
    /// The part of its rank that a vertex passes on.
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    pub damping: f64,
    /// The most rounds.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    pub rounds: u64,
    /// It ends before that when the changes of all vertices in a round come to less than this.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub tolerance: f64,
}

#[derive(Clone, clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// A list of edges: `from to` in each line, except for comments, which begin with `#`. Vertices
    /// are numbers from 0 on.
    file: Option<PathBuf>,
    /// A random graph of this number of vertices.
    #[arg(long, value_name = "VERTICES")]
    #[arg(value_parser = ranged::<u32>(1..=VERTICES_MAX))]
    random: Option<u32>,
}

/// A directed graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Graph {
    /// A random one, which is made where it is needed.
    Random {
        /// The number of vertices.
        vertices: u32,
        /// The number of edges.
        edges: u64,
        /// The seed.
        seed: u64,
    },
    /// All edges, by the vertices at which they end.
    Stored {
        /// Where the edges of each vertex end among `sources`.
        ends: Vec<usize>,
        /// Where the edges begin.
        sources: Vec<u32>,
    },
}

const VERTICES_MAX: i64 = 1_000_000_000;
/// The largest file, in bytes.
const FILE_MAX: u64 = 1 << 34;

impl Flags {
    /// Reads the graph, unless it is random.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds other things than edges; or a number is out of range.
    pub fn read(&self) -> Result<(Graph, Method)> {
        let Flags { method, edges, seed, .. } = *self;
        let Method { damping, tolerance, .. } = method;
        for (flag, value) in [("damping", damping), ("tolerance", tolerance)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::other(format!("--{flag} {value}: 0 to 1 is expected")));
            }
        }
        let graph = match &self.source {
            Source { file: Some(path), .. } => Graph::read(path)?,
            Source { random, .. } => Graph::Random { vertices: random.unwrap_or(1), edges, seed },
        };
        Ok((graph, method))
    }
}

impl Graph {
    fn read(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::other(format!("{}{what}", path.display()));
        let (mut edges, mut ends) = (Vec::new(), Vec::new());
        for (line, text) in (1..).zip(read_text(path, "edges", FILE_MAX)?.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let vertex = |word: &str| word.parse().ok().filter(|n| i64::from(*n) < VERTICES_MAX);
            let vertices: Vec<Option<u32>> = text.split_ascii_whitespace().map(vertex).collect();
            let [Some(from), Some(to)] = vertices[..] else {
                let what = "is not an edge: two numbers below a billion are expected";
                return Err(wrong(format!(", line {line}: `{text}` {what}")));
            };
            ends.resize(ends.len().max(from.max(to) as usize + 1), 0);
            ends[to as usize] += 1;
            edges.push((from, to));
        }
        if edges.is_empty() {
            return Err(wrong(": there are no edges".into()));
        }
        let mut end = 0;
        for place in &mut ends {
            // First it is where the edges of the vertex begin.
            end += std::mem::replace(place, end);
        }
        let mut sources = vec![0; edges.len()];
        for (from, to) in edges {
            let place = &mut ends[to as usize];
            sources[*place] = from;
            *place += 1;
        }
        Ok(Graph::Stored { ends, sources })
    }

    /// The number of vertices.
    pub fn size(&self) -> usize {
        match self {
            Graph::Random { vertices, .. } => *vertices as usize,
            Graph::Stored { ends, .. } => ends.len(),
        }
    }

    /// Where the edges to each of these vertices end among the sources, and these.
    pub(super) fn edges_to(&self, own: Range<usize>) -> (Vec<usize>, Vec<u32>) {
        match self {
            Graph::Random { vertices, edges, seed } => {
                let vertices = u64::from(*vertices);
                // Less than 2⁶² before it is divided.
                let bound = |vertex| (edges * vertex as u64 / vertices) as usize;
                let (mut ends, mut sources) = (Vec::with_capacity(own.len()), Vec::new());
                sources.reserve_exact(bound(own.end) - bound(own.start));
                for vertex in own {
                    let mut random = random(seed ^ (vertex as u64) << 32);
                    let degree = bound(vertex + 1) - bound(vertex);
                    sources.extend((0..degree).map(|_| (random() % vertices) as u32));
                    ends.push(sources.len());
                }
                (ends, sources)
            }
            Graph::Stored { ends, sources } => {
                let begin = own.start.checked_sub(1).map_or(0, |before| ends[before]);
                let ends: Vec<_> = ends[own].iter().map(|end| end - begin).collect();
                let end = begin + ends.last().unwrap_or(&0);
                (ends, sources[begin..end].to_vec())
            }
        }
    }
}
