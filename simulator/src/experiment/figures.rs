//! What a run came to, as experiments show it: the columns that their tables have in common.

use super::{Base, ExperimentError};
use crate::fault::InjectedFault;
use crate::report::RunReport;
use crate::table::Row;
use crate::workload::Workload;
use crate::workload::recorded::sum;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// What a run came to.
#[derive(Clone, Debug)]
pub(super) struct RunFigures {
    /// What ran, in a word or two: the series in a chart.
    pub(super) series: String,
    /// The worker threads of all PEs.
    pub(super) cores: u64,
    /// The name of the network.
    pub(super) network: String,
    /// What all chance came from.
    pub(super) seed: u64,
    /// The time of the job, from its start to the end of its main task, in seconds.
    pub(super) seconds: f64,
    /// The work over the time of all cores, from 0 to 1.
    pub(super) efficiency: f64,
    /// All that was counted.
    pub(super) report: RunReport,
    /// How long the simulation took, in seconds.
    pub(super) wall_seconds: f64,
    /// The most memory that the simulation had, in bytes; 0 if the system does not say.
    pub(super) rss_bytes: u64,
}

impl RunFigures {
    /// Runs a job, in which these faults happen, and says on standard error how it goes.
    pub(super) fn of(
        series: &str,
        base: &Base,
        workload: Arc<dyn Workload>,
        faults: Vec<(u64, InjectedFault)>,
    ) -> Result<RunFigures, ExperimentError> {
        let (cores, pes) = (base.machine.cores(), base.machine.pes());
        let what = format!("{series} on {cores} cores, {pes} PEs");
        note(format_args!("{what} …"));
        forget_memory_peak();
        let begun = Instant::now();
        let run = base.run(workload, faults);
        let wall_seconds = begun.elapsed().as_secs_f64();
        let figures = RunFigures {
            series: series.to_owned(),
            cores,
            network: base.network.name().to_owned(),
            seed: base.seed,
            seconds: run.report.took.as_secs_f64(),
            efficiency: base.efficiency(&run),
            report: run.report,
            wall_seconds,
            rss_bytes: memory_peak().unwrap_or(0),
        };
        if let Some(fault) = run.fault {
            note(format_args!(" failed\n"));
            return Err(ExperimentError::Fault { what, fault, seed: base.seed });
        }
        let (seconds, percent) = (figures.seconds, 100.0 * figures.efficiency);
        let RunReport { deaths, expelled, roots_lost, replicas, .. } = &figures.report;
        let early = expelled + roots_lost;
        let lost = if base.faults.is_empty() {
            String::new()
        } else {
            format!("; {deaths} died, {early} left early, {replicas} copies")
        };
        note(format_args!(
            " {seconds:.4} s, {percent:.1} %{lost}; simulated in {wall_seconds:.1} s\n"
        ));
        Ok(figures)
    }

    /// How many tasks went from PE to PE: stolen or placed.
    pub(super) fn migrations(&self) -> u64 {
        sum(&self.report.statistics, |traffic| traffic.steals) + self.report.statistics.placed
    }

    /// All FISHes, forwarded ones as often as they were sent.
    fn fishes(&self) -> u64 {
        sum(&self.report.statistics, |traffic| traffic.fishes + traffic.forwards)
    }

    /// How long the job had run when nine of ten workers computed for the first time, in seconds.
    pub(super) fn full_seconds(&self) -> Option<f64> {
        self.report.full.map(|full| full.as_secs_f64())
    }

    /// How long the last PE was there after the end of the main task, in seconds.
    pub(super) fn gone_seconds(&self) -> f64 {
        self.report.gone.saturating_sub(self.report.took).as_secs_f64()
    }

    /// The row of a run, with an experiment's own columns after the times. `series` is the key of
    /// the series in JSON, and its head.
    pub(super) fn row(&self, series: &'static str, own: Row) -> Row {
        self.head(series).and(self.times()).and(own).and(self.counts())
    }

    /// The first columns: what ran where.
    pub(super) fn head(&self, series: &'static str) -> Row {
        Row::default()
            .text(series, series, &self.series)
            .wide(SERIES_WIDTH)
            .count("cores", "cores", self.cores)
            .wide(6)
            .count("PEs", "pes", self.report.pes)
            .wide(6)
    }

    /// Its time.
    pub(super) fn time(&self) -> Row {
        Row::default().real("time s", "seconds", self.seconds, 4)
    }

    /// Its time and efficiency.
    pub(super) fn times(&self) -> Row {
        let percent = self.time().real("efficiency %", "", 100.0 * self.efficiency, 1);
        percent.real("", "efficiency", self.efficiency, 4)
    }

    /// What was counted, and what it cost to simulate.
    pub(super) fn counts(&self) -> Row {
        let report = &self.report;
        let row = Row::default()
            .count("tasks", "tasks", report.tasks)
            .count("migrated", "migrations", self.migrations())
            .count("FISHes", "fishes", self.fishes())
            .real("", "work_seconds", report.computed.as_secs_f64(), 4)
            .real("", "full_seconds", self.full_seconds(), 4)
            .real("", "gone_seconds", self.gone_seconds(), 4)
            .count("", "deaths", report.deaths)
            .count("", "expelled", report.expelled)
            .count("", "roots_lost", report.roots_lost)
            .count("", "false_verdicts", report.innocents)
            .count("", "replicas", report.replicas)
            .real("", "peers_mean", report.peers_mean(), 1)
            .count("", "peers_max", report.peers.most)
            .count("", "peers_root", report.peers.root);
        row.and(self.costs())
    }

    /// What it cost to simulate, and on what network.
    pub(super) fn costs(&self) -> Row {
        Row::default()
            .count("events", "events", self.report.events)
            .wide(10)
            .real("simulated in s", "wall_seconds", self.wall_seconds, 1)
            .count("memory MB", "", self.rss_bytes >> 20)
            .count("", "rss_bytes", self.rss_bytes)
            .text("", "network", &self.network)
            .count("", "seed", self.seed)
    }
}

/// The characters of the longest name of a skeleton, `par_map_2level_relaxed`.
const SERIES_WIDTH: usize = 22;

/// A number with a comma between each three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Says something on standard error; it does not matter if no one reads it.
fn note(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// The most memory that this process has had, in bytes.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Lets the system begin anew to note the most memory. Where it does not, the peak is that of all
/// runs so far.
fn forget_memory_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped_by_three() {
        let texts = [0, 999, 1_000, 96_000, 500_000_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "96,000", "500,000,000"]);
    }
}
