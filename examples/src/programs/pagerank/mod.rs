//! `PageRank` (Page, Brin, Motwani and Winograd, 1999) as a bulk-synchronous program: each rank has
//! some vertices and the edges that end at them. In a round it sends each other rank one array: for
//! each of its vertices with an edge to there, the share of its rank that an edge passes on.
//!
//! [`graph`] has what is read, and [`vertices`] what is computed.

pub mod graph;
pub mod vertices;

use crate::programs::stencil::plate::digest;
use crate::supersteps::Skeleton;
use crate::{Job, SuperstepFlags, name_of, own_range, run_program};
use graph::{Flags, Graph, Method};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::Result;
use ultramarine::skeletons::bsp::{Comm, Next, Program, Start, op};
use vertices::{Edges, Sum, Vertices, units};

/// Rank the vertices of a graph by what points at them.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Show the vertices with the highest ranks, this number of them.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    #[command(flatten)]
    supersteps: SuperstepFlags,
}

/// What a rank does in a superstep.
#[derive(Clone, Copy, Serialize, Deserialize, Default, Debug)]
enum Stage {
    /// It tells others how many edges it has from each of their vertices.
    #[default]
    Count,
    /// It learns whose shares others need, and sends them.
    Begin,
    /// It computes the next ranks, and sends the shares.
    Round,
}

/// A rank's vertices, and who needs what of them.
#[derive(Serialize, Deserialize)]
struct Part {
    method: Method,
    vertices: Vertices,
    needed: Vec<(u32, Vec<u32>)>,
    rounds: u64,
    #[serde(skip)]
    edges: Edges,
}

impl Part {
    /// Sends the shares, and what goes to all.
    fn send(&mut self, comm: &mut Comm<Self>, change: Sum) {
        comm.all_reduce(&self.vertices.share(), op::sum::<Sum>);
        comm.all_reduce(&change, op::sum::<Sum>);
        self.needed.iter().for_each(|(to, own)| comm.send(*to, self.vertices.shares_of(own)));
    }
}

impl Program for Part {
    type Argument = (Graph, Method);
    type Stage = Stage;
    type Message = Vec<f64>;
    /// The number of rounds, and the ranks of the vertices.
    type Output = (u64, Vec<f64>);

    fn new(start: &Start, (graph, method): &(Graph, Method)) -> Self {
        let edges = Edges::of(graph, start.rank, start.ranks);
        let vertices = Vertices::of(graph, &edges);
        Part { method: *method, vertices, needed: Vec::new(), rounds: 0, edges }
    }

    fn restored(&mut self, start: &Start, (graph, _): &(Graph, Method)) {
        self.edges = Edges::of(graph, start.rank, start.ranks);
        self.vertices.make_room(&self.edges);
        self.vertices.share();
    }

    fn step(&mut self, stage: Stage, comm: &mut Comm<Self>) -> Next<Self> {
        match stage {
            Stage::Count => {
                let counts = std::mem::take(&mut self.edges.counts);
                for to in 0..comm.ranks() {
                    comm.send(to, counts[own_range(counts.len(), to, comm.ranks())].to_vec());
                }
                Next::Stage(Stage::Begin)
            }
            Stage::Begin => {
                while let Some((from, counts)) = comm.next() {
                    let needed = self.vertices.count(&counts);
                    if from != comm.rank() {
                        self.needed.push((from, needed));
                    }
                }
                // More than any tolerance.
                self.send(comm, units(2.0) / u64::from(comm.ranks()));
                Next::Stage(Stage::Round)
            }
            Stage::Round => {
                let [dangling, change] = [(); 2].map(|()| comm.result().expect("all took part"));
                for (from, places) in &self.edges.others {
                    let shares = comm.receive(*from).expect("it was sent");
                    self.vertices.shares[places.clone()].copy_from_slice(&shares);
                }
                if change >= units(self.method.tolerance) {
                    let change = self.vertices.step(&self.edges, self.method, dangling);
                    self.rounds += 1;
                    if self.rounds < self.method.rounds {
                        self.send(comm, change);
                        return Next::Stage(Stage::Round);
                    }
                }
                Next::End((self.rounds, std::mem::take(&mut self.vertices.ranks)))
            }
        }
    }
}

/// The same by one loop.
fn sequential(graph: &Graph, method: Method) -> (u64, Vec<f64>) {
    let edges = Edges::of(graph, 0, 1);
    let mut vertices = Vertices::of(graph, &edges);
    vertices.count(&edges.counts);
    for round in 1..=method.rounds {
        let dangling = vertices.share();
        if vertices.step(&edges, method, dangling) < units(method.tolerance) {
            return (round, vertices.ranks);
        }
    }
    (method.rounds, vertices.ranks)
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("pagerank", pagerank)
}

async fn pagerank(job: Job, Arguments { flags, top, supersteps }: Arguments) -> Result<()> {
    let (graph, method) = flags.read()?;
    let start = Instant::now();
    let (rounds, ranks) = match supersteps.skeleton {
        Skeleton::Ranks => {
            let size = graph.size();
            let parts = supersteps.run::<Part>(&job, (graph, method), size).await?;
            (parts[0].0, parts.into_iter().flat_map(|(_, ranks)| ranks).collect())
        }
        Skeleton::Sequential => sequential(&graph, method),
    };
    let result = digest(0, &ranks).cast_signed();
    let report = job.report(name_of(&supersteps.skeleton), start, result).await?;
    let mut vertices: Vec<_> = ranks.into_iter().enumerate().collect();
    vertices.sort_unstable_by(|(one, a), (other, b)| b.total_cmp(a).then(one.cmp(other)));
    vertices.truncate(top);
    report.with("rounds", rounds).with("top", serde_json::to_value(vertices)?).print()
}
