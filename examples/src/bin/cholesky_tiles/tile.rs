//! The computation on tiles, by plain loops that the compiler vectorises.

use ultramarine_examples::random;

/// The entries of a square part of a matrix, whose size is a multiple of four. They are stored in
/// panels of four rows, column after column.
pub(crate) type Tile = Vec<f64>;

/// A column of a panel: four rows.
type Four = [f64; 4];

/// The tile of this size with the entries `entry(row, column)`.
pub(crate) fn tile(size: usize, entry: impl Fn(usize, usize) -> f64) -> Tile {
    let fours = (0..size / 4).flat_map(|panel| (0..size).map(move |column| (4 * panel, column)));
    fours.flat_map(|(row, column)| [0, 1, 2, 3].map(|n| entry(row + n, column))).collect()
}

/// The panels of a tile, each as its columns.
fn panels(tile: &[f64]) -> impl Iterator<Item = &[Four]> {
    tile.as_chunks().0.chunks_exact(tile.len().isqrt())
}

fn panels_mut(tile: &mut [f64]) -> impl Iterator<Item = &mut [Four]> {
    let size = tile.len().isqrt();
    tile.as_chunks_mut().0.chunks_exact_mut(size)
}

/// Replaces the tile by `tile - a b^T`. If `a` is `b`, only entries on and below the diagonal
/// count.
pub(crate) fn update(tile: &mut [f64], a: &[f64], b: &[f64]) {
    let is_symmetric = std::ptr::eq(a, b);
    for (row, (own, a)) in panels_mut(tile).zip(panels(a)).enumerate() {
        let columns = if is_symmetric { row + 1 } else { own.len() / 4 };
        for (own, b) in own.chunks_exact_mut(4).zip(panels(b)).take(columns) {
            subtract(own, product(a, b));
        }
    }
}

/// Replaces the tile by the solution `x` of `x l^T = tile`, where `l` is a lower triangle.
pub(crate) fn solve(tile: &mut [f64], l: &[f64]) {
    panels_mut(tile).for_each(|own| solve_panel(own, panels(l)));
}

/// Replaces the tile by the lower triangle `l` with `l l^T = tile`.
pub(crate) fn factor(tile: &mut [f64]) {
    let size = tile.len().isqrt();
    for start in (0..size).step_by(4) {
        let (above, own) = tile.as_chunks_mut().0.split_at_mut(start / 4 * size);
        let own = &mut own[..size];
        solve_panel(own, above.chunks_exact(size));
        let (done, rest) = own.split_at_mut(start);
        subtract(&mut rest[..4], product(done, done));
        for column in 0..4 {
            for other in 0..column {
                let other = rest[other];
                (0..4).for_each(|n| rest[column][n] -= other[n] * other[column]);
            }
            let root = rest[column][column].sqrt();
            rest[column] = rest[column].map(|entry| entry / root);
            rest[column][..column].fill(0.0);
        }
        rest[4..].fill([0.0; 4]);
    }
}

/// The product of the tile with `x`.
pub(crate) fn times(tile: &[f64], x: &[f64]) -> Vec<f64> {
    let add = |sum: Four, (four, x): (&Four, &f64)| [0, 1, 2, 3].map(|n| sum[n] + four[n] * x);
    panels(tile).flat_map(|panel| panel.iter().zip(x).fold([0.0; 4], add)).collect()
}

/// The product of the transposed tile with `x`.
pub(crate) fn transposed_times(tile: &[f64], x: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; x.len()];
    for (panel, x) in panels(tile).zip(x.chunks_exact(4)) {
        for (sum, four) in sums.iter_mut().zip(panel) {
            *sum += four.iter().zip(x).map(|(entry, x)| entry * x).sum::<f64>();
        }
    }
    sums
}

/// A digest of the entries.
pub(crate) fn digest(tile: &[f64]) -> u64 {
    let digests = (0..).zip(tile).map(|(n, entry)| random(n ^ entry.to_bits())());
    digests.fold(0, u64::wrapping_add)
}

/// `a b^T` over the columns that both have; by column.
fn product(a: &[Four], b: &[Four]) -> [Four; 4] {
    let mut sums = [[0.0; 4]; 4];
    for (a, b) in a.iter().zip(b) {
        for (sums, b) in sums.iter_mut().zip(b) {
            for (sum, a) in sums.iter_mut().zip(a) {
                *sum += a * b;
            }
        }
    }
    sums
}

fn subtract(from: &mut [Four], what: [Four; 4]) {
    for (from, what) in from.as_flattened_mut().iter_mut().zip(what.as_flattened()) {
        *from -= what;
    }
}

/// Replaces the first columns of a panel by the solution `x` of `x l^T = panel`, where `l` is a
/// lower triangle with these panels.
fn solve_panel<'a>(rows: &mut [Four], l: impl Iterator<Item = &'a [Four]>) {
    for (panel, l) in l.enumerate() {
        let (done, rest) = rows.split_at_mut(4 * panel);
        subtract(&mut rest[..4], product(done, l));
        let l = &l[4 * panel..];
        for column in 0..4 {
            for other in 0..column {
                let (other, factor) = (rest[other], l[other][column]);
                (0..4).for_each(|n| rest[column][n] -= other[n] * factor);
            }
            rest[column] = rest[column].map(|entry| entry / l[column][column]);
        }
    }
}
