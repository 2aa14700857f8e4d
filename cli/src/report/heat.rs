//! How busy each PE was, over time. However long the job took, it is cut into some hundred pieces.

use std::collections::BTreeMap;

/// The most pieces that a job is cut into.
const PIECES_MAX: u64 = 400;

/// The shortest piece, in nanoseconds.
const PIECE_NS_MIN: u64 = 1_000;

/// What the PEs have done in each piece of time.
pub(super) struct Heat {
    piece_ns: u64,
    /// The first piece of the job, and the one after its last. They are numbered from 1970 on.
    range: Option<(u64, u64)>,
    rows: BTreeMap<u32, Row>,
}

/// A PE's pieces.
#[derive(Default)]
struct Row {
    first: u64,
    busy_ns: Vec<f64>,
}

impl Default for Heat {
    fn default() -> Self {
        Heat { piece_ns: PIECE_NS_MIN, range: None, rows: BTreeMap::new() }
    }
}

impl Heat {
    /// A PE was busy for this long, at some times between these, which are [covered](Self::cover).
    pub(super) fn add(&mut self, pe: u32, (begin, end): (u64, u64), busy_ns: u64) {
        let row = self.rows.entry(pe).or_default();
        if end <= begin {
            return;
        }
        let share = busy_ns as f64 / (end - begin) as f64;
        for piece in begin / self.piece_ns..end.div_ceil(self.piece_ns) {
            let from = begin.max(piece * self.piece_ns);
            let until = end.min((piece + 1).saturating_mul(self.piece_ns));
            *row.at(piece) += share * (until - from) as f64;
        }
    }

    /// Has pieces for all of this time.
    pub(super) fn cover(&mut self, (begin, end): (u64, u64)) {
        let pieces = (begin / self.piece_ns, end.div_ceil(self.piece_ns));
        let (first, last) = self.range.unwrap_or(pieces);
        let (mut first, mut last) = (first.min(pieces.0), last.max(pieces.1));
        while last - first > PIECES_MAX {
            self.piece_ns *= 2;
            (first, last) = (first / 2, last.div_ceil(2));
            self.rows.values_mut().for_each(Row::join_pairs);
        }
        self.range = Some((first, last));
    }

    /// The piece that a moment is in, counted from the first.
    pub(super) fn piece_of(&self, at: u64) -> usize {
        let first = self.range.map_or(0, |(first, _)| first);
        (at / self.piece_ns).saturating_sub(first) as usize
    }

    /// How long a piece is.
    pub(super) fn piece_ns(&self) -> u64 {
        self.piece_ns
    }

    /// The share of the time in which the workers of each of these PEs were busy, piece by piece.
    /// With each PE goes the number of its workers.
    pub(super) fn shares(&self, pes: &BTreeMap<u32, u64>) -> Vec<Vec<f64>> {
        let (first, last) = self.range.unwrap_or_default();
        let row = |(pe, workers): (&u32, &u64)| {
            let whole = self.piece_ns as f64 * *workers as f64;
            let row = self.rows.get(pe);
            let busy_ns = |piece| row.map_or(0.0, |row| row.get(piece));
            (first..last).map(|piece| (busy_ns(piece) / whole).min(1.0)).collect()
        };
        pes.iter().map(row).collect()
    }
}

impl Row {
    fn at(&mut self, piece: u64) -> &mut f64 {
        if self.busy_ns.is_empty() {
            self.first = piece;
        }
        if let Some(missing) = self.first.checked_sub(piece) {
            self.busy_ns.splice(0..0, (0..missing).map(|_| 0.0));
            self.first = piece;
        }
        let at = (piece - self.first) as usize;
        if at >= self.busy_ns.len() {
            self.busy_ns.resize(at + 1, 0.0);
        }
        &mut self.busy_ns[at]
    }

    fn get(&self, piece: u64) -> f64 {
        let at = piece.checked_sub(self.first).and_then(|at| self.busy_ns.get(at as usize));
        at.copied().unwrap_or_default()
    }

    /// Each two pieces become one.
    fn join_pairs(&mut self) {
        let mut joined = Row::default();
        for (piece, busy_ns) in (self.first..).zip(&self.busy_ns) {
            *joined.at(piece / 2) += busy_ns;
        }
        *self = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_with_the_job_and_keep_their_sums() {
        let mut heat = Heat::default();
        let slices = [(0, 3_000_000, 5_000_000), (1, 1_000_000_000, 1_500_000_000), (0, 10, 20)];
        for (pe, begin, end) in slices {
            heat.cover((begin, end));
            heat.add(pe, (begin, end), end - begin);
        }
        let shares = heat.shares(&BTreeMap::from([(0, 1), (1, 1)]));
        let sums: Vec<f64> = shares
            .iter()
            .map(|row| row.iter().sum::<f64>() * heat.piece_ns() as f64 / 1e9)
            .collect();
        assert!((sums[0] - 0.002).abs() < 1e-6 && (sums[1] - 0.5).abs() < 1e-6, "{sums:?}");
        assert!(shares.iter().all(|row| row.len() as u64 <= PIECES_MAX));
    }

    #[test]
    fn two_workers_that_are_busy_are_a_share_of_one() {
        let mut heat = Heat::default();
        heat.cover((0, PIECE_NS_MIN));
        for _ in 0..2 {
            heat.add(7, (0, PIECE_NS_MIN), PIECE_NS_MIN);
        }
        assert_eq!(heat.shares(&BTreeMap::from([(7, 2)])), [[1.0]]);
    }

    #[test]
    fn a_pe_that_did_nothing_has_a_row() {
        let mut heat = Heat::default();
        heat.cover((50, 50));
        heat.add(3, (50, 50), 0);
        assert_eq!(heat.shares(&BTreeMap::from([(3, 1), (4, 1)])), [[0.0], [0.0]]);
        assert!(Heat::default().shares(&BTreeMap::from([(0, 1)]))[0].is_empty());
    }
}
