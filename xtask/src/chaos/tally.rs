//! The tables at the end: how the jobs of each class ended, by launcher; and what became of those
//! in which PEs were killed, with a line for each configuration (HdpH-RS §6.5, table 6.5).

use std::time::Duration;

use super::class::Class;
use super::configuration::Configuration;
use super::ended::{Ended, Judgement};
use crate::mpi::Family;
use crate::table::{aligned, row};

/// What became of some jobs, in numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    jobs: usize,
    /// To which something was done.
    disturbed: usize,
    right: usize,
    ended: usize,
    wrong: usize,
    hung: usize,
    left: usize,
    innocents: usize,
    slow: usize,
}

impl Counts {
    fn add(&mut self, ended: &Ended, slow: bool) {
        self.jobs += 1;
        self.disturbed += usize::from(!ended.done.is_empty() || ended.before.is_some());
        match ended.judgement {
            Judgement::Right => self.right += 1,
            Judgement::Ended => self.ended += 1,
            Judgement::Wrong(_) => self.wrong += 1,
            Judgement::Hung => self.hung += 1,
        }
        self.left += ended.left.len();
        self.innocents += ended.innocents;
        self.slow += usize::from(slow);
    }

    /// In the order of the columns of the table of classes.
    fn numbers(self) -> [usize; 9] {
        let Counts { jobs, disturbed, right, ended, wrong, hung, left, innocents, slow } = self;
        [jobs, disturbed, right, ended, wrong, hung, left, innocents, slow]
    }
}

/// What became of the jobs of one configuration in which PEs were killed.
#[derive(Default)]
struct Kills {
    /// How long a job takes if no PE is killed.
    usual: Duration,
    /// How many PEs were killed, job by job.
    killed: Vec<u64>,
    replicas: Vec<u64>,
    /// Of the jobs that ended well, in milliseconds.
    took: Vec<u64>,
    counts: Counts,
}

impl Kills {
    fn add(&mut self, usual: Duration, ended: &Ended, slow: bool) {
        self.usual = usual;
        self.killed.push(ended.killed);
        self.replicas.extend(ended.replicas);
        if ended.judgement == Judgement::Right {
            self.took.push(ended.took.as_millis() as u64);
        }
        self.counts.add(ended, slow);
    }

