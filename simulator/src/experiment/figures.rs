//! What a run came to, as experiments show it: the columns that their tables have in common.

use super::{Base, ExperimentError};
use crate::fault::InjectedFault;
use crate::report::RunReport;
use crate::table::{Cell, Column};
use crate::workload::Workload;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct RunFigures {
    /// What ran, in a word or two: the series in a chart.
    pub series: String,
    /// The worker threads of all PEs.
    pub cores: u64,
    /// The name of the network.
    pub network: String,
    /// What all chance came from.
    pub seed: u64,
    /// The time of the job, from its start to the end of its main task, in seconds.
    pub seconds: f64,
    /// The work over the time of all cores, from 0 to 1.
    pub efficiency: f64,
    /// All that was counted.
    pub report: RunReport,
    /// How long the simulation took, in seconds.
    pub wall_seconds: f64,
    /// The most memory that the simulation had, in bytes; 0 if the system does not say.
    pub rss_bytes: u64,
}

impl RunFigures {
    /// Runs a job, in which these faults happen, and says on standard error how it goes.
    ///
    /// # Errors
    /// If it does not come to its end, or not to the right result.
    pub fn of(
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
        let run = base.run_with(workload, faults);
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
    pub fn migrations(&self) -> u64 {
        let statistics = &self.report.statistics;
        statistics.by_distance.iter().map(|traffic| traffic.steals).sum::<u64>() + statistics.placed
    }

    /// All FISHes, forwarded ones as often as they were sent.
    pub fn fishes(&self) -> u64 {
        let traffic = &self.report.statistics.by_distance;
        traffic.iter().map(|traffic| traffic.fishes + traffic.forwards).sum()
    }

    /// How long the job had run when nine of ten workers computed for the first time, in seconds.
    pub fn full_seconds(&self) -> Option<f64> {
        self.report.full.map(|(first, _)| first.as_secs_f64())
    }

    /// How long the last PE was there after the end of the main task, in seconds.
    pub fn gone_seconds(&self) -> f64 {
        self.report.gone.saturating_sub(self.report.took).as_secs_f64()
    }
}

/// The characters of the longest name of a skeleton, `par_map_2level_relaxed`.
const SERIES_WIDTH: usize = 22;

/// The columns of a table whose rows are nothing but outcomes.
pub(super) fn columns(series: &'static str) -> Vec<Column<RunFigures>> {
    let own: fn(&RunFigures) -> &RunFigures = |row| row;
    let [mut head, times, counts] = [head(series, own), times(own), counts(own)];
    head.extend(times.into_iter().chain(counts));
    head
}

/// The first columns of a table: what ran where. `series` is the key of the series in JSON, and
/// its head.
pub(super) fn head<R: 'static>(series: &'static str, of: fn(&R) -> &RunFigures) -> Vec<Column<R>> {
    vec![
        Column::new(series, "", series, move |row| Cell::Text(of(row).series.clone()))
            .wide(SERIES_WIDTH),
        Column::new("cores", "", "cores", move |row| Cell::Count(of(row).cores)).wide(6),
        Column::new("PEs", "", "pes", move |row| Cell::Count(of(row).report.pes.into())).wide(6),
    ]
}

/// Its time and efficiency.
pub(super) fn times<R: 'static>(of: fn(&R) -> &RunFigures) -> Vec<Column<R>> {
    vec![
        Column::new("time", "s", "seconds", move |row| Cell::Real(of(row).seconds, 4)),
        Column::new("efficiency", "%", "", move |row| Cell::Real(100.0 * of(row).efficiency, 1))
            .only_in_text(),
        Column::new("", "", "efficiency", move |row| Cell::Real(of(row).efficiency, 4))
            .only_in_json(),
    ]
}

/// What was counted, and what it cost to simulate.
pub(super) fn counts<R: 'static>(of: fn(&R) -> &RunFigures) -> Vec<Column<R>> {
    let work = |figures: &RunFigures| figures.report.computed.as_secs_f64();
    let mut columns = vec![
        Column::new("tasks", "", "tasks", move |row| Cell::Count(of(row).report.tasks)),
        Column::new("migrated", "", "migrations", move |row| Cell::Count(of(row).migrations())),
        Column::new("FISHes", "", "fishes", move |row| Cell::Count(of(row).fishes())),
        Column::new("", "", "work_seconds", move |row| Cell::Real(work(of(row)), 4)).only_in_json(),
        Column::new("", "", "full_seconds", move |row| Cell::real(of(row).full_seconds(), 4))
            .only_in_json(),
        Column::new("", "", "gone_seconds", move |row| Cell::Real(of(row).gone_seconds(), 4))
            .only_in_json(),
        Column::new("", "", "deaths", move |row| Cell::Count(of(row).report.deaths.into()))
            .only_in_json(),
        Column::new("", "", "expelled", move |row| Cell::Count(of(row).report.expelled.into()))
            .only_in_json(),
        Column::new("", "", "roots_lost", move |row| Cell::Count(of(row).report.roots_lost.into()))
            .only_in_json(),
        Column::new("", "", "false_verdicts", move |row| {
            Cell::Count(of(row).report.innocents.into())
        })
        .only_in_json(),
        Column::new("", "", "replicas", move |row| Cell::Count(of(row).report.replicas))
            .only_in_json(),
        Column::new("", "", "peers_mean", move |row| Cell::Real(of(row).report.peers_mean(), 1))
            .only_in_json(),
        Column::new("", "", "peers_max", move |row| Cell::Count(of(row).report.peers.most))
            .only_in_json(),
        Column::new("", "", "peers_root", move |row| Cell::Count(of(row).report.peers.root))
            .only_in_json(),
    ];
    columns.extend(costs(of));
    columns
}

/// What it cost to simulate, and on what network.
pub(super) fn costs<R: 'static>(of: fn(&R) -> &RunFigures) -> Vec<Column<R>> {
    vec![
        Column::new("events", "", "events", move |row| Cell::Count(of(row).report.events)).wide(10),
        Column::new("simulated in", "s", "wall_seconds", move |row| {
            Cell::Real(of(row).wall_seconds, 1)
        }),
        Column::new("memory", "MB", "", move |row| Cell::Count(of(row).rss_bytes >> 20))
            .only_in_text(),
        Column::new("", "", "rss_bytes", move |row| Cell::Count(of(row).rss_bytes)).only_in_json(),
        Column::new("", "", "network", move |row| Cell::Text(of(row).network.clone()))
            .only_in_json(),
        Column::new("", "", "seed", move |row| Cell::Count(of(row).seed)).only_in_json(),
    ]
}

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
