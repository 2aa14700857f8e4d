//! What a PE does at the time: for the trace, and for who watches the job.

use super::processor::Processor;
use crate::executor::engine::turn::Engine;
use crate::trace;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use ultramarine_topology::{Distance, Pe};
use ultramarine_trace::{GAUGES, MOVED_BYTES};

/// How often a PE that takes turns is asked for the trace.
const SAMPLES_EVERY: Duration = Duration::from_millis(100);

/// What a PE does at the time, and what it has counted since the start of the job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// The PE.
    pub pe: Pe,
    /// Its worker threads.
    pub workers: u32,
    /// Of these, threads that have no task.
    pub idle: u32,
    /// Tasks that thieves may take.
    pub waiting: u64,
    /// Tasks of this PE that are on other PEs.
    pub away: u64,
    /// What the PE's process has in memory, in bytes.
    pub memory: u64,
    /// Tasks that this PE has started, wherever they came from.
    pub started: u64,
    /// Tasks of this PE that have ended, wherever they ran. It counts from the first sample on.
    pub ended: u64,
    /// New copies of its tasks, made because earlier ones were lost.
    pub again: u64,
    /// Its tasks that ended with an error, since they may have been lost.
    pub lost: u64,
    /// Tasks dropped here since their home had died.
    pub orphans: u64,
    /// Messages that it has sent, also those to itself.
    pub messages: u64,
    /// Bytes that it has sent to other PEs, and of arrays that it has copied from the memory of
    /// others.
    pub moved_bytes: u64,
    /// Tasks that it has stolen, by distance, the smallest first.
    pub stolen: Vec<Stolen>,
}

/// Tasks that a PE has stolen from others at one distance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stolen {
    /// The distance.
    pub distance: Distance,
    /// How many tasks.
    pub tasks: u64,
    /// The bytes of their closures and arguments.
    pub bytes: u64,
}

impl Sample {
    /// The figures by name.
    fn counters(&self) -> Vec<(String, u64)> {
        let gauges = [self.waiting, self.away, self.idle.into(), self.memory];
        let counted = [
            ("tasks started", self.started),
            ("tasks ended", self.ended),
            ("tasks run again", self.again),
            ("tasks lost", self.lost),
            ("tasks dropped with their home", self.orphans),
            ("messages sent", self.messages),
            (MOVED_BYTES, self.moved_bytes),
        ];
        let named = |(name, value): (&str, u64)| (name.to_owned(), value);
        let mut counters: Vec<_> =
            GAUGES.into_iter().zip(gauges).chain(counted).map(named).collect();
        for row in &self.stolen {
            let of = |what: &str| format!("{what} stolen at distance {}", row.distance);
            counters.extend([(of("tasks"), row.tasks), (of("bytes"), row.bytes)]);
        }
        counters
    }
}

impl Processor {
    /// Notes what this PE has counted, if that is recorded and some time has passed.
    pub(super) fn sample_if_due(&self, engine: &Engine<Processor>, now: Duration) {
        if trace::is_on() && self.turns.may_sample(now, SAMPLES_EVERY) {
            trace::note_counters(self.me(), self.sample_with(Some(engine)).counters(), false);
        }
    }

    /// Notes what it has counted before it leaves.
    pub(super) fn sample_last(&self) {
        if trace::is_on() {
            trace::note_counters(self.me(), self.sample().counters(), true);
        }
    }

    /// What this PE does now.
    pub(crate) fn sample(&self) -> Sample {
        self.sample_with(self.turns.engine().as_ref())
    }

    /// The same for who has the engine. From the first time on, the PE counts which tasks end.
    fn sample_with(&self, engine: Option<&Engine<Processor>>) -> Sample {
        let counted = self.statistics_with(engine);
        let link = engine.map(Engine::link_counters).unwrap_or_default();
        let stolen = |row: &crate::protocol::Traffic| Stolen {
            distance: row.distance,
            tasks: row.steals,
            bytes: row.bytes,
        };
        Sample {
            pe: self.me(),
            workers: self.crew.workers() as u32,
            idle: (self.crew.workers() - self.crew.busy()) as u32,
            waiting: engine.map_or(0, |engine| engine.state.pool.len() as u64),
            away: self.away() as u64,
            memory: memory_bytes(),
            started: counted.tasks,
            ended: counted.ended.values().sum(),
            again: counted.replicas,
            lost: counted.lost,
            orphans: counted.orphans,
            messages: link.messages_sent,
            moved_bytes: link.bytes_sent + link.bytes_fetched,
            stolen: counted.by_distance.iter().map(stolen).collect(),
        }
    }
}

/// What this process has in memory; 0 if the system does not say.
fn memory_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}
