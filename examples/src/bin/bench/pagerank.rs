//! `PageRank` of a random graph on two PEs, each with half of the vertices. After each step they
//! send each other their halves of the ranks, from mailbox to mailbox. Beside one loop over the
//! whole graph, on the root of the same job, while the other PE rests. Both find the same ranks,
//! bit for bit.
//!
//! The loops look up ranks all over memory, so two PEs may hold each other up in a cache or on the
//! way to the memory. Their loops without what they send each other show by how much.

use crate::child::needs_pes;
use crate::launch::{self, Bench};
use crate::{Goal, Report, Sample, Unit};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};
use ultramarine_examples::random;

const ROUNDS: usize = 5;
const VERTICES: usize = 1_000_000;
/// The most edges that end at a vertex, of which there are half as many on average.
const DEGREE_MAX: u64 = 20;
const STEPS: usize = 20;
const DAMPING: f64 = 0.85;

/// In seconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Seconds {
    sequential: f64,
    parallel: f64,
    /// The loops of two PEs at once, without what they send each other.
    unsent: f64,
}

/// The edges that end at some of the vertices.
struct Edges {
    vertices: Range<usize>,
    /// Where the edges of each vertex end in `sources`.
    ends: Vec<usize>,
    sources: Vec<u32>,
}

impl Edges {
    fn to(vertices: Range<usize>) -> Self {
        let (mut ends, mut sources) = (Vec::with_capacity(vertices.len()), Vec::new());
        for vertex in vertices.clone() {
            let mut number = random(vertex as u64);
            let degree = number() % (DEGREE_MAX + 1);
            sources.extend((0..degree).map(|_| (number() % VERTICES as u64) as u32));
            ends.push(sources.len());
        }
        Edges { vertices, ends, sources }
    }

    /// How many of the edges begin at each vertex.
    fn out_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; VERTICES];
        self.sources.iter().for_each(|&source| degrees[source as usize] += 1);
        degrees
    }

    /// The ranks of the vertices after a step; each passes on its share of them. (`shares` are
    /// those of all vertices, before the step.)
    fn step(&self, shares: &[f64]) -> impl Iterator<Item = f64> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| {
            let sources = &self.sources[std::mem::replace(&mut begin, end)..end];
            let sum: f64 = sources.iter().map(|&source| shares[source as usize]).sum();
            (1.0 - DAMPING) / VERTICES as f64 + DAMPING * sum
        })
    }
}

/// What a vertex of this rank passes on along each of its edges.
fn share(rank: f64, out_degree: u32) -> f64 {
    rank / f64::from(out_degree.max(1))
}

fn first_shares(out_degrees: &[u32]) -> Vec<f64> {
    out_degrees.iter().map(|&degree| share(1.0 / VERTICES as f64, degree)).collect()
}

/// The shares after all steps, and the seconds that these take the second time.
fn sequential() -> (Vec<f64>, f64) {
    let edges = Edges::to(0..VERTICES);
    let out_degrees = edges.out_degrees();
    let (mut shares, mut seconds) = (vec![], 0.0);
    for _ in 0..2 {
        shares = first_shares(&out_degrees);
        let start = Instant::now();
        for _ in 0..STEPS {
            let ranks = edges.step(&shares).zip(&out_degrees);
            shares = ranks.map(|(rank, &degree)| share(rank, degree)).collect();
        }
        seconds = start.elapsed().as_secs_f64();
    }
    (shares, seconds)
}

/// The shares of the half of this PE, and the seconds that the steps take; without what is sent,
/// and with it.
async fn half(
    cx: Context,
    (degrees, shares): (Key, Key),
) -> std::result::Result<(Vec<f64>, [f64; 2]), TaskError> {
    let me = cx.pe().index();
    let other = Pe::new(1 - me as u32);
    let bounds = [0, VERTICES / 2, VERTICES];
    let edges = Edges::to(bounds[me]..bounds[me + 1]);
    let own = edges.vertices.clone();
    let others = bounds[1 - me]..bounds[2 - me];
    let mut out_degrees = edges.out_degrees();
    let degrees = cx.mailbox(degrees);
    degrees.send(other, out_degrees.clone())?;
    let more: Vec<u32> = degrees.receive(other).await?;
    out_degrees.iter_mut().zip(more).for_each(|(degree, more)| *degree += more);
    let mail = cx.mailbox(shares);
    let mut shares = first_shares(&out_degrees);
    let mut seconds = [0.0; 2];
    for (seconds, is_sent) in seconds.iter_mut().zip([false, true]) {
        // Both begin at once.
        mail.send(other, Vec::new())?;
        mail.receive(other).await?;
        shares = first_shares(&out_degrees);
        let start = Instant::now();
        for _ in 0..STEPS {
            let ranks = edges.step(&shares).zip(&out_degrees[own.clone()]);
            let half: Vec<f64> = ranks.map(|(rank, &degree)| share(rank, degree)).collect();
            shares[own.clone()].copy_from_slice(&half);
            if is_sent {
                mail.send(other, half)?;
                let half = mail.receive(other).await?;
                shares[others.clone()].copy_from_slice(&half);
            }
        }
        *seconds = start.elapsed().as_secs_f64();
    }
    Ok((shares[own].to_vec(), seconds))
}

/// Computes the ranks in both ways.
pub(crate) async fn job(cx: &Context) -> Result<Seconds> {
    needs_pes(cx, 2)?;
    let (shares, sequential) = sequential();
    let keys = (cx.new_key(), cx.new_key());
    let [first, second] = [0, 1].map(|pe| cx.spawn_at(Pe::new(pe), half, keys));
    let ((mut halves, first), (half, second)) = (first.await??, second.await??);
    halves.extend(half);
    if halves == shares {
        let [unsent, parallel] = [0, 1].map(|way| first[way].max(second[way]));
        Ok(Seconds { sequential, parallel, unsent })
    } else {
        Err(Error::other("two PEs find other ranks than one"))
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut job = bench.on(2, &bench.child("--threads 1 pagerank"));
    let mut found = vec![];
    for _ in 0..bench.rounds(ROUNDS) {
        found.push(launch::run(&mut job)?.json::<Seconds>()?);
    }
    let sequential = Sample::of(&found, |seconds| seconds.sequential);
    let parallel = Sample::of(&found, |seconds| seconds.parallel);
    report.figure("one loop", &sequential, Unit::SECONDS);
    report.figure("two PEs", &parallel, Unit::SECONDS);
    let unsent = Sample::of(&found, |seconds| seconds.unsent);
    report.figure("their loops alone", &unsent, Unit::SECONDS);
    report.figure("two PEs, over their loops alone", &parallel.over(&unsent), Unit::TIMES);
    report.goal("speed-up", &sequential.over(&parallel), Unit::TIMES, Some(Goal::AtLeast(1.7)));
    Ok(())
}
