//! When the workers waited: before their first work, after their last, or between.

/// A PE that is busy for less than this share of a piece of time does not work yet, or not any
/// more. So is one of which less than half a worker is busy.
const WORKS: f64 = 0.05;
const WORKERS_WORK: f64 = 0.5;

/// How many pieces of time a PE did not work for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worked {
    before: usize,
    after: usize,
    /// It had died by then.
    dead: usize,
}

impl Worked {
    /// A PE with this number of workers was busy for these shares of the pieces. It died in the
    /// piece `died`, if it did. One that never worked has waited all the time, between nothing and
    /// nothing.
    pub(super) fn of(row: &[f64], workers: u64, died: Option<usize>) -> Self {
        let enough = WORKS.min(WORKERS_WORK / workers.max(1) as f64);
        let works = |share: &f64| *share >= enough;
        let lived = died.map_or(row.len(), |piece| row.len().min(piece + 1));
        let (alive, dead) = row.split_at(lived);
        let before = alive.iter().position(works).unwrap_or_default();
        let after = alive.iter().rev().position(works).unwrap_or_default();
        Worked { before, after, dead: dead.len() }
    }
}

/// Where the time of all workers went, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) computing: u64,
    /// Before their first work.
    pub(super) start: u64,
    /// Between two tasks.
    pub(super) between: u64,
    /// After their last work.
    pub(super) end: u64,
}

impl Times {
    /// In a job that took this long, of whose pieces of time these PEs worked for some, each with
    /// its number of workers.
    pub(super) fn of(
        computing: u64,
        took_ns: u64,
        piece_ns: u64,
        pes: impl Iterator<Item = (Worked, u64)>,
    ) -> Times {
        let mut times = Times { computing, ..Times::default() };
        let mut all = 0u64;
        for (worked, workers) in pes {
            let of_workers = |ns: u64| ns.saturating_mul(workers);
            let pieces = |count: usize| of_workers((count as u64).saturating_mul(piece_ns));
            all = all.saturating_add(of_workers(took_ns)).saturating_sub(pieces(worked.dead));
            times.start = times.start.saturating_add(pieces(worked.before));
            times.end = times.end.saturating_add(pieces(worked.after));
        }
        // A piece may begin before the job does.
        let waiting = all.saturating_sub(computing);
        times.start = times.start.min(waiting);
        times.end = times.end.min(waiting - times.start);
        times.between = waiting - times.start - times.end;
        times
    }

    /// All of it that was not computing.
    pub(super) fn waiting(&self) -> u64 {
        self.start.saturating_add(self.between).saturating_add(self.end)
    }

    /// A part as a share of all of it.
    pub(super) fn share(&self, part_ns: u64) -> f64 {
        let all = self.computing.saturating_add(self.waiting());
        part_ns as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_before_between_or_after() {
        let row = [0.0, 0.04, 0.9, 0.0, 1.0, 0.0, 0.0, 0.0];
        let worked = |died| Worked::of(&row, 2, died);
        assert_eq!(worked(None), Worked { before: 2, after: 3, dead: 0 });
        assert_eq!(worked(Some(5)), Worked { before: 2, after: 1, dead: 2 });
        assert_eq!(worked(Some(0)), Worked { before: 0, after: 0, dead: 7 });
        let times = Times::of(40, 80, 10, [(worked(Some(5)), 2)].into_iter());
        // Eight pieces of two workers, of which the PE was dead for two.
        assert_eq!(times.computing + times.waiting(), 120);
        assert_eq!((times.start, times.end, times.between), (40, 20, 20));
    }

    #[test]
    fn one_busy_worker_of_many_works() {
        let worked = Worked::of(&[0.0, 1.0 / 64.0, 0.0], 64, None);
        assert_eq!(worked, Worked { before: 1, after: 1, dead: 0 });
        assert_eq!(Worked::of(&[0.0; 3], 64, None), Worked { before: 0, after: 0, dead: 0 });
    }
}
