//! The Cholesky factor of a large matrix. Its tiles stay on the PEs that compute them, and are sent
//! only to tasks that need them.
//!
//! All tasks of the factorisation (right-looking: Golub and Van Loan, Matrix Computations, 2013,
//! §4.2) are spawned at once. A task gets handles of tiles that other tasks have yet to compute,
//! and starts when they have arrived. If a PE dies, its tiles are lost, and with them all tiles
//! that depend on them. The root spawns the tasks of lost tiles again, which use the tiles that are
//! left.
//!
//! [`tile`] has the computation.

mod tile;

use clap::builder::RangedI64ValueParser;
use clap::{Parser, ValueEnum};
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tile::Tile;
use ultramarine::prelude::*;
use ultramarine::{Error, Result};
use ultramarine_examples::{JobFlags, Report, name_of, random};

/// Compute the Cholesky factor of a symmetric matrix, tile by tile.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    matrix: Matrix,
    /// How the work is spread over the PEs.
    #[arg(long, value_enum, default_value_t = Skeleton::Tiles)]
    skeleton: Skeleton,
    #[command(flatten)]
    job: JobFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Skeleton {
    /// Each tile has a PE, which computes all of its versions.
    Tiles,
    /// The threads of the root only, by rayon.
    Rayon,
    /// One thread of the root, tile after tile.
    Sequential,
}

/// A random matrix with a diagonal that makes it positive definite.
#[derive(Clone, Copy, clap::Args, Serialize, Deserialize)]
struct Matrix {
    /// The number of rows and columns of the matrix: a multiple of --tile.
    #[arg(long, value_name = "N", default_value_t = 3072, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<usize>::new().range(4..=30_000))]
    size: usize,
    /// The number of rows and columns of a tile: a multiple of 4.
    #[arg(long, value_name = "N", default_value_t = 256, allow_negative_numbers = true)]
    #[arg(value_parser = RangedI64ValueParser::<usize>::new().range(4..=4096))]
    tile: usize,
    /// The seed of the random matrix.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The column and the row of a tile, on or below the diagonal.
type TileIndex = (usize, usize);

impl Matrix {
    /// The number of tiles along each side of the matrix.
    fn tiles(&self) -> usize {
        self.size / self.tile
    }

    fn all(&self) -> impl Iterator<Item = TileIndex> + use<> {
        let tiles = self.tiles();
        (0..tiles).flat_map(move |column| (column..tiles).map(move |row| (column, row)))
    }

    fn entry(&self, row: usize, column: usize) -> f64 {
        let (low, high) = (row.min(column) as u64, row.max(column) as u64);
        let bits = random(self.seed ^ (high << 32) ^ low)() >> 11;
        let entry = bits as f64 / (1_u64 << 53) as f64;
        if row == column { entry + self.size as f64 } else { entry }
    }

    fn tile(&self, (column, row): TileIndex) -> Tile {
        let (left, top) = (column * self.tile, row * self.tile);
        tile::tile(self.tile, |row, column| self.entry(top + row, left + column))
    }

    /// The product with `x`.
    fn times(&self, x: &[f64]) -> Vec<f64> {
        let row = |row| x.iter().enumerate().map(|(n, x)| self.entry(row, n) * x).sum();
        (0..self.size).map(row).collect()
    }
}

/// Fetches the tiles of these handles, all at once; `None` if one of them is lost.
async fn fetch<const N: usize>(handles: [&Remote<Tile>; N]) -> Option<[Arc<Tile>; N]> {
    let tiles: [Arc<Tile>; N] =
        try_join_all(handles.map(Remote::get)).await.ok()?.try_into().ok()?;
    tiles.iter().all(|tile| !tile.is_empty()).then_some(tiles)
}

/// Takes the tile of this handle out, for the one task that changes it; `None` if it is lost.
async fn take(tile: Remote<Tile>) -> Option<Tile> {
    let tile = tile.take().await.ok()?;
    (!tile.is_empty()).then(|| Arc::unwrap_or_clone(tile))
}

/// The task that makes a tile at first. The tasks below return an empty tile if one that they need
/// is lost.
async fn make(_: Context, (matrix, at): (Matrix, TileIndex)) -> Tile {
    matrix.tile(at)
}

async fn update(_: Context, (tile, a, b): (Remote<Tile>, Remote<Tile>, Remote<Tile>)) -> Tile {
    let Some([a, b]) = fetch([&a, &b]).await else { return Tile::new() };
    let Some(mut tile) = take(tile).await else { return Tile::new() };
    tile::update(&mut tile, &a, &b);
    tile
}

/// [`update`] with lower priority: when its arguments have arrived, the work waits in the pool,
/// after all tasks whose results are needed sooner.
async fn update_later(cx: Context, with: (Remote<Tile>, Remote<Tile>, Remote<Tile>)) -> Tile {
    fetch([&with.0, &with.1, &with.2]).await;
    cx.spawn(Distance::ZERO, update, with).await.unwrap_or_default()
}

async fn solve(_: Context, (tile, diagonal): (Remote<Tile>, Remote<Tile>)) -> Tile {
    let Some([diagonal]) = fetch([&diagonal]).await else { return Tile::new() };
    let Some(mut tile) = take(tile).await else { return Tile::new() };
    tile::solve(&mut tile, &diagonal);
    tile
}

async fn factor(_: Context, tile: Remote<Tile>) -> Tile {
    let Some(mut tile) = take(tile).await else { return Tile::new() };
    tile::factor(&mut tile);
    tile
}

/// Examines a tile, unless it is lost: its digest, and the product of the tile or of the transposed
/// tile with a vector.
async fn examine(
    _: Context,
    (tile, x, is_transposed): (Remote<Tile>, Vec<f64>, bool),
) -> Option<(u64, Vec<f64>)> {
    let [tile] = fetch([&tile]).await?;
    // The digest is needed only once.
    let digest = if is_transposed { tile::digest(&tile) } else { 0 };
    let product = if is_transposed { tile::transposed_times } else { tile::times };
    Some((digest, product(&tile, &x)))
}

/// The factor of a matrix, as far as it is computed.
struct Factor<'a> {
    cx: &'a Context,
    matrix: Matrix,
    /// The PEs that are alive.
    pes: Vec<Pe>,
    tiles: BTreeMap<TileIndex, Remote<Tile>>,
}

