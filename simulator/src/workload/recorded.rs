//! Task times recorded from a real run: what the examples that map write with `--record FILE`
//! (`examples/src/recording.rs`), as a workload.
//!
//! A recording is one JSON object. It has the skeleton, the time of each item in nanoseconds, and
//! what the job came to, to compare a simulated run with:
//!
//! ```
//! use ultramarine_simulator::workload::recorded::Recording;
//! let recording = Recording::read(r#"{"program": "naps", "skeleton": "par-map",
//!     "supervised": false, "pes": 2, "threads": 1, "items": 3, "dead": 0,
//!     "makespan_ns": 2100000, "fishes": 2, "forwards": 0, "schedules": 1, "stolen": 1,
//!     "no_works": 1, "notifies": 0, "acks": 0, "sleep_late_ns": 60000,
//!     "spread_ns": 40000, "task_ns": [1000000, 1100000, 950000]}"#)?;
//! assert_eq!(recording.task_ns, [1_000_000, 1_100_000, 950_000]);
//! # Ok::<(), ultramarine_simulator::workload::recorded::RecordingError>(())
//! ```

use super::map::{ItemCosts, Skeleton};
use crate::machine::{PES_MAX, WORKERS_MAX};
use serde_json::Value;
use ultramarine_runtime::protocol::{Statistics, Traffic};

/// The longest time of an item that is believed: a day.
const TASK_NS_MAX: u64 = 86_400_000_000_000;

/// The most that a thread is believed to go on too late: a second.
const LATE_NS_MAX: u64 = 1_000_000_000;

/// Skeletons that group items make tasks of this many (`examples/src/map_skeleton.rs`).
const GROUP: usize = 4;

/// A skeleton as the examples name it and as it is simulated, and what makes the times of the tasks
/// of those of the items.
type Known = (&'static str, Skeleton, fn(&[u64]) -> Vec<u64>);

/// The skeletons that can be simulated.
const SKELETONS: [Known; 8] = [
    ("par-map", Skeleton::Stolen, <[u64]>::to_vec),
    ("par-map-chunked", Skeleton::Stolen, chunks),
    ("par-map-sliced", Skeleton::Stolen, slices),
    ("push-map", Skeleton::Placed, <[u64]>::to_vec),
    ("push-map-chunked", Skeleton::Placed, chunks),
    ("push-map-sliced", Skeleton::Placed, slices),
    ("par-map-2level", Skeleton::TwoLevel, <[u64]>::to_vec),
    ("par-map-2level-relaxed", Skeleton::Relaxed, <[u64]>::to_vec),
];

fn chunks(items: &[u64]) -> Vec<u64> {
    items.chunks(GROUP).map(|chunk| chunk.iter().sum()).collect()
}

fn slices(items: &[u64]) -> Vec<u64> {
    let slices = items.len().div_ceil(GROUP);
    (0..slices).map(|first| items.iter().skip(first).step_by(slices).sum()).collect()
}

/// A counter that is kept by distance, over all distances.
pub(crate) fn sum(statistics: &Statistics, of: fn(&Traffic) -> u64) -> u64 {
    statistics.by_distance.iter().map(of).sum()
}

/// What a real job did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The program.
    pub program: String,
    /// The skeleton, as the program names it.
    pub name: String,
    /// The same, as a simulated map has it.
    pub skeleton: Skeleton,
    /// Whether its tasks were supervised.
    pub is_supervised: bool,
    /// The number of PEs.
    pub pes: u32,
    /// The number of worker threads of each.
    pub threads: u32,
    /// How much longer than asked for a short pause of a thread took, in nanoseconds.
    pub sleep_late_ns: u64,
    /// How long the main task took to spread the tasks, before it waited for them, in nanoseconds.
    pub spread_ns: u64,
    /// How long each task computed, in nanoseconds. A task of several items has their sum.
    pub task_ns: Vec<u64>,
    /// What it came to.
    pub figures: JobFigures,
}

/// A counter: what it is called, its key in a recording, and what it is in a run.
pub(crate) type Counter = (&'static str, &'static str, fn(&Statistics) -> u64);

/// The counters of a job, which are compared.
pub(crate) const COUNTERS: [Counter; 7] = [
    ("FISH", "fishes", |it| sum(it, |row| row.fishes)),
    ("forwards", "forwards", |it| sum(it, |row| row.forwards)),
    ("SCHEDULE", "schedules", |it| sum(it, |row| row.schedules)),
    ("steals", "stolen", |it| sum(it, |row| row.steals)),
    ("NOWORK", "no_works", |it| sum(it, |row| row.no_works)),
    ("NOTIFY", "notifies", |it| it.notifies),
    ("ACK", "acks", |it| it.acks),
];

