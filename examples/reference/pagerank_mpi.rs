//! The computation of `pagerank` with plain MPI, written by hand. The benchmark `pagerank` compares
//! with it. It uses nothing of the runtime.

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::request::{WaitGuard, scope};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::own_range;
use ultramarine_examples::programs::pagerank::graph::Flags;
use ultramarine_examples::programs::pagerank::vertices::{Edges, Vertices, units};
use ultramarine_examples::programs::stencil::plate::digest;

/// Rank the vertices of a graph with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> Result<()> {
    let (graph, method) = Arguments::parse().flags.read()?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, ranks) = (world.rank() as u32, world.size() as u32);
    let own = own_range(graph.size(), rank, ranks);
    let sum = |part: u64| {
        let mut all = 0;
        world.all_reduce_into(&part, &mut all, SystemOperation::sum());
        all
    };
    world.barrier();
    let start = Instant::now();
    let edges = Edges::of(&graph, rank, ranks);
    let mut vertices = Vertices::of(&graph, &edges);
    let mut needed = Vec::new();
    let mut counts = vec![0.0; own.len()];
    for shift in 0..ranks {
        // Each sends to the rank that is so far behind it.
        let [to, from] = [rank + shift, rank + ranks - shift].map(|rank| rank % ranks);
        let sent = &edges.counts[own_range(graph.size(), to, ranks)];
        scope(|scope| {
            let receiver = world.process_at_rank(to as i32);
            let _guard = WaitGuard::from(receiver.immediate_send(scope, sent));
            world.process_at_rank(from as i32).receive_into(&mut counts[..]);
        });
        let from_there = vertices.count(&counts);
        if from != rank {
            needed.push((from, from_there));
        }
    }
    let mut rounds = 0;
    while rounds < method.rounds {
        let dangling = sum(vertices.share());
        let sent: Vec<_> = needed.iter().map(|(to, own)| (*to, vertices.shares_of(own))).collect();
        let mut places = &mut vertices.shares[own.len()..];
        scope(|scope| {
            let mut guards = Vec::new();
            for (from, range) in &edges.others {
                let (shares, rest) = std::mem::take(&mut places).split_at_mut(range.len());
                places = rest;
                let from = world.process_at_rank(*from as i32);
                guards.push(WaitGuard::from(from.immediate_receive_into(scope, shares)));
            }
            for (to, shares) in &sent {
                let to = world.process_at_rank(*to as i32);
                guards.push(WaitGuard::from(to.immediate_send(scope, &shares[..])));
            }
        });
        rounds += 1;
        if sum(vertices.step(&edges, method, dangling)) < units(method.tolerance) {
            break;
        }
    }
    let part = digest(own.start, &vertices.ranks);
    let result = sum(part).cast_signed();
    let seconds = start.elapsed().as_secs_f64();
    if rank == 0 {
        let said = serde_json::json!({ "result": result, "rounds": rounds, "seconds": seconds });
        println!("{said}");
    }
    Ok(())
}