/// The tiles that are lost.
type LostTiles = Vec<TileIndex>;

impl Factor<'_> {
    /// The PE that computes all versions of a tile.
    fn place(&self, (column, row): TileIndex) -> Pe {
        self.pes[(column + row) % self.pes.len()]
    }

    /// Spawns tasks for all missing tiles, and does not wait for them.
    fn spawn_missing(&mut self) {
        let (cx, matrix) = (self.cx, self.matrix);
        let missing = matrix.all().filter(|at| !self.tiles.contains_key(at));
        let made = missing.map(|at| (at, cx.remote(self.place(at), make, (matrix, at))));
        let mut unfinished: BTreeMap<_, _> = made.collect();
        for column in 0..matrix.tiles() {
            let diagonal = (column, column);
            if let Some(tile) = unfinished.remove(&diagonal) {
                let tile = cx.remote(self.place(diagonal), factor, tile);
                self.tiles.insert(diagonal, tile);
            }
            for at in (column + 1..matrix.tiles()).map(|row| (column, row)) {
                if let Some(tile) = unfinished.remove(&at) {
                    let with = (tile, self.tiles[&diagonal].clone());
                    self.tiles.insert(at, cx.remote(self.place(at), solve, with));
                }
            }
            // In reverse, because the task that became ready last is taken first.
            for (at, tile) in unfinished.iter_mut().rev() {
                let [a, b] = [at.1, at.0].map(|row| self.tiles[&(column, row)].clone());
                let (place, with) = (self.place(*at), (tile.clone(), a, b));
                *tile = if at.0 == column + 1 {
                    cx.remote(place, update, with)
                } else {
                    cx.remote(place, update_later, with)
                };
            }
        }
    }

    /// The product of the factor, or of the transposed factor, with `x`; and the digest of the
    /// factor.
    async fn examine(&self, x: &[f64], is_transposed: bool) -> Result<(Vec<f64>, u64), LostTiles> {
        let part = |tile: usize| tile * self.matrix.tile..(tile + 1) * self.matrix.tile;
        let tasks = self.tiles.iter().map(|(at, tile)| {
            let (from, to) = if is_transposed { (at.1, at.0) } else { *at };
            let with = (tile.clone(), x[part(from)].to_vec(), is_transposed);
            (*at, to, self.cx.spawn_at(self.place(*at), examine, with))
        });
        let (mut product, mut all, mut lost) = (vec![0.0; x.len()], 0_u64, LostTiles::new());
        for (at, to, task) in tasks.collect::<Vec<_>>() {
            match task.await {
                Ok(Some((digest, partial))) => {
                    all = all.wrapping_add(numbered(at, digest));
                    product[part(to)].iter_mut().zip(partial).for_each(|(sum, new)| *sum += new);
                }
                _ => lost.push(at),
            }
        }
        if lost.is_empty() { Ok((product, all)) } else { Err(lost) }
    }

    /// The digest of the factor, and the relative error of its product with the transposed factor,
    /// compared with the matrix, which maps `x` to `y`.
    async fn check(&self, x: &[f64], y: &[f64]) -> Result<(u64, f64), LostTiles> {
        let (product, digest) = self.examine(x, true).await?;
        let (product, _) = self.examine(&product, false).await?;
        let error = product.iter().zip(y).map(|(product, y)| (product - y).abs());
        let largest = y.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
        Ok((digest, error.fold(0.0, f64::max) / largest))
    }
}