/// What a job came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFigures {
    /// The duration of the map, in nanoseconds.
    pub makespan_ns: u64,
    /// How much the counters have grown, all PEs together: FISHes cast, FISHes passed on, SCHEDULEs
    /// received, tasks in them, NOWORKs received, NOTIFYs and ACKs sent.
    pub counts: [u64; 7],
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The text is not JSON, or not all of it is there.
    #[error(
        "the recording is no whole JSON object: {0}; give a file that an example wrote with \
         --record FILE, unchanged"
    )]
    NotJson(#[from] serde_json::Error),
    /// A key is missing, or its value is not what is allowed, as the text says.
    #[error("the recording has no usable `{0}`: {1}")]
    Field(&'static str, String),
    /// There is not one time for each item: how many items and times there are.
    #[error(
        "the recording has {1} task times for {0} items: there must be one in `task_ns` for each \
         item; was the file cut off?"
    )]
    Truncated(u64, usize),
    /// The time of the item with this number, from 0, is not valid; the time is as JSON has it.
    #[error(
        "`{1}`, the time of item {0} of the recording, is not believable: whole nanoseconds from 0 \
         to {TASK_NS_MAX} (a day) are allowed"
    )]
    Time(usize, String),
}

impl Recording {
    /// Reads a recording: the content of the file.
    ///
    /// # Errors
    /// If it is not a whole recording, or has something in it that is not valid.
    pub fn read(json: &str) -> Result<Recording, RecordingError> {
        let object: Value = serde_json::from_str(json)?;
        let fields = Fields(&object);
        let name = fields.text("skeleton")?;
        let known = SKELETONS.iter().find(|(known, ..)| *known == name);
        let names = || SKELETONS.map(|(name, ..)| name).join(", ");
        let (_, skeleton, tasks) = known.ok_or_else(|| {
            let allowed = format!("`{name}` cannot be simulated, but {} can", names());
            RecordingError::Field("skeleton", allowed)
        })?;
        if fields.number("dead", 0, u64::MAX)? > 0 {
            let allowed = "PEs died in that job, and only jobs without deaths can be compared";
            return Err(RecordingError::Field("dead", allowed.to_owned()));
        }
        let items = fields.number("items", 1, u32::MAX.into())?;
        let mut counts = [0; COUNTERS.len()];
        for (count, (_, key, _)) in counts.iter_mut().zip(COUNTERS) {
            *count = fields.number(key, 0, u64::MAX)?;
        }
        Ok(Recording {
            program: fields.text("program")?.to_owned(),
            name: name.to_owned(),
            skeleton: *skeleton,
            is_supervised: fields.get("supervised", "true or false is required", Value::as_bool)?,
            pes: fields.number("pes", 1, PES_MAX.into())? as u32,
            threads: fields.number("threads", 1, WORKERS_MAX.into())? as u32,
            sleep_late_ns: fields.number("sleep_late_ns", 0, LATE_NS_MAX)?,
            spread_ns: fields.number("spread_ns", 0, u64::MAX)?,
            task_ns: tasks(&fields.times(items)?),
            figures: JobFigures { makespan_ns: fields.number("makespan_ns", 1, u64::MAX)?, counts },
        })
    }

    /// The number of tasks.
    pub fn tasks(&self) -> u64 {
        self.task_ns.len() as u64
    }
}

impl ItemCosts for Recording {
    fn item_ns(&self, item: u64) -> u64 {
        self.task_ns[item as usize]
    }
}

/// The object that is read.
struct Fields<'a>(&'a Value);

impl<'a> Fields<'a> {
    fn get<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, RecordingError> {
        let value = self.0.get(key).and_then(read);
        value.ok_or_else(|| RecordingError::Field(key, allowed.to_owned()))
    }

