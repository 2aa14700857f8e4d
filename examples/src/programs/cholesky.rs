//! The Cholesky factor of a large matrix, tile by tile, as a graph (right-looking: Golub and Van
//! Loan, Matrix Computations, 2013, §4.2). The products of tiles are `ndarray`'s.
//!
//! What comes out is how exact the factor is: the residual `A x - L (Lᵀ x)` for a random `x`,
//! relative to `A x`. The factor's tiles stay on the PEs.

use crate::{AssignmentChoice, GraphFlags, Job, name_of, random, ranged, run_program};
use clap::ValueEnum;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::{Builder, Node, dag};
use ultramarine::{Error, Result};

/// Compute the Cholesky factor of a symmetric matrix, tile by tile, as a graph.
#[derive(Clone, clap::Args)]
struct Arguments {
    #[command(flatten)]
    matrix: Matrix,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Dag)]
    skeleton: Skeleton,
    /// Which PE computes which node of the graph.
    #[arg(long, value_enum, default_value_t = AssignmentChoice::Placed)]
    assignment: AssignmentChoice,
    /// Drop each tile as soon as all that need it have it: less memory, and more to compute again
    /// after a death.
    #[arg(long)]
    drop_used: bool,
    /// Hold tiles of at most this many MiB on each PE, and compute dropped ones again if need be.
    #[arg(long, value_name = "MIB", value_parser = ranged::<u64>(1..=1 << 30))]
    memory: Option<u64>,
    #[command(flatten)]
    graph: GraphFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// A graph with a node for each version of each tile.
    Dag,
    /// The threads of the root only, by rayon.
    Rayon,
}

/// A random matrix with a diagonal that makes it positive definite.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
struct Matrix {
    /// The number of rows and columns of the matrix: a multiple of --tile.
    #[arg(long, value_name = "N", default_value_t = 3072)]
    #[arg(value_parser = ranged::<usize>(1..=100_000))]
    size: usize,
    /// The number of rows and columns of a tile.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = ranged::<usize>(1..=4096))]
    tile: usize,
    /// The seed of the random matrix.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The entries of a tile, row after row.
type Tile = Vec<f64>;

/// The row and the column of a tile, on or below the diagonal.
type Place = (usize, usize);

impl Matrix {
    /// The number of tiles along each side of the matrix.
    fn tiles(&self) -> usize {
        self.size / self.tile
    }

    fn entry(&self, row: usize, column: usize) -> f64 {
        let (low, high) = (row.min(column) as u64, row.max(column) as u64);
        let entry = unit(self.seed ^ (high << 32) ^ low);
        if row == column { entry + self.size as f64 } else { entry }
    }

    fn tile(&self, (row, column): Place) -> Tile {
        let (top, left) = (row * self.tile, column * self.tile);
        let row = |row| (left..left + self.tile).map(move |column| self.entry(row, column));
        (top..top + self.tile).flat_map(row).collect()
    }

    /// The part of the random `x` that the columns of a tile are multiplied with.
    fn x(&self, tile: usize) -> Vec<f64> {
        let rows = tile * self.tile..(tile + 1) * self.tile;
        rows.map(|row| unit(!self.seed ^ row as u64)).collect()
    }

    /// The part of `A x` in the rows of a tile.
    fn times_x(&self, tile: usize) -> Vec<f64> {
        let x: Vec<f64> = (0..self.tiles()).flat_map(|tile| self.x(tile)).collect();
        let rows = tile * self.tile..(tile + 1) * self.tile;
        rows.map(|row| x.iter().enumerate().map(|(n, x)| self.entry(row, n) * x).sum()).collect()
    }
}

/// A random number from 0 to 1.
fn unit(seed: u64) -> f64 {
    (random(seed)() >> 11) as f64 / (1_u64 << 53) as f64
}

fn view(tile: &[f64]) -> ArrayView2<'_, f64> {
    let size = tile.len().isqrt();
    ArrayView2::from_shape((size, size), tile).unwrap_or_else(|_| unreachable!("it is square"))
}

fn view_mut(tile: &mut [f64]) -> ArrayViewMut2<'_, f64> {
    let size = tile.len().isqrt();
    ArrayViewMut2::from_shape((size, size), tile).unwrap_or_else(|_| unreachable!("it is square"))
}

/// Matrices of at most this size are not divided any further.
const SMALL: usize = 24;

/// Replaces `b` by the solution `x` of `x lᵀ = b`, where `l` is a lower triangle.
fn solve(mut b: ArrayViewMut2<'_, f64>, l: ArrayView2<'_, f64>) {
    let size = l.nrows();
    if size <= SMALL {
        for mut row in b.rows_mut() {
            for column in 0..size {
                let known: f64 = (0..column).map(|other| row[other] * l[(column, other)]).sum();
                row[column] = (row[column] - known) / l[(column, column)];
            }
        }
        return;
    }
    let half = size / 2;
    let (mut left, mut right) = b.split_at(Axis(1), half);
    let (upper, lower) = l.split_at(Axis(0), half);
    let (lower_left, lower_right) = lower.split_at(Axis(1), half);
    solve(left.view_mut(), upper.split_at(Axis(1), half).0);
    general_mat_mul(-1.0, &left, &lower_left.t(), 1.0, &mut right);
    solve(right, lower_right);
}

