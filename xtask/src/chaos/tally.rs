//! The table of classes: how the jobs of each class ended, by launcher.

use super::class::Class;
use super::ended::{Ended, Judgement};
use super::table::aligned;
use crate::mpi::Family;

/// What became of the jobs of one class under one launcher.
pub(crate) struct Tally {
    class: Class,
    family: Family,
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

/// The columns, each with its heading.
const HEADINGS: [&str; 11] = [
    "class",
    "launcher",
    "jobs",
    "disturbed",
    "right",
    "ended",
    "wrong",
    "hung",
    "left",
    "innocents lost",
    "slow",
];

/// How many columns of text there are; numbers follow.
const TEXT_COLUMNS: usize = 2;

impl Tally {
    fn new(class: Class, family: Family) -> Self {
        let (jobs, disturbed, right, ended, wrong) = (0, 0, 0, 0, 0);
        let (hung, left, innocents, slow) = (0, 0, 0, 0);
        Tally { class, family, jobs, disturbed, right, ended, wrong, hung, left, innocents, slow }
    }

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

    /// Whether nothing was done to any of its jobs.
    pub(crate) fn is_idle(&self) -> bool {
        self.disturbed == 0
    }

    fn numbers(&self) -> [usize; 9] {
        let Tally { jobs, disturbed, right, ended, wrong, hung, left, innocents, slow, .. } = *self;
        [jobs, disturbed, right, ended, wrong, hung, left, innocents, slow]
    }
}

/// Counts a job of this class, under this launcher.
pub(crate) fn add(
    tallies: &mut Vec<Tally>,
    (class, family): (Class, Family),
    ended: &Ended,
    slow: bool,
) {
    let is_it = |tally: &Tally| (tally.class, tally.family) == (class, family);
    let index = tallies.iter().position(is_it).unwrap_or_else(|| {
        tallies.push(Tally::new(class, family));
        tallies.len() - 1
    });
    tallies[index].add(ended, slow);
}

pub(crate) fn table(tallies: &[Tally]) -> String {
    let line = |tally: &Tally| {
        let text = [tally.class.name(), tally.family.name().to_owned()];
        text.into_iter().chain(tally.numbers().map(|number| number.to_string())).collect()
    };
    let head = HEADINGS.map(str::to_owned).to_vec();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(tallies.iter().map(line)).collect();
    aligned(&lines, TEXT_COLUMNS)
}

/// All in one sentence.
pub(crate) fn total(tallies: &[Tally]) -> String {
    let sum = |index: usize| tallies.iter().map(|tally| tally.numbers()[index]).sum::<usize>();
    format!(
        "{} jobs, {} of them disturbed: {} right results, {} ended, {} wrong, {} hung, {} left \
         behind, {} innocents lost, {} slow",
        sum(0),
        sum(1),
        sum(2),
        sum(3),
        sum(4),
        sum(5),
        sum(6),
        sum(7),
        sum(8),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_counts_what_became_of_the_jobs_of_a_class() {
        let ended = |judgement| Ended::new(judgement, Duration::from_secs(1), 0);
        let mut tally = Tally::new(Class::StartUp, Family::OpenMpi);
        assert!(tally.is_idle());
        tally.add(&ended(Judgement::Right), true);
        tally.add(&Ended { before: Some("x".to_owned()), ..ended(Judgement::Ended) }, false);
        assert!(!tally.is_idle());
        tally.add(&Ended { innocents: 2, ..ended(Judgement::Right) }, false);
        tally.add(&ended(Judgement::Hung), false);
        let tallies = [tally];
        let table = table(&tallies);
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words.join(" "), "start-up Open MPI 4 1 2 1 0 1 0 2 1");
        assert_eq!(
            total(&tallies),
            "4 jobs, 1 of them disturbed: 2 right results, 1 ended, 0 wrong, 1 hung, 0 left \
             behind, 2 innocents lost, 1 slow"
        );
    }
}
