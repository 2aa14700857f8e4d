//! What the detectors have sent, and when their PEs learnt of each death.

use super::{Detectors, Process, SimulatedDetector};
use crate::job::Detection;
use crate::report::{DetectionReport, Known};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What the PEs know, and since when.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By PE: when it died, and who knows of it.
    deaths: Vec<Entry>,
    /// When the last PE took office that did, in nanoseconds, and who knows of it.
    succession: Option<(u64, Known)>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    died_at: Option<u64>,
    /// How many living PEs know that it is dead.
    known_to: u32,
    /// When the last learnt of it, in nanoseconds.
    last: u64,
}

impl Tally {
    pub(super) fn new(pes: u32) -> Self {
        Tally { deaths: vec![Entry::default(); pes as usize], succession: None }
    }

    pub(super) fn note_death(&mut self, now: u64, pe: Pe) {
        if let Some(entry) = self.deaths.get_mut(pe.index()) {
            entry.died_at = Some(now);
        }
    }

    /// A living PE learns of these deaths.
    pub(super) fn note_known(&mut self, now: u64, dead: &[Pe]) {
        for pe in dead {
            let entry = &mut self.deaths[pe.index()];
            entry.known_to += 1;
            entry.last = now;
        }
    }

    /// A PE learns that this judge is in office. The judge itself is the first.
    pub(super) fn note_succession(&mut self, now: u64, at: Pe, judge: Pe) {
        if at == judge {
            let known = Known { pe: judge, known_to: 1, after: Duration::ZERO };
            self.succession = Some((now, known));
        } else if let Some((since, known)) = &mut self.succession
            && known.pe == judge
        {
            known.known_to += 1;
            known.after = Duration::from_nanos(now - *since);
        }
    }

    fn has_died(&self, pe: Pe) -> bool {
        self.deaths.get(pe.index()).is_some_and(|entry| entry.died_at.is_some())
    }

    /// The deaths that some living PE knows of.
    fn known_deaths(&self) -> Vec<Known> {
        let known = self.deaths.iter().zip(0..).filter(|(entry, _)| entry.known_to > 0);
        let known = known.filter_map(|(entry, pe)| {
            let after = Duration::from_nanos(entry.last.saturating_sub(entry.died_at?));
            Some(Known { pe: Pe::new(pe), known_to: entry.known_to, after })
        });
        known.collect()
    }
}

impl Detectors {
    /// How many of these PEs have died so that others have seen that the process is gone, and how
    /// many others may have fallen silent before that.
    pub(crate) fn deaths_among(
        &self,
        pes: &BTreeSet<Pe>,
        detection: Option<&Detection>,
    ) -> (u32, u32) {
        let dead = pes.iter().filter(|pe| self.tally.has_died(**pe));
        let (silent, certain): (Vec<&Pe>, Vec<&Pe>) =
            dead.partition(|pe| self.has_fallen_silent(**pe, detection));
        (certain.len() as u32, silent.len() as u32)
    }

    /// Whether a PE that has died may have fallen silent before others saw that its process is
    /// gone.
    pub(crate) fn has_fallen_silent(&self, pe: Pe, detection: Option<&Detection>) -> bool {
        // One whose host answers for long after its death is lost as a PE that has stalled; and
        // without its guard it may be the only one of its host.
        let is_late = detection.is_some_and(|detection| {
            let seen_after = Duration::from_nanos(*detection.sees_after_ns.end());
            !detection.is_guarded || seen_after >= detection.settings(true).stalled_after
        });
        is_late || self.all[pe.index()].process == Process::HostGone
    }

    /// Completes the report of a run.
    pub(crate) fn complete(&self, report: &mut DetectionReport) {
        let messages = |detector: &SimulatedDetector| {
            let counters = &detector.counters;
            [&counters.heartbeats_sent, &counters.notices_sent].map(|count| count.load(Relaxed))
        };
        for [heartbeats, notices] in self.all.iter().map(messages) {
            report.heartbeats += heartbeats;
            report.notices += notices;
            report.messages_max = report.messages_max.max(heartbeats + notices);
        }
        let most = self.all.iter().map(|detector| detector.ends_max).max();
        report.connections_max = most.unwrap_or(0) as u64;
        report.known_deaths = self.tally.known_deaths();
        report.succession = self.tally.succession.map(|(_, known)| known);
    }
}
