//! Real jobs beside simulated ones: is the model believable?
//!
//! A recording has the task times of a real job and its counters. The same job is simulated, with
//! messages that cost what `ultramarine topo --json` measured. Counters of small jobs are random:
//! so there are several recordings of each job and several simulated runs, and medians are
//! compared. `cargo xtask simulate validate` makes the recordings.
//!
//! Where the real runs differ by more than the goal among themselves, their median is as random as
//! they are, and only chance brings the simulated one near it. So it also counts how often the
//! simulated median is within the range of the real runs.

use super::ExperimentError;
use super::number::{seeds, whole_number};
use super::output::write_row;
use super::replay::{ReplayError, replay};
use super::setup::read_text;
use crate::network::{MeasuredError, Network};
use crate::table::{Cell, Column, Table};
use crate::workload::recorded::{JobFigures, Recording, RecordingError};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name, the goal, and the value.
type Figure = (&'static str, f64, fn(&JobFigures) -> f64);

/// The figures that are compared, with the deviation that is the goal, in percent.
const FIGURES: [Figure; 8] = [
    ("makespan ms", 10.0, |it| it.makespan_ns as f64 / 1e6),
    ("FISH", 20.0, |it| it.fishes as f64),
    ("forwards", 20.0, |it| it.forwards as f64),
    ("SCHEDULE", 20.0, |it| it.schedules as f64),
    ("steals", 20.0, |it| it.steals as f64),
    ("NOWORK", 20.0, |it| it.no_works as f64),
    ("NOTIFY", 20.0, |it| it.notifies as f64),
    ("ACK", 20.0, |it| it.acks as f64),
];

/// Recorded jobs, to be simulated and compared.
#[derive(Clone, Debug, clap::Args)]
pub struct Validate {
    /// What examples wrote with --record; several recordings of the same job are taken together
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,

    /// What `ultramarine topo --json` printed in jobs of some numbers of PEs; for a recording of
    /// another number, that of the next smaller one is taken
    #[arg(long, required = true, value_name = "FILE")]
    measured: Vec<PathBuf>,

    /// How often each recording is simulated
    #[arg(long, default_value_t = 5, value_parser = whole_number::<u64>(1..=10_000))]
    runs: u64,

    /// The seed of the first simulated run; each further one has the next seed
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX))]
    seed: u64,

    /// Print one JSON object a line instead of the table
    #[arg(long)]
    json: bool,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },

    /// A recording cannot be used.
    #[error("{}: {cause}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: RecordingError,
    },

    /// A measured network cannot be used.
    #[error("{}: {cause}", path.display())]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: MeasuredError,
    },

    /// There is a recording of this number of PEs, but no network measured with as many or fewer.
    #[error(
        "there is a recording of {pes} PEs, but the networks are of {known}: give also what \
         `mpiexec -n {pes} ultramarine topo --json` prints, by --measured FILE"
    )]
    NoNetwork {
        /// The number of PEs.
        pes: u32,
        /// The numbers of those that were measured.
        known: String,
    },

    /// A recorded job cannot be simulated.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A figure of a job: real and simulated.
struct Row {
    job: String,
    pes: u32,
    is_supervised: bool,
    figure: &'static str,
    goal: f64,
    /// By size.
    real: Vec<f64>,
    simulated: Vec<f64>,
}

/// What is told apart: program, skeleton, whether supervised, PEs, threads, tasks.
type Key = (u32, String, String, bool, u32, u64);

impl Validate {
    /// Simulates the recorded jobs, and writes what came of both.
    ///
    /// # Errors
    /// If a file cannot be used, a simulated job goes wrong, or the output cannot be written. (That
    /// the figures deviate is no error.)
    pub fn show(&self, out: &mut dyn io::Write) -> Result<(), ExperimentError> {
        let seeds = seeds(self.seed, self.runs)?;
        let networks = self.networks()?;
        let mut jobs: BTreeMap<Key, Vec<Arc<Recording>>> = BTreeMap::new();
        for path in &self.recordings {
            let wrong = |cause| ValidateError::Recording { path: path.clone(), cause };
            let recording = Recording::read(&read(path)?).map_err(wrong)?;
            jobs.entry(key(&recording)).or_default().push(Arc::new(recording));
        }
        let table = Table::new(columns());
        let mut all: Vec<Row> = Vec::new();
        for recordings in jobs.values() {
            let rows = compare(recordings, &networks, &seeds)?;
            for row in rows {
                write_row(&table, &row, (all.is_empty(), self.json), out)?;
                all.push(row);
            }
        }
        if !self.json {
            let count = |is: fn(&Row) -> bool| all.iter().filter(|row| is(row)).count();
            writeln!(
                out,
                "\n{} of {} figures within their goal, {} in the range of the real runs, {} in \
                 neither; of {} the real runs differ by more than the goal",
                count(Row::is_met),
                all.len(),
                count(Row::is_in_range),
                count(|row| !row.is_met() && !row.is_in_range()),
                count(|row| row.real_spread().is_none_or(|spread| spread > row.goal)),
            )?;
        }
        Ok(())
    }

