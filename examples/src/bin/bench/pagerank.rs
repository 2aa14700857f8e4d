//! `PageRank` of a random graph on two PEs, against plain MPI and one loop. All find the same
//! ranks, bit for bit.
//!
//! They look up ranks all over memory, so two PEs may hold each other up in a cache or on the way
//! to the memory: plain MPI shows by how much.

use crate::launch::Bench;
use crate::{Goal, Report, Unit};
use ultramarine::Result;

const ROUNDS: usize = 5;
const GRAPH: &str = "--random 1000000 --edges 10000000 --rounds 20";

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let ours =
        |flags: &str| bench.program("pagerank", &format!("{GRAPH} --threads 1 --json {flags}"));
    let contenders = [
        ("one loop", ours("--pes 1 --skeleton sequential")),
        ("MPI by hand", bench.on(2, &bench.program("pagerank_mpi", GRAPH))),
        ("2 PEs", bench.on(2, &ours("--ranks 2"))),
    ];
    let [one, mpi, two] = report.contest(bench, ROUNDS, "pagerank", contenders, None)?;
    report.goal("2 PEs, over MPI by hand", &two.over(&mpi), Unit::TIMES, Goal::AtMost(1.1));
    report.goal("speed-up", &one.over(&two), Unit::TIMES, Goal::AtLeast(1.7));
    Ok(())
}
