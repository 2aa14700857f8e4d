//! The table of jobs in which PEs were killed, with a line for each configuration.

use std::time::Duration;

use super::configuration::Configuration;
use super::counts::Counts;
use super::ended::{Ended, Judgement};

/// What became of the jobs of one configuration.
pub(crate) struct Row {
    configuration: Configuration,
    /// How long a job takes if no PE is killed.
    usual: Duration,
    /// How many PEs were killed, job by job.
    killed: Vec<u64>,
    replicas: Vec<u64>,
    /// Of the jobs that ended well, in milliseconds.
    took: Vec<u64>,
    counts: Counts,
}

impl Row {
    fn new(configuration: Configuration, usual: Duration) -> Self {
        let (killed, replicas, took) = (Vec::new(), Vec::new(), Vec::new());
        Row { configuration, usual, killed, replicas, took, counts: Counts::default() }
    }

    fn add(&mut self, ended: &Ended, slow: bool) {
        self.killed.push(ended.killed);
        self.replicas.extend(ended.replicas);
        if ended.judgement == Judgement::Right {
            self.took.push(ended.took.as_millis() as u64);
        }
        self.counts.add(ended, slow);
    }

    fn cells(&self) -> [String; 16] {
        let Configuration { mpi, lane, program, skeleton } = &self.configuration;
        let seconds = |millis: u64| format!("{:.2}", millis as f64 / 1000.0);
        let [killed, killed_most] = spread(&self.killed, |n| n.to_string());
        let [replicas, replicas_most] = spread(&self.replicas, |n| n.to_string());
        let [took, longest] = spread(&self.took, seconds);
        // None of these may end with an error.
        let Counts { jobs, slow, wrong, ended, hung, left, .. } = self.counts;
        [
            mpi.family.name().to_owned(),
            (*lane).to_owned(),
            program.name.to_owned(),
            (*skeleton).to_owned(),
            jobs.to_string(),
            killed,
            killed_most,
            replicas,
            replicas_most,
            seconds(self.usual.as_millis() as u64),
            took,
            longest,
            slow.to_string(),
            (wrong + ended).to_string(),
            hung.to_string(),
            left.to_string(),
        ]
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

/// Counts a job of this configuration. Its `usual` time is without faults.
pub(crate) fn add(
    rows: &mut Vec<Row>,
    configuration: &Configuration,
    usual: Duration,
    ended: &Ended,
    slow: bool,
) {
    let is_it = |row: &Row| row.configuration == *configuration;
    let index = rows.iter().position(is_it).unwrap_or_else(|| {
        rows.push(Row::new(configuration.clone(), usual));
        rows.len() - 1
    });
    rows[index].add(ended, slow);
}

pub(crate) fn table(rows: &[Row]) -> String {
    let head = HEADINGS.map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| row.cells().to_vec());
    aligned(&std::iter::once(head).chain(cells).collect::<Vec<_>>(), TEXT_COLUMNS)
}

/// The lines in columns, all of one width: the first ones to the left, the others to the right.
pub(crate) fn aligned(lines: &[Vec<String>], text_columns: usize) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < text_columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::configuration::SUM_EULER;
    use crate::mpi::{Family, Mpi};

    fn ended(judgement: Judgement, millis: u64, replicas: u64) -> Ended {
        Ended::new(judgement, Duration::from_millis(millis), replicas)
    }

    #[test]
    fn a_row_counts_what_became_of_its_jobs() {
        let mpi = Mpi { family: Family::OpenMpi, mpicc: "m".into(), mpiexec: "m".into() };
        let configuration =
            Configuration { mpi, lane: "tcp", program: SUM_EULER, skeleton: "par-map" };
        let mut row = Row::new(configuration, Duration::from_millis(900));
        row.add(&ended(Judgement::Right, 1000, 2), false);
        row.add(&Ended { killed: 2, ..ended(Judgement::Right, 3250, 7) }, true);
        row.add(&ended(Judgement::Right, 1500, 0), false);
        row.add(&ended(Judgement::Hung, 30_000, 9), false);
        let table = table(&[row]);
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        let numbers = "4 0 2 7 9 0.90 1.50 3.25 1 0 1 0";
        assert_eq!(words.join(" "), format!("Open MPI tcp sum_euler par-map {numbers}"));
        let lengths: Vec<_> = table.lines().map(str::len).collect();
        assert_eq!(lengths[0], lengths[1], "{table}");
    }
}