    /// The measured networks, by the number of PEs in whose job they were measured.
    fn networks(&self) -> Result<BTreeMap<u32, Network>, ValidateError> {
        let network = |path: &PathBuf| {
            let json = read(path)?;
            let wrong = |cause| ValidateError::Network { path: path.clone(), cause };
            let network = Network::measured(&json).map_err(wrong)?;
            let pes = serde_json::from_str::<serde_json::Value>(&json).ok();
            let pes = pes.as_ref().and_then(|line| line.get("pes")?.as_array().map(Vec::len));
            Ok((pes.unwrap_or(0) as u32, network))
        };
        self.measured.iter().map(network).collect()
    }
}

/// Simulates a job of which there are recordings, each with these seeds.
fn compare(
    recordings: &[Arc<Recording>],
    networks: &BTreeMap<u32, Network>,
    seeds: &Range<u64>,
) -> Result<Vec<Row>, ValidateError> {
    let first = &recordings[0];
    let network = networks.range(..=first.pes).next_back().map(|(_, network)| network);
    let network = network.ok_or_else(|| {
        let known: Vec<String> = networks.keys().map(ToString::to_string).collect();
        ValidateError::NoNetwork { pes: first.pes, known: known.join(", ") }
    })?;
    let runs = recordings.iter().flat_map(|recording| seeds.clone().map(move |s| (recording, s)));
    let simulated: Result<Vec<JobFigures>, ReplayError> =
        runs.map(|(recording, seed)| replay(recording, network, seed)).collect();
    let simulated = simulated?;
    let rows = FIGURES.iter().map(|(figure, goal, of)| Row {
        job: format!("{} {}", first.program, first.skeleton),
        pes: first.pes,
        is_supervised: first.is_supervised,
        figure,
        goal: *goal,
        real: sorted(recordings.iter().map(|recording| of(&recording.figures))),
        simulated: sorted(simulated.iter().map(of)),
    });
    Ok(rows.filter(|row| median(&row.real) + median(&row.simulated) > 0.0).collect())
}

fn key(it: &Recording) -> Key {
    (it.pes, it.program.clone(), it.skeleton.clone(), it.is_supervised, it.threads, it.tasks())
}