/// Replaces the lower triangle of `a` by that of `l` with `l lᵀ = a`.
fn factor(mut a: ArrayViewMut2<'_, f64>) {
    let size = a.nrows();
    if size <= SMALL {
        for column in 0..size {
            for row in column..size {
                let known: f64 = (0..column).map(|n| a[(row, n)] * a[(column, n)]).sum();
                let rest = a[(row, column)] - known;
                a[(row, column)] =
                    if row == column { rest.sqrt() } else { rest / a[(column, column)] };
            }
        }
        return;
    }
    let half = size / 2;
    let (upper, lower) = a.split_at(Axis(0), half);
    let mut upper_left = upper.split_at(Axis(1), half).0;
    factor(upper_left.view_mut());
    let (mut left, mut right) = lower.split_at(Axis(1), half);
    solve(left.view_mut(), upper_left.view());
    general_mat_mul(-1.0, &left, &left.t(), 1.0, &mut right);
    factor(right);
}

/// The factor of a tile on the diagonal.
fn factored(tile: &Tile) -> Tile {
    let mut tile = tile.clone();
    factor(view_mut(&mut tile));
    let size = tile.len().isqrt();
    (0..size).for_each(|row| tile[row * size + row + 1..(row + 1) * size].fill(0.0));
    tile
}

/// The factor of a tile below the diagonal, from that of the tile on it.
fn solved(tile: &Tile, diagonal: &Tile) -> Tile {
    let mut tile = tile.clone();
    solve(view_mut(&mut tile), view(diagonal));
    tile
}

/// A tile without the product of two of the factor's.
fn updated(tile: &Tile, a: &Tile, b: &Tile) -> Tile {
    let mut tile = tile.clone();
    general_mat_mul(-1.0, &view(a), &view(b).t(), 1.0, &mut view_mut(&mut tile));
    tile
}

/// The product of a tile with a part of a vector.
fn times(tile: ArrayView2<'_, f64>, x: &[f64]) -> Vec<f64> {
    tile.rows().into_iter().map(|row| row.iter().zip(x).map(|(entry, x)| entry * x).sum()).collect()
}

fn sum(parts: &[&Vec<f64>]) -> Vec<f64> {
    let mut sum = vec![0.0; parts.first().map_or(0, |part| part.len())];
    parts.iter().for_each(|part| sum.iter_mut().zip(*part).for_each(|(sum, part)| *sum += part));
    sum
}

/// The squares of the residual and of `A x` in the rows of a tile.
fn squares(own: &[f64], expected: &[f64]) -> (f64, f64) {
    let square = |sum: f64, number: f64| sum + number * number;
    let residual = own.iter().zip(expected).map(|(own, expected)| own - expected);
    (residual.fold(0.0, square), expected.iter().copied().fold(0.0, square))
}

/// The PE that has all versions of a tile. Tiles go to PEs as on a chessboard of `p` times `q`
/// colours, so that each PE has some of each row and column.
fn owner(pes: u32, (row, column): Place) -> u32 {
    let pes = pes as usize;
    let p = (1..=pes).rev().find(|p| pes.is_multiple_of(*p) && p * p <= pes).unwrap_or(1);
    let q = pes / p;
    ((row % p) * q + column % q) as u32
}

/// A matrix, and which PE computes which node.
type Input = (Matrix, AssignmentChoice);

/// The tiles of the factor, as nodes.
fn factor_nodes(g: &mut Builder, (matrix, assignment): Input) -> Vec<Vec<Node<Tile>>> {
    let (pes, tiles) = (g.pes(), matrix.tiles());
    let place = |g: &mut Builder, node, at| assignment.place(g, node, owner(pes, at));
    let mut nodes: Vec<Vec<Node<Tile>>> = Vec::new();
    for row in 0..tiles {
        let make = |place: &(Matrix, Place)| place.0.tile(place.1);
        let places = (0..=row).map(|column| (row, column));
        nodes.push(places.map(|place| g.source(make, (matrix, place))).collect());
        (0..=row).for_each(|column| place(g, nodes[row][column], (row, column)));
    }
    for k in 0..tiles {
        nodes[k][k] = g.map(|(), tile: &Tile| factored(tile), (), nodes[k][k]);
        place(g, nodes[k][k], (k, k));
        for row in k + 1..tiles {
            nodes[row][k] = g.zip(
                |(), (tile, diagonal): (&Tile, &Tile)| solved(tile, diagonal),
                (),
                (nodes[row][k], nodes[k][k]),
            );
            place(g, nodes[row][k], (row, k));
        }
        for row in k + 1..tiles {
            for column in k + 1..=row {
                nodes[row][column] = g.zip(
                    |(), (tile, a, b): (&Tile, &Tile, &Tile)| updated(tile, a, b),
                    (),
                    (nodes[row][column], nodes[row][k], nodes[column][k]),
                );
                place(g, nodes[row][column], (row, column));
            }
        }
    }
    nodes
}

