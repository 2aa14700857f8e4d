//! The computation of `k_medoids` with plain MPI, written by hand. The benchmark `programs`
//! compares with it. It uses nothing of the runtime.

use clap::Parser;
use mpi::datatype::PartitionMut;
use mpi::traits::{Communicator, CommunicatorCollectives};
use std::time::Instant;
use ultramarine::{Error, Result};
use ultramarine_examples::own_range;
use ultramarine_examples::programs::k_medoids::points::{
    Best, Flags, Problem, better, replace, total,
};

/// Divide points into clusters around medoids, with MPI alone.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> Result<()> {
    let Problem { points, mut medoids, rounds } = Arguments::parse().flags.problem()?;
    let universe = mpi::initialize().ok_or_else(|| Error::other("MPI was started before"))?;
    let world = universe.world();
    let (rank, ranks) = (world.rank() as u32, world.size() as u32);
    world.barrier();
    let start = Instant::now();
    let (number, k) = (points.number(), medoids.len());
    let own = own_range(number, rank, ranks);
    let ranges = (0..ranks).map(|rank| own_range(number, rank, ranks));
    let (begins, lengths): (Vec<i32>, Vec<i32>) =
        ranges.map(|range| (range.start as i32, range.len() as i32)).unzip();
    let (mut clusters, mut round) = (vec![0; number], 0);
    let mut all = vec![0.0; 2 * k * ranks as usize];
    let best = loop {
        round += 1;
        let nearest: Vec<u32> = points.nearest(own.clone(), &medoids).collect();
        let mut parts = PartitionMut::new(&mut clusters[..], &lengths[..], &begins[..]);
        world.all_gather_varcount_into(&nearest[..], &mut parts);
        // Numbers of points are exact as such numbers, too.
        let best = points.best(own.clone(), &clusters, k);
        let best: Vec<f64> = best.iter().flat_map(|&(sum, n)| [sum, f64::from(n)]).collect();
        world.all_gather_into(&best[..], &mut all[..]);
        let parts = all.chunks_exact(2 * k).map(|part| -> Best {
            part.chunks_exact(2).map(|pair| (pair[0], pair[1] as u32)).collect()
        });
        let best = parts.reduce(better).unwrap_or_default();
        if !replace(&mut medoids, &best) || round == rounds {
            break best;
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    if rank == 0 {
        let result = total(&best);
        let said = serde_json::json!({ "result": result, "rounds": round, "seconds": seconds });
        println!("{said}");
    }
    Ok(())
}
