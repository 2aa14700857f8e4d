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
use super::number::{seeds, whole};
use super::replay::replay;
use super::setup::read_text;
use crate::network::Network;
use crate::table::Row;
use crate::workload::recorded::{COUNTERS, JobFigures, Recording};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The deviation of the makespan that is the goal, and that of the counters, in percent.
const GOALS: [f64; 2] = [10.0, 20.0];

/// Recorded jobs, to be simulated and compared.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Validate {
    /// What examples wrote with --record; several recordings of the same job are taken together
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// What `ultramarine topo --json` printed in jobs of some numbers of PEs; for a recording of
    /// another number, that of the next smaller one is taken
    #[arg(long, required = true, value_name = "FILE")]
    measured: Vec<PathBuf>,
    /// How often each recording is simulated
    #[arg(long, default_value_t = 5, value_parser = whole(1..=10_000))]
    runs: u64,
    /// The seed of the first simulated run; each further one has the next seed
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object a line instead of the table
    #[arg(long)]
    json: bool,
}

/// A figure of a job: real and simulated.
struct Comparison {
    job: String,
    pes: u32,
    is_supervised: bool,
    figure: &'static str,
    goal: f64,
    /// The least, the median and the most.
    real: [f64; 3],
    simulated: [f64; 3],
}

/// What is told apart: program, skeleton, whether supervised, PEs, threads, tasks.
type Key = (u32, String, String, bool, u32, u64);

impl Validate {
    /// Simulates the recorded jobs, and writes what came of both.
    pub(super) fn show(&self, out: &mut dyn io::Write) -> Result<(), ExperimentError> {
        let seeds = seeds(self.seed, self.runs)?;
        let networks = self.networks()?;
        let mut jobs: BTreeMap<Key, Vec<Arc<Recording>>> = BTreeMap::new();
        for path in &self.recordings {
            let recording = Recording::read(&read_text(path)?)
                .map_err(|it| ExperimentError::content(path, it))?;
            jobs.entry(key(&recording)).or_default().push(Arc::new(recording));
        }
        let mut all: Vec<Comparison> = Vec::new();
        for recordings in jobs.values() {
            for figure in compare(recordings, &networks, &seeds)? {
                figure.row().write((all.is_empty(), self.json), out)?;
                all.push(figure);
            }
        }
        if !self.json {
            let count = |is: fn(&Comparison) -> bool| all.iter().filter(|it| is(it)).count();
            writeln!(
                out,
                "\n{} of {} figures within their goal, {} in the range of the real runs, {} in \
                 neither; of {} the real runs differ by more than the goal",
                count(Comparison::is_met),
                all.len(),
                count(Comparison::is_in_range),
                count(|it| !it.is_met() && !it.is_in_range()),
                count(|it| it.real_spread().is_none_or(|spread| spread > it.goal)),
            )?;
        }
        Ok(())
    }