/// The part that a tile contributes to the digest of the factor.
fn numbered((column, row): TileIndex, digest: u64) -> u64 {
    random(digest ^ (column << 32 | row) as u64)()
}

/// Computes the factor on this PE alone; returns its digest.
fn factor_here(matrix: Matrix, is_parallel: bool) -> u64 {
    let mut tiles: Vec<(TileIndex, Tile)> = matrix.all().map(|at| (at, matrix.tile(at))).collect();
    let mut digest = 0;
    while !tiles.is_empty() {
        let (column, rows) = tiles[0].0;
        let mut done: Vec<_> = tiles.drain(..matrix.tiles() - column).collect();
        let (diagonal, below) = done.split_first_mut().expect("each column has one");
        tile::factor(&mut diagonal.1);
        each(is_parallel, below, |(_, tile)| tile::solve(tile, &diagonal.1));
        each(is_parallel, &mut tiles, |((column, row), tile)| {
            tile::update(tile, &done[*row - rows].1, &done[*column - rows].1);
        });
        let digests = done.iter().map(|(at, tile)| numbered(*at, tile::digest(tile)));
        digest = digests.fold(digest, u64::wrapping_add);
    }
    digest
}

fn each<T: Send>(is_parallel: bool, items: &mut [T], act: impl Fn(&mut T) + Send + Sync) {
    if is_parallel { items.par_iter_mut().for_each(act) } else { items.iter_mut().for_each(act) }
}

/// The largest relative error by rounding.
const RESIDUAL_MAX: f64 = 1e-10;

/// After one PE knows of a death, all others know it within this time.
const HEARS_WITHIN: Duration = Duration::from_secs(1);

/// Computes the factor on all PEs; returns its digest, its error, and the number of rounds.
async fn factor_by_all(
    cx: &Context,
    matrix: Matrix,
    (x, y): (&[f64], &[f64]),
) -> Result<(u64, f64, u32)> {
    let mut factor = Factor { cx, matrix, pes: Vec::new(), tiles: BTreeMap::new() };
    // A death costs at most two rounds; the second computes all tiles again.
    for rounds in 1..=2 * cx.pes() {
        let dead = cx.dead();
        factor.pes = (0..cx.pes()).map(Pe::new).filter(|pe| !cx.is_dead(*pe)).collect();
        factor.spawn_missing();
        match factor.check(x, y).await {
            Ok((digest, residual)) if residual <= RESIDUAL_MAX => {
                return Ok((digest, residual, rounds));
            }
            Ok((_, residual)) => {
                return Err(Error::other(format!("the factor is wrong by {residual:e}")));
            }
            Err(_) if !cx.is_supervised() => {
                let reason = "tiles were lost with a PE that died";
                return Err(Error::other(format!("{reason}: --supervised has them made again")));
            }
            Err(lost) => {
                lost.iter().for_each(|at| drop(factor.tiles.remove(at)));
                // Other PEs may know of a death before this one.
                let next = cx.timeout(HEARS_WITHIN, cx.deaths().skip(dead as usize).next()).await;
                if next.is_err() {
                    // No PE has died now: a tile is empty because of an earlier death. Begin anew.
                    factor.tiles.clear();
                }
            }
        }
    }
    Err(Error::other("tiles cannot be made, though PEs are left"))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    arguments.job.clone().run(arguments, cholesky_tiles)
}

async fn cholesky_tiles(cx: Context, arguments: Arguments) -> Result<()> {
    let Arguments { matrix, skeleton, job } = arguments;
    let Matrix { size, tile, .. } = matrix;
    if tile % 4 != 0 || size % tile != 0 {
        let reason = "--size must be a multiple of --tile, and that of 4";
        return Err(Error::other(format!("{reason}, not {size} and {tile}")));
    }
    let cx = job.begin(cx)?;
    // A vector and its product with the matrix, to check the factor.
    let x: Vec<f64> = (0..size).map(|n| (n % 7) as f64 - 3.0).collect();
    let y = matrix.times(&x);
    let start = Instant::now();
    let (digest, residual, rounds) = match skeleton {
        Skeleton::Tiles => {
            let work = factor_by_all(&cx, matrix, (&x, &y));
            let (digest, residual, rounds) = job.progress(&cx, None, work).await?;
            (digest, Some(residual), rounds)
        }
        Skeleton::Rayon => {
            let factor = |matrix| factor_here(matrix, true);
            (cx.spawn_fn(Distance::ZERO, factor, matrix).await?, None, 1)
        }
        Skeleton::Sequential => (factor_here(matrix, false), None, 1),
    };
    let result = digest.cast_signed();
    let report = Report::gather(&cx, "cholesky_tiles", (name_of(&skeleton), &job), start, result);
    report.await?.with("residual", residual).with("rounds", rounds).print(&job)
}
