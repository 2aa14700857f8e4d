//! Whether a run was as it must be.

use super::Simulation;
use super::offices::Office;
use crate::report::{RunFault, SimulatedRun};
use std::collections::BTreeSet;
use ultramarine_topology::Pe;

/// What is wrong, if anything is.
type Finding = Result<(), String>;

impl Simulation {
    /// What the run came to. No event is left, or there is a fault already.
    pub(crate) fn judge(mut self) -> SimulatedRun {
        self.detectors.complete(&mut self.report.detection);
        let is_there = self.present > 0 || self.detectors.are_running();
        let fault = self.fault.take().or_else(|| {
            let text = || format!("{} PEs wait, and nothing comes any more", self.present);
            is_there.then(|| RunFault::Hung(text()))
        });
        let fault = fault.or_else(|| {
            let verdict = self.check_values().and_then(|()| {
                if self.job.outlives_root {
                    self.check_with_successions()
                } else {
                    self.check_with_one_root()
                }
            });
            verdict.err().map(RunFault::Wrong)
        });
        SimulatedRun { seed: self.job.seed, report: self.report, fault }
    }

    fn check_values(&self) -> Finding {
        let expected = self.job.workload.expected();
        let mut values = self.offices.values();
        match values.find(|value| *value != expected) {
            Some(value) => Err(format!("the result is {value:#x} instead of {expected:#x}")),
            None => Ok(()),
        }
    }

    /// The job ends with its root.
    fn check_with_one_root(&self) -> Finding {
        let report = &self.report;
        // A partition costs the side without the root at most. If it ends before the root has
        // judged, there are pairs of PEs that have lost each other, and one of each leaves.
        let rejoined = self.broken_paths.rejoined(report.pes).saturating_sub(report.parted);
        let at_most = self.broken_paths.count() + report.slandered + rejoined;
        if self.offices.values().next().is_none() && !report.has_root_died {
            Err("there is no result".to_owned())
        } else if report.innocents > at_most {
            Err(format!("{} innocent PEs were expelled", report.innocents))
        } else if report.misled > 0 {
            Err(format!("{} PEs left a root they reach", report.misled))
        } else {
            Ok(())
        }
    }

    /// The job goes on when its root dies.
    fn check_with_successions(&mut self) -> Finding {
        self.check_rivals()?;
        let has_value = self.offices.values().next().is_some();
        self.report.unfinished = u32::from(!has_value);
        let side = self.broken_paths.larger_side(self.report.pes);
        let has_majority = side.is_some_and(|side| self.goes_on(&side));
        if has_majority && !has_value {
            return Err("a majority stays together, and there is no result".to_owned());
        }
        let left_early = self.detectors.early_leavers();
        let at_most = self.broken_paths.count() + self.report.slandered;
        if has_majority && !self.broken_paths.has_parted() && left_early > at_most {
            return Err(format!("{left_early} innocent PEs had to leave"));
        }
        Ok(())
    }

    /// Of two PEs that have a result the first has died with it, or has left with it before the
    /// second took office: a PE that has not heard so begins anew. Or it had its result already
    /// when the second took office, and a broken path kept it from telling the others.
    fn check_rivals(&mut self) -> Finding {
        let with_value = |office: &&Office| office.value.is_some();
        let ended: Vec<Office> = self.offices.all().iter().filter(with_value).copied().collect();
        for (at, second) in ended.iter().enumerate() {
            for first in &ended[..at] {
                if first.until.is_some_and(|until| until <= second.since) {
                    self.report.repeated += u32::from(!first.has_died);
                } else if first.value.is_some_and(|(_, at)| at <= second.since)
                    && self.broken_paths.is_ever_cut(first.pe, second.pe)
                {
                    self.report.doubled += 1;
                } else {
                    let (first, second) = (first.pe, second.pe);
                    return Err(format!("{first} and {second} are in office, both with a result"));
                }
            }
        }
        Ok(())
    }

    /// Whether these PEs, which stay together, are enough to go on, in whatever order the others
    /// die.
    fn goes_on(&self, side: &BTreeSet<Pe>) -> bool {
        let pes = self.report.pes;
        let detection = self.job.detection.as_ref();
        // Those that have agreed to the end do not begin anew when their root falls silent then.
        let falls_silent = |office: &&Office| {
            let is_silent = || self.detectors.has_fallen_silent(office.pe, detection);
            !side.contains(&office.pe) || office.has_died && is_silent()
        };
        if self.offices.all().iter().filter(|office| office.has_ended).any(|o| falls_silent(&o)) {
            return false;
        }
        let (certain, silent) = self.detectors.deaths_among(side, detection);
        let lost = silent + self.broken_paths.count() + self.report.slandered;
        let votes = (side.len() as u32).saturating_sub(certain + lost);
        // The votes of those that others have seen die count unless all deaths are seen.
        let are_seen = lost == 0 && side.len() as u32 == pes;
        2 * votes > pes || are_seen && votes > 0
    }
}