    fn cells(&self) -> [String; 12] {
        let seconds = |millis: u64| format!("{:.2}", millis as f64 / 1000.0);
        let [killed, killed_most] = spread(&self.killed, |n| n.to_string());
        let [replicas, replicas_most] = spread(&self.replicas, |n| n.to_string());
        let [took, longest] = spread(&self.took, seconds);
        // None of these may end with an error.
        let Counts { jobs, slow, wrong, ended, hung, left, .. } = self.counts;
        [
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

/// The rows of both tables.
#[derive(Default)]
pub(crate) struct Tables {
    classes: Vec<((Class, Family), Counts)>,
    kills: Vec<(Configuration, Kills)>,
}

/// The headings of both, and how many of their columns are text; numbers follow.
const CLASSES: (&str, usize) =
    ("class|launcher|jobs|disturbed|right|ended|wrong|hung|left|innocents lost|slow", 2);
const KILLS: (&str, usize) = (
    "launcher|lane|program|skeleton|runs|failed PEs|(most)|replicas|(most)|s, no failures|\
     s, median|(longest)|slow|wrong|hung|left",
    4,
);

impl Tables {
    /// Counts a job of this class. Its `usual` time is without faults.
    pub(crate) fn add(
        &mut self,
        (class, configuration): (Class, &Configuration),
        usual: Duration,
        ended: &Ended,
        slow: bool,
    ) {
        row(&mut self.classes, (class, configuration.mpi.family)).add(ended, slow);
        if class == Class::Kill {
            row(&mut self.kills, configuration.clone()).add(usual, ended, slow);
        }
    }

    /// Whether nothing was done to any job.
    pub(crate) fn is_idle(&self) -> bool {
        self.classes.iter().all(|(_, counts)| counts.disturbed == 0)
    }

    /// Both tables, as far as they have rows.
    pub(crate) fn shown(&self) -> String {
        let class = |((class, family), counts): &((Class, Family), Counts)| {
            let text = [class.name(), family.name().to_owned()];
            text.into_iter().chain(counts.numbers().map(|number| number.to_string())).collect()
        };
        let kills = |(configuration, kills): &(Configuration, Kills)| {
            let Configuration { mpi, lane, program, skeleton } = configuration;
            let text = [mpi.family.name(), lane, program.name, skeleton].map(str::to_owned);
            text.into_iter().chain(kills.cells()).collect()
        };
        let classes = aligned(CLASSES.0, self.classes.iter().map(class).collect(), CLASSES.1);
        if self.kills.is_empty() {
            return classes;
        }
        let kills = aligned(KILLS.0, self.kills.iter().map(kills).collect(), KILLS.1);
        format!("{kills}\n\n{classes}")
    }

    /// All in one sentence.
    pub(crate) fn total(&self) -> String {
        let sum = |index: usize| self.classes.iter().map(|row| row.1.numbers()[index]).sum();
        let [jobs, disturbed, right, ended, wrong, hung, left, innocents, slow]: [usize; 9] =
            std::array::from_fn(sum);
        format!(
            "{jobs} jobs, {disturbed} of them disturbed: {right} right results, {ended} ended, \
             {wrong} wrong, {hung} hung, {left} left behind, {innocents} innocents lost, \
             {slow} slow"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::configuration::SUM_EULER;
    use crate::mpi::Mpi;

    fn configuration() -> Configuration {
        let mpi = Mpi { family: Family::OpenMpi, mpicc: "m".into(), mpiexec: "m".into() };
        Configuration { mpi, lane: "tcp", program: SUM_EULER, skeleton: "par-map" }
    }

    #[test]
    fn a_row_counts_what_became_of_its_jobs() {
        let mut tables = Tables::default();
        let mut add = |judgement, millis, replicas, killed, slow| {
            let ended = Ended::new(judgement, Duration::from_millis(millis), replicas);
            let (about, usual) = ((Class::Kill, &configuration()), Duration::from_millis(900));
            tables.add(about, usual, &Ended { killed, ..ended }, slow);
        };
        add(Judgement::Right, 1000, 2, 0, false);
        add(Judgement::Right, 3250, 7, 2, true);
        add(Judgement::Right, 1500, 0, 0, false);
        add(Judgement::Hung, 30_000, 9, 0, false);
        let table = tables.shown();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        let numbers = "4 0 2 7 9 0.90 1.50 3.25 1 0 1 0";
        assert_eq!(words.join(" "), format!("Open MPI tcp sum_euler par-map {numbers}"));
        let lengths: Vec<_> = table.lines().map(str::len).collect();
        assert_eq!(lengths[0], lengths[1], "{table}");
    }

    #[test]
    fn a_line_counts_what_became_of_the_jobs_of_a_class() {
        let ended = |judgement| Ended::new(judgement, Duration::from_secs(1), 0);
        let mut tables = Tables::default();
        let mut add = |ended: Ended, slow| {
            let about = (Class::StartUp, &configuration());
            tables.add(about, Duration::default(), &ended, slow);
            tables.is_idle()
        };
        assert!(add(ended(Judgement::Right), true));
        assert!(!add(Ended { before: Some("x".to_owned()), ..ended(Judgement::Ended) }, false));
        add(Ended { innocents: 2, ..ended(Judgement::Right) }, false);
        add(ended(Judgement::Hung), false);
        let table = tables.shown();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words.join(" "), "start-up Open MPI 4 1 2 1 0 1 0 2 1");
        assert_eq!(
            tables.total(),
            "4 jobs, 1 of them disturbed: 2 right results, 1 ended, 0 wrong, 1 hung, 0 left \
             behind, 2 innocents lost, 1 slow"
        );
    }
}
