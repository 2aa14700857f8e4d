//! The clocks of PEs, brought to that of one.
//!
//! PEs compare their clocks along a tree while the job runs. Between two that have, the difference
//! is taken for a line: an offset at one time, and a drift (least squares, where a comparison
//! counts the more the quicker it was, and a small drift is likelier than a large one).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use ultramarine_trace::packet::TracePacket;
use ultramarine_trace::{Compared, Reader};

/// Clocks of computers drift by about this factor at most.
const DRIFT: f64 = 1e-4;

/// What has been compared, by the two PEs.
#[derive(Default)]
pub(crate) struct Comparisons(BTreeMap<(u32, u32), Vec<Compared>>);

impl Comparisons {
    pub(super) fn add(&mut self, compared: Compared) {
        self.0.entry((compared.pe, compared.other)).or_default().push(compared);
    }

    /// The clocks of all PEs that can be brought to that of the first.
    pub(super) fn clocks(&self) -> Clocks {
        let mut edges: BTreeMap<u32, Vec<(u32, Line)>> = BTreeMap::new();
        for ((ours, theirs), compared) in &self.0 {
            let line = Line::through(compared);
            edges.entry(*ours).or_default().push((*theirs, line));
            edges.entry(*theirs).or_default().push((*ours, line.reversed()));
        }
        let mut clocks = Clocks::default();
        let Some(first) = edges.keys().next().copied() else { return clocks };
        clocks.0.insert(first, (Vec::new(), 0));
        let mut next = VecDeque::from([first]);
        while let Some(pe) = next.pop_front() {
            let (way, error_ns) = clocks.0[&pe].clone();
            for (other, line) in edges.get(&pe).into_iter().flatten() {
                if !clocks.0.contains_key(other) {
                    let way = std::iter::once(*line).chain(way.iter().copied()).collect();
                    clocks.0.insert(*other, (way, error_ns.saturating_add(line.error_ns)));
                    next.push_back(*other);
                }
            }
        }
        clocks
    }
}

/// How one clock goes by another.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// What the one said, and the other at the same time.
    ours_ns: u64,
    theirs_ns: u64,
    /// How much faster the other goes, as a factor less one.
    drift: f64,
    error_ns: u64,
}

impl Line {
    /// There is at least one comparison.
    fn through(compared: &[Compared]) -> Line {
        let mut errors: Vec<u64> = compared.iter().map(|it| it.error_ns).collect();
        errors.sort_unstable();
        // Two points make a line.
        let (Some(base), Some(error_ns)) = (compared.first(), errors.iter().take(2).max()) else {
            return Line { ours_ns: 0, theirs_ns: 0, drift: 0.0, error_ns: u64::MAX };
        };
        // From the first of them on: numbers since 1970 are too large for the arithmetic.
        let from = |ns: u64, base: u64| ns.wrapping_sub(base).cast_signed() as f64;
        let points: Vec<_> = compared
            .iter()
            .map(|it| {
                let ours = from(it.ours_ns, base.ours_ns);
                let ahead = from(it.theirs_ns, base.theirs_ns) - ours;
                let error = it.error_ns.max(1) as f64;
                (ours, ahead, 1.0 / (error * error))
            })
            .collect();
        let all: f64 = points.iter().map(|(_, _, weight)| weight).sum();
        let mean_ours = points.iter().map(|(ours, _, weight)| ours * weight).sum::<f64>() / all;
        let mean_ahead = points.iter().map(|(_, ahead, weight)| ahead * weight).sum::<f64>() / all;
        let spread = |(ours, _, weight): &(f64, f64, f64)| weight * (ours - mean_ours).powi(2);
        let spread: f64 = points.iter().map(spread).sum();
        let rise = |(ours, ahead, weight): &(f64, f64, f64)| {
            weight * (ours - mean_ours) * (ahead - mean_ahead)
        };
        let rise: f64 = points.iter().map(rise).sum();
        let drift = rise / (spread + 1.0 / (DRIFT * DRIFT));
        let ahead = mean_ahead - drift * mean_ours;
        Line {
            ours_ns: base.ours_ns,
            theirs_ns: base.theirs_ns.saturating_add_signed(ahead.round() as i64),
            drift,
            error_ns: *error_ns,
        }
    }

    /// The same by the other clock.
    fn reversed(self) -> Line {
        Line {
            ours_ns: self.theirs_ns,
            theirs_ns: self.ours_ns,
            drift: 1.0 / (1.0 + self.drift) - 1.0,
            ..self
        }
    }

    /// What the one said when the other said this.
    fn ours_at(&self, theirs_ns: u64) -> u64 {
        let since = theirs_ns.wrapping_sub(self.theirs_ns).cast_signed();
        let less = since as f64 * (self.drift / (1.0 + self.drift));
        self.ours_ns.saturating_add_signed(since.saturating_sub(less.round() as i64))
    }
}

