//! Points, and what is computed of them: which medoid is nearest, and which point is the best one.

use crate::{random, ranged, read_text};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use ultramarine::{Error, Result};

/// Which points, and in how many clusters.
#[derive(Clone, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    source: Source,
    /// The number of coordinates of a random point.
    #[arg(long, value_name = "D", default_value_t = 2)]
    #[arg(value_parser = ranged::<usize>(1..=1000))]
    dimensions: usize,
    /// The number of clusters.
    #[arg(long, value_name = "K")]
    #[arg(value_parser = ranged::<usize>(1..=1_000_000))]
    k: usize,
    /// The seed of the first medoids, and of random points.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most rounds.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000))]
    rounds: u64,
}

#[derive(Clone, clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// A CSV file without a head: a point in each line.
    file: Option<PathBuf>,
    /// This number of random points.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = ranged::<usize>(1..=10_000_000))]
    random: Option<usize>,
}

/// What is to be divided into clusters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// The points.
    pub points: Points,
    /// The first medoids.
    pub medoids: Vec<u32>,
    /// The most rounds.
    pub rounds: u64,
}

/// Points of the same dimension.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Points {
    dimensions: usize,
    /// Point after point.
    coordinates: Vec<f64>,
}

/// Of each cluster the best medoid so far, and the sum of the distances to it.
pub type Best = Vec<(f64, u32)>;

/// The largest file, in bytes.
const FILE_MAX: u64 = 1 << 30;

impl Flags {
    /// Reads or makes the points, and chooses the first medoids.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds other things than points, or fewer of them than clusters.
    pub fn problem(&self) -> Result<Problem> {
        let Flags { dimensions, k, seed, rounds, .. } = *self;
        let points = match &self.source {
            Source { file: Some(path), .. } => Points::read(path)?,
            Source { random: number, .. } => {
                let mut random = random(!seed);
                let coordinates = (0..number.unwrap_or(1) * dimensions)
                    .map(|_| (random() >> 11) as f64 / (1_u64 << 53) as f64);
                Points { dimensions, coordinates: coordinates.collect() }
            }
        };
        let number = points.number();
        if k > number {
            return Err(Error::other(format!("--k {k}: there are only {number} points")));
        }
        let (mut random, mut medoids) = (random(seed), (0..number as u32).collect::<Vec<_>>());
        for at in 0..k {
            medoids.swap(at, at + (random() % (number - at) as u64) as usize);
        }
        medoids.truncate(k);
        Ok(Problem { points, medoids, rounds })
    }
}

impl Points {
    fn read(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::other(format!("{}{what}", path.display()));
        let mut points = Points::default();
        for (line, text) in (1..).zip(read_text(path, "points", FILE_MAX)?.lines()) {
            let begin = points.coordinates.len();
            for (column, text) in (1..).zip(text.split(',').map(str::trim)) {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                points.coordinates.push(number.ok_or_else(|| {
                    wrong(format!(", line {line}, column {column}: `{text}` is not a number"))
                })?);
            }
            let columns = points.coordinates.len() - begin;
            if begin > 0 && columns != points.dimensions {
                let before = points.dimensions;
                let what = format!(", line {line}: {columns} columns, but {before} before");
                return Err(wrong(what));
            }
            points.dimensions = columns;
        }
        if points.coordinates.is_empty() {
            return Err(wrong(": there are no points".into()));
        }
        Ok(points)
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.coordinates.len() / self.dimensions
    }

    fn point(&self, number: usize) -> &[f64] {
        &self.coordinates[number * self.dimensions..][..self.dimensions]
    }

    /// The cluster of each of the `own` points: that of the nearest medoid, the first of several.
    pub fn nearest(&self, own: Range<usize>, medoids: &[u32]) -> impl Iterator<Item = u32> {
        let medoids = medoids.iter().flat_map(|medoid| self.point(*medoid as usize));
        let medoids: Vec<f64> = medoids.copied().collect();
        own.map(move |point| {
            let (point, mut nearest) = (self.point(point), (f64::INFINITY, 0));
            for (cluster, medoid) in (0..).zip(medoids.chunks_exact(self.dimensions)) {
                let square = square_of_distance(point, medoid);
                if square < nearest.0 {
                    nearest = (square, cluster);
                }
            }
            nearest.1
        })
    }

    /// The best medoids among the `own` points, if all points are in these clusters, of which there
    /// are `k`. Sums are in the order of points, whichever rank computes them.
    pub fn best(&self, own: Range<usize>, clusters: &[u32], k: usize) -> Best {
        let mut members = vec![Vec::new(); k];
        for (point, cluster) in self.coordinates.chunks_exact(self.dimensions).zip(clusters) {
            members[*cluster as usize].extend_from_slice(point);
        }
        let mut best = vec![(f64::INFINITY, u32::MAX); k];
        for number in own {
            let (cluster, point) = (clusters[number] as usize, self.point(number));
            let members = members[cluster].chunks_exact(self.dimensions);
            let sum = members.map(|member| square_of_distance(point, member).sqrt()).sum();
            if sum < best[cluster].0 {
                best[cluster] = (sum, number as u32);
            }
        }
        best
    }
}

fn square_of_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

/// The better medoids of those of some points and those of points behind these.
pub fn better(mut one: Best, other: Best) -> Best {
    for (one, other) in one.iter_mut().zip(other) {
        if other.0 < one.0 {
            *one = other;
        }
    }
    one
}

/// Whether the best ones are other medoids than before, which they replace. (If many points are
/// equal, a cluster may be empty: its medoid stays.)
pub fn replace(medoids: &mut [u32], best: &Best) -> bool {
    let mut has_changed = false;
    for (medoid, (_, best)) in medoids.iter_mut().zip(best) {
        if *best != u32::MAX {
            has_changed |= std::mem::replace(medoid, *best) != *best;
        }
    }
    has_changed
}

/// The sum of the distances of all points to their medoids.
pub fn total(best: &Best) -> f64 {
    best.iter().filter(|(_, medoid)| *medoid != u32::MAX).map(|(sum, _)| sum).sum()
}
