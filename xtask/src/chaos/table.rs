//! The table at the end, with a line for each configuration.

use std::time::Duration;

use super::Configuration;
use super::job::{Ended, Verdict};

/// What became of the jobs of one configuration.
pub(crate) struct Row {
    pub(crate) configuration: Configuration,
    /// What a job takes if nobody is killed.
    pub(crate) usual: Duration,
    runs: usize,
    /// How many PEs were killed, job by job.
    killed: Vec<u64>,
    replicas: Vec<u64>,
    /// Of the jobs that ended well, in milliseconds.
    took: Vec<u64>,
    slow: usize,
    wrong: usize,
    hung: usize,
    left: usize,
}

impl Row {
    pub(crate) fn new(configuration: Configuration, usual: Duration) -> Self {
        let (killed, replicas, took) = (Vec::new(), Vec::new(), Vec::new());
        let (runs, slow, wrong, hung, left) = (0, 0, 0, 0, 0);
        Row { configuration, usual, runs, killed, replicas, took, slow, wrong, hung, left }
    }

    pub(crate) fn add(&mut self, ended: &Ended, slow: bool) {
        self.runs += 1;
        self.killed.push(ended.killed.len() as u64);
        self.replicas.extend(ended.replicas);
        match ended.verdict {
            Verdict::Right => self.took.push(ended.took.as_millis() as u64),
            Verdict::Wrong(_) => self.wrong += 1,
            Verdict::Hung => self.hung += 1,
        }
        self.slow += usize::from(slow);
        self.left += ended.left.len();
    }

    fn cells(&self) -> [String; 16] {
        let Configuration { mpi, lane, program, skeleton } = &self.configuration;
        let seconds = |millis: u64| format!("{:.2}", millis as f64 / 1000.0);
        let [killed, killed_most] = spread(&self.killed, |n| n.to_string());
        let [replicas, replicas_most] = spread(&self.replicas, |n| n.to_string());
        let [took, longest] = spread(&self.took, seconds);
        [
            mpi.family.name().to_owned(),
            (*lane).to_owned(),
            program.name.to_owned(),
            (*skeleton).to_owned(),
            self.runs.to_string(),
            killed,
            killed_most,
            replicas,
            replicas_most,
            seconds(self.usual.as_millis() as u64),
            took,
            longest,
            self.slow.to_string(),
            self.wrong.to_string(),
            self.hung.to_string(),
            self.left.to_string(),
        ]
    }

    /// How many PEs were killed.
    pub(crate) fn killed(&self) -> u64 {
        self.killed.iter().sum()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.wrong + self.hung + self.left > 0
    }
}

/// Median and largest.
fn spread(values: &[u64], shown: impl Fn(u64) -> String) -> [String; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = |index: usize| sorted.get(index).map_or_else(|| "-".to_owned(), |n| shown(*n));
    [at(sorted.len() / 2), at(sorted.len().wrapping_sub(1))]
}

/// The columns, each with its heading.
const HEADINGS: [&str; 16] = [
    "launcher",
    "lane",
    "program",
    "skeleton",
    "runs",
    "failed PEs",
    "(most)",
    "replicas",
    "(most)",
    "s, no failures",
    "s, median",
    "(longest)",
    "slow",
    "wrong",
    "hung",
    "left",
];

/// How many columns of text there are; numbers follow.
const TEXT_COLUMNS: usize = 4;

pub(crate) fn table(rows: &[Row]) -> String {
    let head = HEADINGS.map(str::to_owned);
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..HEADINGS.len()).map(width).collect();
    let line = |cells: &[String; 16]| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < TEXT_COLUMNS {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    lines.iter().map(line).collect()
}

/// All in one sentence.
pub(crate) fn total(rows: &[Row]) -> String {
    let sum = |of: fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    let killed: u64 = rows.iter().map(Row::killed).sum();
    let bereaved = rows.iter().flat_map(|row| &row.killed).filter(|killed| **killed > 0).count();
    format!(
        "{} jobs, {killed} PEs killed in {bereaved} of them: {} right results, {} wrong, {} hung, {} left \
         behind, {} slow",
        sum(|row| row.runs),
        sum(|row| row.took.len()),
        sum(|row| row.wrong),
        sum(|row| row.hung),
        sum(|row| row.left),
        sum(|row| row.slow),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::SUM_EULER;
    use crate::chaos::draw::Kill;
    use crate::mpi::{Family, Mpi};

    fn ended(verdict: Verdict, millis: u64, replicas: u64) -> Ended {
        Ended::new(verdict, Duration::from_millis(millis), replicas)
    }

    #[test]
    fn a_row_counts_what_became_of_its_jobs() {
        let mpi = Mpi { family: Family::OpenMpi, mpicc: "m".into(), mpiexec: "m".into() };
        let configuration =
            Configuration { mpi, lane: "tcp", program: SUM_EULER, skeleton: "par-map" };
        let mut row = Row::new(configuration, Duration::from_millis(900));
        row.add(&ended(Verdict::Right, 1000, 2), false);
        let mut bereaved = ended(Verdict::Right, 3250, 7);
        bereaved.killed = [2, 4].map(|pe| Kill { after: Duration::ZERO, pe }).to_vec();
        row.add(&bereaved, true);
        assert!(!row.has_failed());
        row.add(&ended(Verdict::Right, 1500, 0), false);
        row.add(&ended(Verdict::Hung, 30_000, 9), false);
        assert!(row.has_failed());
        let rows = [row];
        let table = table(&rows);
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        let numbers = "4 0 2 7 9 0.90 1.50 3.25 1 0 1 0";
        assert_eq!(words.join(" "), format!("Open MPI tcp sum_euler par-map {numbers}"));
        let lengths: Vec<_> = table.lines().map(str::len).collect();
        assert_eq!(lengths[0], lengths[1], "{table}");
        assert_eq!(
            total(&rows),
            "4 jobs, 2 PEs killed in 1 of them: 3 right results, 0 wrong, 1 hung, 0 left behind, 1 slow"
        );
    }
}