/// How each PE's clock is brought to the first one's, step by step, and within how many nanoseconds
/// that is right.
#[derive(Default)]
pub(crate) struct Clocks(BTreeMap<u32, (Vec<Line>, u64)>);

impl Clocks {
    /// Gives a packet of this PE the time that the first PE's clock said. That of a PE that has not
    /// been compared is left as it is.
    pub(super) fn align(&self, pe: Option<u32>, packet: &mut TracePacket) {
        if let (Some(at), Some((way, _))) =
            (&mut packet.timestamp, pe.and_then(|pe| self.0.get(&pe)))
        {
            *at = way.iter().fold(*at, |at, line| line.ours_at(at));
        }
    }

    /// Within how many nanoseconds all that were compared are right; `None` if there are none.
    fn error_ns(&self) -> Option<u64> {
        self.0.values().map(|(_, error_ns)| *error_ns).max()
    }

    /// How right the clocks of all PEs are, in words, where there are several.
    pub(crate) fn said(&self, reader: &Reader) -> Option<String> {
        let pes = reader.processes();
        let others: Vec<_> = pes.keys().filter(|pe| !self.0.contains_key(pe)).collect();
        match (self.error_ns(), &others[..]) {
            _ if pes.len() < 2 => None,
            (None, _) => Some("clocks not compared: they may differ".to_owned()),
            (Some(error_ns), others) => {
                let within = Duration::from_nanos(error_ns);
                let but = match others {
                    [] => String::new(),
                    [pe] => format!(", but for that of PE {pe}, which was not compared"),
                    [pe, more @ ..] => {
                        let more = more.len();
                        format!(", but for those of PE {pe} and {more} more, not compared")
                    }
                };
                Some(format!("clocks aligned within {within:.1?}{but}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000_000_000;

    /// What a clock says that is ahead, and drifts, when a right one says so.
    fn wrong(at_s: f64, ahead_s: f64, ppm: f64) -> u64 {
        let at_ns = at_s * 1e9;
        START.saturating_add_signed((at_ns + at_ns * ppm / 1e6 + ahead_s * 1e9) as i64)
    }

    #[test]
    fn clocks_that_are_an_hour_apart_and_drift_are_aligned() {
        let skews = [(0.0, 0.0), (3600.0, 100.0), (-3600.0, -100.0), (0.5, 20.0)];
        let clock = |pe: usize, at_s: f64| wrong(at_s, skews[pe].0, skews[pe].1);
        let mut comparisons = Comparisons::default();
        for (ours, theirs) in [(0, 1), (1, 2), (2, 3)] {
            for second in 0..20 {
                let at_s = f64::from(second) * 5.0;
                // The slow ones are wrong.
                let (late_s, error_ns) =
                    if second % 3 == 0 { (5e-6, 10_000) } else { (2e-3, 4_000_000) };
                comparisons.add(Compared {
                    pe: ours as u32,
                    ours_ns: clock(ours, at_s),
                    other: theirs as u32,
                    theirs_ns: clock(theirs, at_s + late_s),
                    error_ns,
                });
            }
        }
        let clocks = comparisons.clocks();
        for (pe, at_s) in [(0, 7.0), (1, 0.0), (1, 99.0), (2, 50.0), (3, 0.0), (3, 100.0)] {
            let mut packet =
                TracePacket { timestamp: Some(clock(pe, at_s)), ..TracePacket::default() };
            clocks.align(Some(pe as u32), &mut packet);
            let aligned = packet.timestamp.expect("it has one") as i64;
            let wrong_by = aligned - clock(0, at_s) as i64;
            assert!(wrong_by.abs() <= 20_000, "PE {pe} after {at_s} s: {wrong_by} ns");
        }
        assert_eq!(clocks.error_ns(), Some(30_000), "three steps");
    }

    #[test]
    fn what_was_not_compared_stays() {
        let clocks = Comparisons::default().clocks();
        assert_eq!(clocks.error_ns(), None);
        let mut packet = TracePacket { timestamp: Some(7), ..TracePacket::default() };
        clocks.align(Some(3), &mut packet);
        assert_eq!(packet.timestamp, Some(7));
        // Damaged numbers do not end it.
        let mut comparisons = Comparisons::default();
        for ns in [0, u64::MAX, 5] {
            let compared = Compared { pe: 0, ours_ns: ns, other: 1, theirs_ns: !ns, error_ns: ns };
            comparisons.add(compared);
        }
        packet.timestamp = Some(u64::MAX);
        comparisons.clocks().align(Some(1), &mut packet);
    }
}
