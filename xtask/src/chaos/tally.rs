//! The table of classes: how the jobs of each class ended, by launcher.

use super::class::Class;
use super::counts::Counts;
use super::ended::Ended;
use super::table::aligned;
use crate::mpi::Family;

/// What became of the jobs of one class under one launcher.
pub(crate) struct Tally {
    class: Class,
    family: Family,
    counts: Counts,
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
    /// Whether nothing was done to any of its jobs.
    pub(crate) fn is_idle(&self) -> bool {
        self.counts.disturbed == 0
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
        tallies.push(Tally { class, family, counts: Counts::default() });
        tallies.len() - 1
    });
    tallies[index].counts.add(ended, slow);
}

pub(crate) fn table(tallies: &[Tally]) -> String {
    let line = |tally: &Tally| {
        let text = [tally.class.name(), tally.family.name().to_owned()];
        text.into_iter().chain(tally.counts.numbers().map(|number| number.to_string())).collect()
    };
    let head = HEADINGS.map(str::to_owned).to_vec();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(tallies.iter().map(line)).collect();
    aligned(&lines, TEXT_COLUMNS)
}

/// All in one sentence.
pub(crate) fn total(tallies: &[Tally]) -> String {
    let sum = |index: usize| tallies.iter().map(|tally| tally.counts.numbers()[index]).sum();
    let [jobs, disturbed, right, ended, wrong, hung, left, innocents, slow]: [usize; 9] =
        std::array::from_fn(sum);
    format!(
        "{jobs} jobs, {disturbed} of them disturbed: {right} right results, {ended} ended, {wrong} \
         wrong, {hung} hung, {left} left behind, {innocents} innocents lost, {slow} slow"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::chaos::ended::Judgement;

    #[test]
    fn a_line_counts_what_became_of_the_jobs_of_a_class() {
        let ended = |judgement| Ended::new(judgement, Duration::from_secs(1), 0);
        let mut tallies = Vec::new();
        let mut add = |ended: Ended, slow| {
            super::add(&mut tallies, (Class::StartUp, Family::OpenMpi), &ended, slow);
            tallies[0].is_idle()
        };
        assert!(add(ended(Judgement::Right), true));
        assert!(!add(Ended { before: Some("x".to_owned()), ..ended(Judgement::Ended) }, false));
        add(Ended { innocents: 2, ..ended(Judgement::Right) }, false);
        add(ended(Judgement::Hung), false);
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