/// The graph: the factor, and its residual, which is wanted.
fn build(g: &mut Builder, (matrix, assignment): &Input) -> Node<f64> {
    let factor = factor_nodes(g, (*matrix, *assignment));
    let (pes, tiles) = (g.pes(), matrix.tiles());
    let place = |g: &mut Builder, node, at| assignment.place(g, node, owner(pes, at));
    let add = |(): &(), parts: &[&Vec<f64>]| sum(parts);
    let mut transposed = Vec::new();
    for column in 0..tiles {
        let mut parts = Vec::new();
        for row in column..tiles {
            let times = |(matrix, row): &(Matrix, usize), tile: &Tile| {
                times(view(tile).t(), &matrix.x(*row))
            };
            parts.push(g.map(times, (*matrix, row), factor[row][column]));
            place(g, parts[row - column], (row, column));
        }
        transposed.push(g.reduce(add, (), parts));
        place(g, transposed[column], (column, column));
    }
    let mut ends = Vec::new();
    for (row, nodes) in factor.iter().enumerate() {
        let mut parts = Vec::new();
        for (column, (tile, x)) in nodes.iter().zip(&transposed).enumerate() {
            let times = |(): &(), (tile, x): (&Tile, &Vec<f64>)| times(view(tile), x);
            parts.push(g.zip(times, (), (*tile, *x)));
            place(g, parts[column], (row, column));
        }
        let own = g.reduce(add, (), parts);
        place(g, own, (row, row));
        let squares =
            |(matrix, row): &(Matrix, usize), own: &Vec<f64>| squares(own, &matrix.times_x(*row));
        ends.push(g.map(squares, (*matrix, row), own));
        assignment.place(g, ends[row], owner(pes, (row, row)));
    }
    g.reduce(|(), ends: &[&(f64, f64)]| relative(ends.iter().copied().copied()), (), ends)
}

fn relative(squares: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (residual, expected) = squares.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (residual / expected).sqrt()
}

/// The same without a graph: step by step, the tiles of each in parallel.
fn by_rayon(matrix: &Matrix) -> f64 {
    let tiles = matrix.tiles();
    let row = |row| (0..=row).into_par_iter().map(move |column| matrix.tile((row, column)));
    let mut factor: Vec<Vec<Tile>> = (0..tiles).map(|r| row(r).collect()).collect();
    for k in 0..tiles {
        let diagonal = factored(&factor[k][k]);
        factor[k + 1..].par_iter_mut().for_each(|row| row[k] = solved(&row[k], &diagonal));
        factor[k][k] = diagonal;
        let column: Vec<Tile> = factor[k + 1..].iter().map(|row| row[k].clone()).collect();
        factor[k + 1..].par_iter_mut().zip(&column).for_each(|(row, a)| {
            let others = row[k + 1..].par_iter_mut().zip(&column);
            others.for_each(|(tile, b)| *tile = updated(tile, a, b));
        });
    }
    let transposed: Vec<Vec<f64>> = (0..tiles)
        .into_par_iter()
        .map(|column| {
            let part = |row: usize| times(view(&factor[row][column]).t(), &matrix.x(row));
            sum(&(column..tiles).map(part).collect::<Vec<_>>().iter().collect::<Vec<_>>())
        })
        .collect();
    let ends = (0..tiles).into_par_iter().map(|row| {
        let part = |column: usize| times(view(&factor[row][column]), &transposed[column]);
        let own = sum(&(0..=row).map(part).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        squares(&own, &matrix.times_x(row))
    });
    relative(ends.collect::<Vec<_>>().into_iter())
}

/// The program: reads its flags, and runs the job.
pub fn main() -> Result<()> {
    run_program("cholesky", cholesky)
}

async fn cholesky(job: Job, arguments: Arguments) -> Result<()> {
    let Arguments { matrix, skeleton, assignment, drop_used, memory, graph } = arguments;
    let mut graph = graph.begin(&name_of(&skeleton), None)?;
    if !matrix.size.is_multiple_of(matrix.tile) {
        let Matrix { size, tile, .. } = matrix;
        return Err(Error::other(format!("--size {size} is no multiple of --tile {tile}")));
    }
    let start = Instant::now();
    let residual = match skeleton {
        Skeleton::Dag => {
            let mut dag = dag(build, (matrix, assignment)).assignment(assignment.rule());
            if drop_used {
                dag = dag.drop_used();
            }
            if let Some(mib) = memory {
                dag = dag.memory(mib << 20);
            }
            graph.run(&job, dag).await?
        }
        Skeleton::Rayon => {
            job.cx.spawn_fn(Distance::ZERO, |matrix: Matrix| by_rayon(&matrix), matrix).await?
        }
    };
    let report = job.report(name_of(&skeleton), start, residual).await?;
    let gigaflops = (matrix.size as f64).powi(3) / 3e9 / report.elapsed().as_secs_f64();
    report.with("gigaflops", gigaflops).print()?;
    graph.finish()
}
