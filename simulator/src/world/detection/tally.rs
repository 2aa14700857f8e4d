//! What the detectors have sent, and when their PEs learnt of each death.

use super::{Detectors, SimulatedDetector};
use crate::report::{DetectionReport, KnownDeath};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ultramarine_topology::Pe;

/// By PE: when it died, and who knows of it.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<Entry>);

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
        Tally(vec![Entry::default(); pes as usize])
    }

    pub(super) fn note_death(&mut self, now: u64, pe: Pe) {
        if let Some(entry) = self.0.get_mut(pe.index()) {
            entry.died_at = Some(now);
        }
    }

    /// A living PE learns of these deaths.
    pub(super) fn note_known(&mut self, now: u64, dead: &[Pe]) {
        for pe in dead {
            let entry = &mut self.0[pe.index()];
            entry.known_to += 1;
            entry.last = now;
        }
    }

    /// The deaths that some living PE knows of.
    fn known_deaths(&self) -> Vec<KnownDeath> {
        let known = self.0.iter().zip(0..).filter(|(entry, _)| entry.known_to > 0);
        let known = known.filter_map(|(entry, pe)| {
            let after = Duration::from_nanos(entry.last.saturating_sub(entry.died_at?));
            Some(KnownDeath { pe: Pe::new(pe), known_to: entry.known_to, after })
        });
        known.collect()
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
        report.known_deaths = self.tally.known_deaths();
    }
}