    fn text(&self, key: &'static str) -> Result<&'a str, RecordingError> {
        self.get(key, "a text is required", Value::as_str)
    }

    fn number(&self, key: &'static str, least: u64, most: u64) -> Result<u64, RecordingError> {
        let allowed = match most {
            u64::MAX => format!("a whole number of {least} or more is required"),
            _ => format!("a whole number from {least} to {most} is required"),
        };
        let is_allowed = |number: &u64| (least..=most).contains(number);
        self.get(key, &allowed, |value| value.as_u64().filter(is_allowed))
    }

    fn times(&self, items: u64) -> Result<Vec<u64>, RecordingError> {
        let allowed = "a list of nanoseconds, one for each item, is required";
        let times = self.get("task_ns", allowed, Value::as_array)?;
        if times.len() as u64 != items {
            return Err(RecordingError::Truncated(items, times.len()));
        }
        let time = |(item, time): (usize, &Value)| {
            let believed = time.as_u64().filter(|ns| *ns <= TASK_NS_MAX);
            believed.ok_or_else(|| RecordingError::Time(item, time.to_string()))
        };
        times.iter().enumerate().map(time).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"program":"naps","skeleton":"par-map","supervised":true,"pes":4,
        "threads":1,"items":5,"dead":0,"makespan_ns":9,"fishes":1,"forwards":2,"schedules":3,
        "stolen":4,"no_works":5,"notifies":6,"acks":7,"sleep_late_ns":8,
        "spread_ns":11,"task_ns":[10,20,30,40,50]}"#;

    fn refusal(from: &str, to: &str) -> String {
        assert!(WHOLE.contains(from), "{from}");
        Recording::read(&WHOLE.replacen(from, to, 1)).expect_err(to).to_string()
    }

    #[test]
    fn a_recording_is_read() {
        let recording = Recording::read(WHOLE).expect("it is whole");
        let figures = JobFigures { makespan_ns: 9, counts: [1, 2, 3, 4, 5, 6, 7] };
        assert_eq!(recording.figures, figures);
        assert_eq!((recording.pes, recording.threads, recording.is_supervised), (4, 1, true));
        assert_eq!((recording.tasks(), recording.item_ns(4)), (5, 50));
        assert_eq!((recording.sleep_late_ns, recording.spread_ns), (8, 11));
    }

    #[test]
    fn tasks_of_several_items_take_as_long_as_these() {
        let tasks = |skeleton: &str| {
            let json = WHOLE.replace("par-map", skeleton);
            Recording::read(&json).expect("it is whole").task_ns
        };
        assert_eq!(tasks("push-map-chunked"), [100, 50]);
        assert_eq!(tasks("par-map-sliced"), [10 + 30 + 50, 20 + 40]);
    }

    #[test]
    fn what_is_cut_off_says_what_is_allowed() {
        for length in [0, 1, 40, WHOLE.len() - 1] {
            let text = Recording::read(&WHOLE[..length]).expect_err("it is cut off").to_string();
            assert!(text.starts_with("the recording is no whole JSON object: EOF"), "{text}");
            assert!(text.ends_with("with --record FILE, unchanged"), "{text}");
        }
        assert_eq!(
            refusal(",40,50", ""),
            "the recording has 3 task times for 5 items: there must be one in `task_ns` for each \
             item; was the file cut off?"
        );
        assert!(refusal("50]", "50,60]").contains("6 task times for 5 items"));
    }

    #[test]
    fn times_that_cannot_be_meant_are_refused() {
        for time in ["-30", "3.5", "\"30\"", "null", "86400000000001", "1e300"] {
            let text = refusal("30", time);
            assert!(text.contains("the time of item 2 of the recording, is not"), "{text}");
            assert!(text.ends_with("nanoseconds from 0 to 86400000000000 (a day) are allowed"));
        }
    }

    #[test]
    fn fields_that_cannot_be_meant_say_what_is_allowed() {
        assert_eq!(
            refusal("\"items\":5", "\"items\":0"),
            "the recording has no usable `items`: a whole number from 1 to 4294967295 is required"
        );
        assert!(refusal("\"pes\":4", "\"pes\":0").contains("from 1 to 4194304"));
        assert!(refusal("\"threads\"", "\"thread\"").contains("no usable `threads`"));
        assert!(refusal("true", "1").contains("true or false is required"));
        assert!(refusal("\"acks\":7", "\"acks\":-7").ends_with("of 0 or more is required"));
        assert!(refusal("late_ns\":8", "late_ns\":1000000001").contains("from 0 to 1000000000"));
        assert!(refusal("\"dead\":0", "\"dead\":1").contains("only jobs without deaths"));
        let text = refusal("par-map", "rayon");
        assert!(text.contains("`rayon` cannot be simulated, but par-map, par-map-chunked"));
        assert!(refusal("[10,20,30,40,50]", "5").contains("a list of nanoseconds"));
        assert!(Recording::read("[]").expect_err("a list").to_string().contains("`skeleton`"));
    }
}
