//! Programs, tasks and transfers on 1, 2, 4, … all cores of this machine: by a process for each
//! core, by the threads of one process, and by a process for each NUMA domain.
//!
//! A core is faster while others rest. So the efficiency on `n` cores is the rate there, over the
//! sum of the rates of independent jobs that keep `n` cores busy at the same time: `n` jobs of one
//! PE, or `n / 2` jobs of two where PEs talk to each other. It is taken within one repetition.
//!
//! Each number of cores has its share of the time, from the smallest on. What does not fit is left
//! out, until time is left at the end. Then all is repeated, and medians count.

mod chart;
pub(crate) mod ring;
mod work;

use crate::launch::{self, Bench};
use crate::{Report, Sample};
use serde::Deserialize;
use std::process::Command;
use std::time::{Duration, Instant};
use ultramarine::{Error, Result};
use ultramarine_topology::Domains;
use work::{WORKS, Work};

/// The most rounds. The second repeats nothing.
const ROUNDS: usize = 9;
/// Flags of both launchers: processes may use all cores, as threads may; or one NUMA domain each.
const FREE: &[&str] = &["--bind-to", "none"];
const BOUND: &[&str] = &["--bind-to", "numa", "--map-by", "numa"];
const PICTURE: &str = "cores.svg";
const BUILD: &str = "cargo build --release -p ultramarine-examples --bins --features bench";

/// How the cores of a job are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// A process with one thread on each.
    Processes,
    /// One process: of one PE, or of a PE for each core where PEs talk to each other.
    Threads,
    /// One PE for each of these NUMA domains, bound to it.
    Domains(u32),
}

impl Manner {
    fn name(self) -> &'static str {
        match self {
            Manner::Processes => "processes",
            Manner::Threads => "threads",
            Manner::Domains(_) => "NUMA domains",
        }
    }
}

/// What a job prints: an example its result and seconds, others their rate.
#[derive(Deserialize)]
struct Done {
    #[serde(default)]
    result: f64,
    #[serde(default)]
    seconds: f64,
    #[serde(alias = "gigaflops", alias = "tasks_per_second")]
    rate: Option<f64>,
}

impl Done {
    /// The work done in a second. The results of programs without a rate grow like their work.
    fn rate(&self) -> f64 {
        self.rate.unwrap_or(self.result / self.seconds)
    }
}

/// One work on one number of cores.
struct Cell {
    work: &'static Work,
    cores: u32,
    /// For each manner the figures, and the efficiencies in percent.
    found: Vec<(Manner, Sample, Sample)>,
    /// The seconds of the last repetition.
    took: Option<f64>,
    has_failed: bool,
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    check(bench)?;
    let whole = u32::try_from(crate::cores()).unwrap_or(u32::MAX);
    let host = Domains::of_this_host();
    let (cores, domains) = host.map_or((whole, 1), |host| (host.cores, host.numa_nodes));
    let counts = core_counts(cores);
    let mut cells = cells(&counts, domains);
    let (start, time) = (Instant::now(), Duration::from_mins(u64::from(bench.minutes)));
    for round in 0..bench.rounds(ROUNDS) {
        let mut ran = false;
        for index in 0..cells.len() {
            let expected = cells[..=index].iter().rev().find(|cell| cell.is_like(&cells[index]));
            let expected = expected.and_then(|cell| cell.took).unwrap_or(0.0);
            let cell = &mut cells[index];
            let part = match round {
                0 => counts.iter().filter(|count| **count <= cell.cores).count(),
                _ => counts.len(),
            };
            let end = start + time.mul_f64(part as f64 / counts.len() as f64);
            let fits = Instant::now() + Duration::from_secs_f64(expected) < end;
            // The second round is for what the first has left out.
            if cell.has_failed || !fits || (round == 1 && cell.took.is_some()) {
                continue;
            }
            ran = true;
            eprintln!("    {} on {} cores", cell.work.name, cell.cores);
            if let Err(error) = cell.run(bench) {
                cell.has_failed = true;
                let what = format!("{} on {} cores", cell.work.name, cell.cores);
                report.missing(&what, &error.to_string());
            }
        }
        if !ran && round > 1 {
            break;
        }
    }
    show(&cells, report);
    let path = bench.plots.join(PICTURE);
    let written = chart::write(&cells, cores, &path);
    written.map_err(|error| Error::other(format!("cannot draw {}: {error}", path.display())))?;
    report.text(&format!("The efficiencies are drawn in {}.", path.display()));
    Ok(())
}

/// Refuses to begin without the programs or the launcher.
fn check(bench: &Bench) -> Result<()> {
    for work in &WORKS {
        let program = bench.program(work.program, "");
        let path = std::path::Path::new(program.get_program());
        if !path.is_file() {
            return Err(Error::other(format!("{} is not built: {BUILD}", path.display())));
        }
    }
    let refused =
        |error: Error| Error::other(format!("{error} (MPIEXEC_FOR_TESTS names the launcher)"));
    launch::run(&mut bench.on(1, &Command::new("true"))).map(drop).map_err(refused)
}

