//! A recorded job, simulated.

use super::{Base, ExperimentError};
use crate::machine::Machine;
use crate::network::Network;
use crate::workload::map::MapWorkload;
use crate::workload::recorded::{COUNTERS, JobFigures, Recording};
use crate::workload::{Activity, SpawnMode, SpawnPlace, Step, TaskContext, Workload};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_runtime::protocol::Statistics;
use ultramarine_runtime::protocol::message::Bytes;
use ultramarine_topology::Pe;

/// Simulates a recorded job once.
pub(super) fn replay(
    recording: &Arc<Recording>,
    network: &Network,
    seed: u64,
) -> Result<JobFigures, ExperimentError> {
    let machine = Machine::of_shape(&format!("{}x{}", recording.pes, recording.threads));
    let machine = machine.map_err(|error| ExperimentError::Replay(error.to_string()))?;
    let topology = machine.topology().clone();
    let Recording { skeleton, is_supervised, sleep_late_ns, .. } = **recording;
    let (tasks, costs) = (recording.tasks(), recording.clone());
    let mut map = MapWorkload::new(tasks, costs, skeleton, is_supervised, &topology, seed);
    map.main_spread_ns = recording.spread_ns;
    let measures_ns = MEASUREMENTS * (MEASURED_PAUSE_NS + sleep_late_ns);
    let recorded = Arc::new(RecordedMap { map, pes: recording.pes, measures_ns });
    let base = Base { sleep_late_ns, ..Base::new(machine, network.clone(), seed) };
    let run = base.run(recorded, Vec::new());
    if let Some(fault) = run.fault {
        return Err(ExperimentError::Replay(fault.to_string()));
    }
    let figures = figures(&run.report.marks, recording.pes as usize);
    let text = "its map did not begin and end once";
    figures.ok_or_else(|| ExperimentError::Replay(text.to_owned()))
}

/// What the marks say: those of all PEs when they have started, and again before the map, that of
/// the root when it begins, and those of all PEs after it, of which the root's is the first.
fn figures(marks: &[(Duration, Statistics)], pes: usize) -> Option<JobFigures> {
    let (_, rest) = marks.split_at_checked(pes)?;
    let (before, rest) = rest.split_at_checked(pes)?;
    let ((began, _), after) = rest.split_first()?;
    let (ended, _) = after.first().filter(|_| after.len() == pes)?;
    let total = |marks: &[(Duration, Statistics)]| {
        let mut total = Statistics::default();
        marks.iter().for_each(|(_, statistics)| total.merge(statistics));
        total
    };
    let (before, after) = (total(before), total(after));
    Some(JobFigures {
        makespan_ns: ended.saturating_sub(*began).as_nanos() as u64,
        counts: COUNTERS.map(|(_, _, count)| count(&after) - count(&before)),
    })
}

/// A recorded map begins this long after its job (`PAUSE` in `examples/src/recording.rs`), in
/// nanoseconds.
const PAUSE_NS: u64 = 100_000_000;

/// It measures this often how late pauses end, with pauses of this many nanoseconds.
const MEASUREMENTS: u64 = 21;
const MEASURED_PAUSE_NS: u64 = 200_000;

/// A map as it is recorded: when all PEs have answered once, and after a pause, between two
/// gatherings of the counters of all PEs. (A PE that has just answered looks for messages more
/// often for some milliseconds, and may have cast a FISH between two tasks, which counts when it
/// runs out of work the next time. While the PEs are asked at the end, they go on fishing.)
struct RecordedMap {
    map: MapWorkload,
    pes: u32,
    /// How long the main task measures before it asks the PEs for the first time, in nanoseconds.
    measures_ns: u64,
}

/// It takes these steps, and asks the PEs below its own when it awaits; then it is a map, if it has
/// one, which is recorded to its end.
struct Recorder {
    steps: VecDeque<Step>,
    /// Its own PE, and those that it asks.
    pes: Range<u32>,
    map: Option<Box<dyn Activity>>,
}

/// The first byte of a task that asks a range of PEs, of which its own is the first.
const ASKED: u8 = 0xff;

impl Workload for RecordedMap {
    fn main(&self) -> Box<dyn Activity> {
        let gather = || [Step::Mark, Step::Await];
        let before = [Step::Overhead(self.measures_ns)].into_iter().chain(gather());
        let before = before.chain([Step::Sleep(PAUSE_NS)]).chain(gather());
        let steps = before.chain([Step::Mark]).collect();
        Box::new(Recorder { steps, pes: 0..self.pes, map: Some(self.map.main()) })
    }

    fn start(&self, body: &Bytes) -> Option<Box<dyn Activity>> {
        match body.few.split_first() {
            Some((&ASKED, range)) => {
                let (first, end) = range.split_at_checked(4)?;
                let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
                let (steps, pes) = ([Step::Mark, Step::Await].into(), number(first)?..number(end)?);
                Some(Box::new(Recorder { steps, pes, map: None }))
            }
            _ => self.map.start(body),
        }
    }

    fn expected(&self) -> u64 {
        self.map.expected()
    }
}

impl Activity for Recorder {
    fn step(&mut self, cx: &mut TaskContext<'_>) -> Step {
        let Some(step) = self.steps.pop_front() else {
            return match self.map.as_mut().map(|map| map.step(cx)) {
                Some(end @ Step::End(..)) => {
                    self.steps = [Step::Await, end].into();
                    Step::Mark
                }
                Some(step) => step,
                None => Step::End(0, None),
            };
        };
        if let Step::Await = step {
            ask(self.pes.clone(), cx);
        }
        step
    }
}

/// Asks these PEs but the first, which is the caller: as `Context::statistics` does, over the tree
/// of the hierarchy.
fn ask(pes: Range<u32>, cx: &mut TaskContext<'_>) {
    for branch in cx.topology.branches(cx.pe, pes) {
        let mut body = vec![ASKED];
        body.extend(branch.start.to_le_bytes());
        body.extend(branch.end.to_le_bytes());
        let place = SpawnPlace::At(Pe::new(branch.start));
        cx.spawn(body.into(), SpawnMode { is_supervised: false, place });
    }
}
