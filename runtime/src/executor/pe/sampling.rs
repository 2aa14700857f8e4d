//! What a PE has counted, in the trace.

use super::processor::Processor;
use crate::executor::engine::turn::Engine;
use crate::trace;
use std::time::Duration;
use ultramarine_trace::GAUGES;

/// How often a PE that takes turns is asked.
const SAMPLES_EVERY: Duration = Duration::from_millis(100);

impl Processor {
    /// Notes what this PE has counted, if that is recorded and some time has passed.
    pub(super) fn sample_if_due(&self, engine: &Engine<Processor>, now: Duration) {
        if trace::is_on() && self.turns.may_sample(now, SAMPLES_EVERY) {
            self.sample(Some(engine));
        }
    }

    /// Notes what it has counted before it leaves.
    pub(super) fn sample_last(&self) {
        if trace::is_on() {
            self.sample(self.turns.engine().as_ref());
        }
    }

    fn sample(&self, engine: Option<&Engine<Processor>>) {
        let counted = self.statistics_with(engine);
        let ended = counted.ended.values().sum();
        let waiting = engine.map_or(0, |engine| engine.state.pool.len() as u64);
        let gauges = GAUGES.into_iter().zip([waiting, self.away() as u64, self.crew.idle() as u64]);
        let counted_tasks = [
            ("tasks started", counted.tasks),
            ("tasks ended", ended),
            ("tasks run again", counted.replicas),
            ("tasks lost", counted.lost),
            ("tasks dropped with their home", counted.orphans),
        ];
        let counters = gauges.chain(counted_tasks);
        let mut counters: Vec<_> = counters.map(|(name, value)| (name.to_owned(), value)).collect();
        for row in &counted.by_distance {
            let of = |what: &str| format!("{what} stolen at distance {}", row.distance);
            counters.extend([(of("tasks"), row.steals), (of("bytes"), row.bytes)]);
        }
        trace::note_counters(self.me(), counters);
    }
}
