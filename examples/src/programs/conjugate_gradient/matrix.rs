//! Symmetric sparse matrices, and the rows of one rank.

use crate::{own_range, ranged};
use serde::{Deserialize, Serialize};
use sprs::io::read_matrix_market;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use ultramarine::{Error, Result};

/// What is solved, and how far.
#[derive(Clone, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    source: Source,
    /// The residual to reach: ‖b − A·x‖ / ‖b‖.
    #[arg(long, value_name = "R", default_value_t = 1e-8)]
    tolerance: f64,
    /// The most iterations.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = ranged::<u64>(1..=1_000_000_000))]
    iterations: u64,
}

/// Which matrix.
#[derive(Clone, clap::Args)]
#[group(required = false, multiple = false)]
struct Source {
    /// A symmetric matrix, as a Matrix Market file.
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// The five-point Laplacian of a square grid of N × N points.
    #[arg(long, value_name = "N", default_value_t = 300)]
    #[arg(value_parser = ranged::<u32>(1..=20_000))]
    laplacian: u32,
}

/// A·x = b, where b = A·1.
#[derive(Serialize, Deserialize)]
pub struct Problem {
    /// A.
    pub matrix: Matrix,
    /// The residual to reach.
    pub tolerance: f64,
    /// The most iterations.
    pub iterations: u64,
}

/// A symmetric matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Matrix {
    /// The five-point Laplacian of a square grid with sides of this many points: made where it is
    /// needed.
    Laplacian(u32),
    /// All entries, row after row.
    Stored {
        /// Where each row ends.
        ends: Vec<usize>,
        /// The column of each entry.
        columns: Vec<u32>,
        /// The entries.
        values: Vec<f64>,
    },
}

impl Flags {
    /// Reads the matrix.
    ///
    /// # Errors
    ///
    /// The tolerance is no positive number; or the file cannot be read, or its matrix is not square
    /// or not symmetric.
    pub fn problem(&self) -> Result<Problem> {
        let Flags { tolerance, iterations, .. } = *self;
        if tolerance.is_nan() || tolerance <= 0.0 {
            return Err(Error::other(format!("--tolerance {tolerance}: more than 0 is expected")));
        }
        Ok(Problem { matrix: self.source.read()?, tolerance, iterations })
    }
}

impl Source {
    fn read(&self) -> Result<Matrix> {
        let Some(path) = &self.matrix else { return Ok(Matrix::Laplacian(self.laplacian)) };
        let wrong = |what: String| Error::other(format!("{}: {what}", path.display()));
        let triplets = read_matrix_market::<f64, usize, _>(path);
        let matrix = triplets.map_err(|error| wrong(error.to_string()))?.to_csr::<usize>();
        let (rows, columns) = matrix.shape();
        if rows != columns || rows == 0 {
            return Err(wrong(format!("the matrix has {rows} rows and {columns} columns")));
        }
        for (value, (row, column)) in &matrix {
            if matrix.get(column, row) != Some(value) {
                let what = format!("not symmetric at row {}, column {}", row + 1, column + 1);
                return Err(wrong(what));
            }
        }
        let ends = matrix.indptr().to_owned().raw_storage()[1..].to_vec();
        let columns = matrix.indices().iter().map(|column| *column as u32).collect();
        Ok(Matrix::Stored { ends, columns, values: matrix.data().to_vec() })
    }
}

impl Matrix {
    /// The number of rows.
    pub fn size(&self) -> usize {
        match self {
            Matrix::Laplacian(side) => (*side as usize).pow(2),
            Matrix::Stored { ends, .. } => ends.len(),
        }
    }

    /// Calls `each` with the column and the value of each entry of a row, in order of columns.
    fn for_each(&self, row: usize, mut each: impl FnMut(usize, f64)) {
        match self {
            Matrix::Laplacian(side) => {
                let side = *side as usize;
                let [up, left] = [row >= side, !row.is_multiple_of(side)];
                let [right, down] = [row % side + 1 < side, row + side < side * side];
                up.then(|| each(row - side, -1.0));
                left.then(|| each(row - 1, -1.0));
                each(row, 4.0);
                right.then(|| each(row + 1, -1.0));
                down.then(|| each(row + side, -1.0));
            }
            Matrix::Stored { ends, columns, values } => {
                let begin = row.checked_sub(1).map_or(0, |row| ends[row]);
                let entries = columns[begin..ends[row]].iter().zip(&values[begin..ends[row]]);
                entries.for_each(|(column, value)| each(*column as usize, *value));
            }
        }
    }
}

/// The rows of a rank, and what it exchanges with others before it multiplies them.
#[derive(Default)]
pub struct Rows {
    ends: Vec<usize>,
    /// Where the factor of each entry stands: behind the rank's own come those of others.
    places: Vec<u32>,
    values: Vec<f64>,
    /// The other ranks, with the places of what they send, and the own places of what they get.
    pub neighbours: Vec<(u32, Range<usize>, Vec<u32>)>,
    /// The sums of the rows: the product with a vector of ones.
    pub sums: Vec<f64>,
}

impl Rows {
    /// Those of this rank.
    pub fn of(matrix: &Matrix, rank: u32, ranks: u32) -> Self {
        let size = matrix.size();
        let own = own_range(size, rank, ranks);
        let owner = |row: usize| {
            let near = (row as u128 * u128::from(ranks) / size as u128) as u32;
            let is_owner = |rank: &u32| own_range(size, *rank, ranks).contains(&row);
            (near.saturating_sub(1)..ranks).find(is_owner).unwrap_or(near)
        };
        // By owner: what it has of which this rank needs something, and which own rows need it. The
        // matrix is symmetric, so the owner needs just those.
        let mut needed: BTreeMap<u32, (BTreeMap<usize, u32>, Vec<u32>)> = BTreeMap::new();
        for row in own.clone() {
            matrix.for_each(row, |column, _| {
                if !own.contains(&column) {
                    let (columns, rows) = needed.entry(owner(column)).or_default();
                    columns.insert(column, 0);
                    let place = (row - own.start) as u32;
                    if rows.last() != Some(&place) {
                        rows.push(place);
                    }
                }
            });
        }
        let mut place = own.len();
        let mut rows = Rows::default();
        for (rank, (columns, sent)) in &mut needed {
            let begin = place;
            for at in columns.values_mut() {
                *at = place as u32;
                place += 1;
            }
            rows.neighbours.push((*rank, begin..place, std::mem::take(sent)));
        }
        for row in own.clone() {
            let mut sum = 0.0;
            matrix.for_each(row, |column, value| {
                sum += value;
                rows.values.push(value);
                rows.places.push(match needed.get(&owner(column)) {
                    _ if own.contains(&column) => (column - own.start) as u32,
                    Some((columns, _)) => columns[&column],
                    None => unreachable!("all that is needed has an owner"),
                });
            });
            rows.ends.push(rows.values.len());
            rows.sums.push(sum);
        }
        rows
    }

    /// The number of factors: the rank's own, and those of others.
    pub fn width(&self) -> usize {
        self.neighbours.last().map_or(self.ends.len(), |(_, places, _)| places.end)
    }

    /// The product with a vector of which this rank has its own part and what others have sent.
    pub fn multiply(&self, vector: &[f64], product: &mut [f64]) {
        let mut begin = 0;
        for (&end, product) in self.ends.iter().zip(product) {
            let row = std::mem::replace(&mut begin, end)..end;
            let entries = self.values[row.clone()].iter().zip(&self.places[row]);
            *product = entries.map(|(value, place)| value * vector[*place as usize]).sum();
        }
    }
}

/// The sum of the products of two vectors.
pub fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