    /// The measured networks, by the number of PEs in whose job they were measured.
    fn networks(&self) -> Result<BTreeMap<u32, Network>, ExperimentError> {
        let network = |path: &PathBuf| {
            let json = read_text(path)?;
            let network =
                Network::measured(&json).map_err(|it| ExperimentError::content(path, it))?;
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
) -> Result<Vec<Comparison>, ExperimentError> {
    let first = &recordings[0];
    let network = networks.range(..=first.pes).next_back().map(|(_, network)| network);
    let network = network.ok_or_else(|| {
        let known: Vec<String> = networks.keys().map(ToString::to_string).collect();
        let (pes, known) = (first.pes, known.join(", "));
        ExperimentError::Refused(format!(
            "there is a recording of {pes} PEs, but the networks are of {known}: give also what \
             `mpiexec -n {pes} ultramarine topo --json` prints, by --measured FILE"
        ))
    })?;
    let runs = recordings.iter().flat_map(|recording| seeds.clone().map(move |s| (recording, s)));
    let simulated = runs.map(|(recording, seed)| replay(recording, network, seed));
    let simulated = simulated.collect::<Result<Vec<JobFigures>, ExperimentError>>()?;
    let compared = |figure, goal, of: &dyn Fn(&JobFigures) -> f64| Comparison {
        job: format!("{} {}", first.program, first.name),
        pes: first.pes,
        is_supervised: first.is_supervised,
        figure,
        goal,
        real: spread(recordings.iter().map(|recording| of(&recording.figures))),
        simulated: spread(simulated.iter().map(of)),
    };
    let makespan = compared("makespan ms", GOALS[0], &|it| it.makespan_ns as f64 / 1e6);
    let counters = COUNTERS.iter().enumerate();
    let counters =
        counters.map(|(at, it)| compared(it.0, GOALS[1], &move |it| it.counts[at] as f64));
    let all = std::iter::once(makespan).chain(counters);
    Ok(all.filter(|it| it.real[1] + it.simulated[1] > 0.0).collect())
}

fn key(it: &Recording) -> Key {
    (it.pes, it.program.clone(), it.name.clone(), it.is_supervised, it.threads, it.tasks())
}

/// The least of these values, of which there is one at least, their median, and the greatest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (last, middle) = (values.len() - 1, values.len() / 2);
    // Of an even number: between the two in the middle.
    [values[0], f64::midpoint(values[last - middle], values[middle]), values[last]]
}

impl Comparison {
    /// How much more the simulated median is, in percent; `None` if the real one is 0.
    fn deviation(&self) -> Option<f64> {
        let ([_, real, _], [_, simulated, _]) = (self.real, self.simulated);
        (real > 0.0).then(|| 100.0 * (simulated / real - 1.0))
    }

    fn is_met(&self) -> bool {
        self.deviation().is_some_and(|deviation| deviation.abs() <= self.goal)
    }

    /// How much the real runs differ among themselves, in percent of their median; `None` if that
    /// is 0.
    fn real_spread(&self) -> Option<f64> {
        let [least, median, most] = self.real;
        (median > 0.0).then(|| 100.0 * (most - least) / median)
    }

    /// Whether the simulated median is within the range of the real runs.
    fn is_in_range(&self) -> bool {
        (self.real[0]..=self.real[2]).contains(&self.simulated[1])
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.is_in_range()) {
            (true, _) => "good",
            (false, true) => "missed, in range",
            (false, false) => "MISSED",
        }
    }

    fn row(&self) -> Row {
        let digits = usize::from(self.goal < GOALS[1]);
        Row::default()
            .text("job", "job", &self.job)
            .wide(JOB_WIDTH)
            .count("PEs", "pes", self.pes)
            .text("supervised", "supervised", if self.is_supervised { "yes" } else { "no" })
            .text("figure", "figure", self.figure)
            .wide(11)
            .real("real", "real", self.real[1], digits)
            .real("least", "real_least", self.real[0], digits)
            .real("most", "real_most", self.real[2], digits)
            .real("spread %", "real_spread_percent", self.real_spread(), 0)
            .real("simulated", "simulated", self.simulated[1], digits)
            .real("least", "simulated_least", self.simulated[0], digits)
            .real("most", "simulated_most", self.simulated[2], digits)
            .real("deviation %", "deviation_percent", self.deviation(), 1)
            .real("goal %", "goal_percent", self.goal, 0)
            .text("verdict", "verdict", self.verdict())
    }
}

/// The characters of the longest name of a job, `sum_euler par-map-2level-relaxed`.
const JOB_WIDTH: usize = 32;

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
        let row = |real: &[f64], simulated: &[f64]| Comparison {
            job: String::new(),
            pes: 2,
            is_supervised: false,
            figure: "FISH",
            goal: 20.0,
            real: spread(real.iter().copied()),
            simulated: spread(simulated.iter().copied()),
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