fn read(path: &Path) -> Result<String, ValidateError> {
    let unreadable = |cause| ValidateError::Unreadable { path: path.to_owned(), cause };
    read_text(path).map_err(unreadable)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values, of which there is one at least.
fn median(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

impl Row {
    /// How much more the simulated median is, in percent; `None` if the real one is 0.
    fn deviation(&self) -> Option<f64> {
        let (real, simulated) = (median(&self.real), median(&self.simulated));
        (real > 0.0).then(|| 100.0 * (simulated / real - 1.0))
    }

    fn is_met(&self) -> bool {
        self.deviation().is_some_and(|deviation| deviation.abs() <= self.goal)
    }

    /// How much the real runs differ among themselves, in percent of their median; `None` if that
    /// is 0.
    fn real_spread(&self) -> Option<f64> {
        let (least, most) = (self.real[0], self.real[self.real.len() - 1]);
        let middle = median(&self.real);
        (middle > 0.0).then(|| 100.0 * (most - least) / middle)
    }

    /// Whether the simulated median is within the range of the real runs.
    fn is_in_range(&self) -> bool {
        (self.real[0]..=self.real[self.real.len() - 1]).contains(&median(&self.simulated))
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.is_in_range()) {
            (true, _) => "good",
            (false, true) => "missed, in range",
            (false, false) => "MISSED",
        }
    }
}

/// The characters of the longest name of a job, `sum_euler par-map-2level-relaxed`.
const JOB_WIDTH: usize = 32;

fn columns() -> Vec<Column<Row>> {
    let digits = |row: &Row| usize::from(row.goal < 20.0);
    let number = move |of: fn(&Row) -> f64| move |row: &Row| Cell::Real(of(row), digits(row));
    let text = |text: &str| Cell::Text(text.to_owned());
    vec![
        Column::new("job", "", "job", move |row: &Row| text(&row.job)).wide(JOB_WIDTH),
        Column::new("PEs", "", "pes", |row: &Row| Cell::Count(row.pes.into())),
        Column::new("supervised", "", "supervised", move |row: &Row| {
            text(if row.is_supervised { "yes" } else { "no" })
        }),
        Column::new("figure", "", "figure", move |row: &Row| text(row.figure)).wide(11),
        Column::new("real", "", "real", number(|row: &Row| median(&row.real))),
        Column::new("least", "", "real_least", number(|row: &Row| row.real[0])),
        Column::new("most", "", "real_most", number(|row: &Row| row.real[row.real.len() - 1])),
        Column::new("spread", "%", "real_spread_percent", |row: &Row| {
            Cell::real(row.real_spread(), 0)
        }),
        Column::new("simulated", "", "simulated", number(|row: &Row| median(&row.simulated))),
        Column::new("least", "", "simulated_least", number(|row: &Row| row.simulated[0])),
        Column::new(
            "most",
            "",
            "simulated_most",
            number(|row: &Row| row.simulated[row.simulated.len() - 1]),
        ),
        Column::new("deviation", "%", "deviation_percent", |row: &Row| {
            Cell::real(row.deviation(), 1)
        }),
        Column::new("goal", "%", "goal_percent", |row: &Row| Cell::Real(row.goal, 0)),
        Column::new("verdict", "", "verdict", move |row: &Row| text(row.verdict())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NETWORK: &str =
        r#"{"latency":[{"share":"numa","p50_us":4.0,"p99_us":20.0}],"pes":[1,2]}"#;
    const RECORDING: &str = r#"{"program":"naps","skeleton":"push-map","supervised":true,"pes":2,
        "threads":1,"items":8,"dead":0,"makespan_ns":42000000,"fishes":0,"forwards":0,"schedules":0,
        "stolen":0,"no_works":0,"notifies":9,"acks":0,"sleep_late_ns":60000,"spread_ns":1000,"task_ns":[10000000,10000000,10000000,
        10000000,10000000,10000000,10000000,10000000]}"#;

    /// What comes of files with these contents.
    fn shown(name: &str, network: &str, recording: &str, json: bool) -> Result<String, String> {
        let file = |what: &str| {
            let name = format!("ultramarine-validate-{}-{name}-{what}", std::process::id());
            std::env::temp_dir().join(name)
        };
        let (network_file, recording_file) = (file("network"), file("recording"));
        fs::write(&network_file, network).expect("it can be written");
        fs::write(&recording_file, recording).expect("it can be written");
        let recordings = vec![recording_file.clone(), recording_file.clone()];
        let measured = vec![network_file.clone()];
        let validate = Validate { recordings, measured, runs: 3, seed: 1, json };
        let mut out = Vec::new();
        let done = validate.show(&mut out).map_err(|error| error.to_string());
        fs::remove_file(network_file).expect("it is there");
        fs::remove_file(recording_file).expect("it is there");
        done.map(|()| String::from_utf8(out).expect("text"))
    }

    #[test]
    fn real_and_simulated_are_side_by_side() {
        let text = shown("table", NETWORK, RECORDING, false).expect("it can be simulated");
        let line = |figure: &str| {
            let line = text.lines().find(|line| line.contains(figure));
            line.unwrap_or_else(|| panic!("no {figure} in:\n{text}"))
        };
        assert!(line("makespan").ends_with("10  good"), "{text}");
        assert!(line("NOTIFY").ends_with("-100.0        20  MISSED"), "{text}");
        assert!(!text.contains("steals"), "there are none in either: {text}");
    }

    #[test]
    fn json_has_a_line_for_each_figure() {
        let text = shown("json", NETWORK, RECORDING, true).expect("it can be simulated");
        let first: serde_json::Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        assert_eq!((&first["figure"], &first["real"]), (&"makespan ms".into(), &42.0.into()));
        assert_eq!((&first["pes"], &first["goal_percent"]), (&2.into(), &10.0.into()));
        assert!(first["simulated_least"].as_f64() <= first["simulated_most"].as_f64());
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let refusal = |network: &str, recording: &str| {
            shown("refused", network, recording, false).expect_err("it cannot be used")
        };
        let text = refusal(NETWORK, &RECORDING[..100]);
        assert!(text.contains("-recording: the recording is no whole JSON object"), "{text}");
        let text = refusal("{}", RECORDING);
        assert!(text.contains("-network: the measured network has no round trips"), "{text}");
        let text = refusal(&NETWORK.replace("[1,2]", "[1,2,3]"), RECORDING);
        assert!(text.starts_with("there is a recording of 2 PEs, but the networks are of 3: give"));
    }

    #[test]
    fn medians_and_spreads_decide() {
        let row = |real: &[f64], simulated: &[f64]| Row {
            job: String::new(),
            pes: 2,
            is_supervised: false,
            figure: "FISH",
            goal: 20.0,
            real: real.to_vec(),
            simulated: simulated.to_vec(),
        };
        assert_eq!(row(&[8.0, 10.0, 30.0], &[1.0, 29.0]).verdict(), "missed, in range");
        assert_eq!(row(&[8.0, 10.0, 30.0], &[1.0, 12.0]).verdict(), "MISSED");
        assert_eq!(row(&[8.0, 10.0, 30.0], &[11.0, 13.0]).verdict(), "good");
        assert_eq!(row(&[8.0, 10.0], &[13.0]).verdict(), "MISSED");
        assert_eq!(row(&[8.0, 10.0, 12.0], &[13.0]).real_spread(), Some(40.0));
        assert_eq!(row(&[0.0], &[13.0]).deviation(), None);
        assert_eq!(row(&[0.0, 0.0, 1.0], &[0.0]).real_spread(), None);
    }
}