/// The powers of two up to the number of cores, and that number.
fn core_counts(cores: u32) -> Vec<u32> {
    let powers = (0..32).map(|power| 1 << power).take_while(|count| *count < cores);
    powers.chain([cores]).collect()
}

fn cells(counts: &[u32], domains: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &cores in counts {
        for work in WORKS.iter().filter(|work| cores >= work.cores_min) {
            let mut manners = vec![Manner::Processes];
            // What only sends does so between processes: inside one it hands pointers on.
            if cores > 1 && !work.talks() {
                manners.push(Manner::Threads);
                if domains > 1 && cores > domains && cores.is_multiple_of(domains) {
                    manners.push(Manner::Domains(domains));
                }
            }
            let new = |manner| (manner, Sample::new(), Sample::new());
            let found = manners.into_iter().map(new).collect();
            cells.push(Cell { work, cores, found, took: None, has_failed: false });
        }
    }
    cells
}

impl Cell {
    fn is_like(&self, other: &Cell) -> bool {
        self.work.name == other.work.name && self.took.is_some()
    }

    /// Measures all manners once, after the independent jobs.
    fn run(&mut self, bench: &Bench) -> Result<()> {
        let start = Instant::now();
        let (cores, work) = (self.cores, self.work);
        let copies = cores / work.copy_pes;
        let copy = || {
            let copy = work.job(bench, cores, "--threads 1", true);
            let by_launcher = bench.with_flags(FREE, work.copy_pes, &copy);
            launch::run(&mut if work.talks() { by_launcher } else { copy })?
                .json::<Done>()
                .map(|done| done.rate())
        };
        let rates: Result<Sample> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..copies).map(|_| scope.spawn(copy)).collect();
            running.into_iter().map(|copy| copy.join().expect("it reports failures")).collect()
        });
        let each = rates?.mean() / f64::from(work.copy_pes);
        for (manner, figures, efficiencies) in &mut self.found {
            let job = |flags: &str| work.job(bench, cores, flags, false);
            let mut job = match *manner {
                Manner::Processes => bench.with_flags(FREE, cores, &job("--threads 1")),
                Manner::Threads => job(&format!("--pes 1 --threads {cores}")),
                Manner::Domains(domains) => bench.with_flags(
                    BOUND,
                    domains,
                    &job(&format!("--threads {}", cores / domains)),
                ),
            };
            let done: Done = launch::run(&mut job)?.json()?;
            figures.push(work.figure(&done));
            efficiencies.push(100.0 * done.rate() / (f64::from(cores) * each));
        }
        self.took = Some(start.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Prints the table, and what is not in it.
fn show(cells: &[Cell], report: &Report) {
    let row = |what: &str, cores: &str, how: &str, figure: &str, efficiency: &str, runs: &str| {
        let row =
            format!("{what:<14} {cores:>5}  {how:<13} {figure:>12} {efficiency:>10} {runs:>5}");
        report.text(row.trim_end());
    };
    row("what", "cores", "how", "median", "efficiency", "runs");
    for cell in cells.iter().filter(|cell| cell.took.is_some()) {
        for (manner, figures, efficiencies) in &cell.found {
            let cores = cell.cores.to_string();
            let figure = cell.work.unit.shown(figures.median());
            let efficiency = format!("{:.1} %", efficiencies.median());
            let runs = figures.len().to_string();
            row(cell.work.name, &cores, manner.name(), &figure, &efficiency, &runs);
        }
    }
    let missing = cells.iter().filter(|cell| cell.took.is_none() && !cell.has_failed);
    let missing: Vec<_> =
        missing.map(|cell| format!("{} on {}", cell.work.name, cell.cores)).collect();
    if !missing.is_empty() {
        report.text(&format!("Left out for time (more --minutes): {}.", missing.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cores_are_the_last_count() {
        assert_eq!(core_counts(1), [1]);
        assert_eq!(core_counts(8), [1, 2, 4, 8]);
        assert_eq!(core_counts(6), [1, 2, 4, 6]);
    }

    #[test]
    fn domains_are_used_where_they_divide_the_cores() {
        let cells = cells(&[1, 2, 4, 6], 2);
        let has = |cores, manner| {
            let mut cells = cells.iter().filter(|cell| cell.cores == cores && !cell.work.talks());
            cells.all(|cell| cell.found.iter().any(|found| found.0 == manner))
        };
        assert!(has(4, Manner::Domains(2)) && has(6, Manner::Domains(2)));
        assert!(!has(2, Manner::Domains(2)) && !has(1, Manner::Threads));
        assert!(cells.iter().all(|cell| cell.cores >= cell.work.cores_min));
    }

    #[test]
    fn a_rate_is_printed_or_follows_from_the_result() {
        let rate = |line| serde_json::from_str::<Done>(line).expect("is JSON").rate();
        assert!((rate("{\"result\": 6, \"seconds\": 2.0}") - 3.0).abs() < 1e-9);
        assert!(
            (rate("{\"result\": 1e-15, \"seconds\": 2.0, \"gigaflops\": 7.5}") - 7.5).abs() < 1e-9
        );
        assert!((rate("{\"tasks_per_second\": 5.0, \"stolen\": 3}") - 5.0).abs() < 1e-9);
    }
}
