//! What the detectors have sent, and when they told their PEs of each death.

use super::{Detectors, SimulatedDetector};
use crate::report::{DetectionReport, Told};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_topology::Pe;

/// By PE: when it died, and who has been told of it.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<Entry>);

#[derive(Clone, Debug, Default)]
struct Entry {
    died_at: Option<u64>,
    /// How many living PEs have been told that it is dead.
    tellings: u32,
    /// When the last was told, in nanoseconds.
    last: u64,
}

impl Tally {
    pub(super) fn new(pes: u32) -> Self {
        Tally(vec![Entry::default(); pes as usize])
    }

    pub(super) fn note_death(&mut self, now: u64, pe: Pe) {
        if let Some(entry) = self.0.get_mut(pe.index()) {
            entry.died_at = Some(now);
        }
    }

    /// A living PE is told of these deaths.
    pub(super) fn note_told(&mut self, now: u64, dead: &[Pe]) {
        for pe in dead {
            let entry = &mut self.0[pe.index()];
            entry.tellings += 1;
            entry.last = now;
        }
    }

    /// The deaths that some living PE was told of.
    fn told(&self) -> Vec<Told> {
        let told = self.0.iter().zip(0..).filter(|(entry, _)| entry.tellings > 0);
        let told = told.filter_map(|(entry, pe)| {
            let after = Duration::from_nanos(entry.last.saturating_sub(entry.died_at?));
            Some(Told { pe: Pe::new(pe), pes: entry.tellings, after })
        });
        told.collect()
    }
}

impl Detectors {
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
        report.told = self.tally.told();
    }
}
