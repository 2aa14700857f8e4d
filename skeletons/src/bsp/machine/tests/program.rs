//! A program whose outputs depend on all that its ranks have heard, and in which order; and what
//! they are.

use super::super::*;
use crate::bsp::machine::span::Spans;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The superstep in which all ranks end.
pub(super) const LAST: u64 = 12;

/// Two ranks take part in an operation in which the order counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Toy;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Operation {
    All,
    Before,
}

impl Kind for Toy {
    type State = u64;
    type Content = u64;
    type Saved = JobOf<Toy>;
    type Output = u64;
    type Value = u64;
    type Operation = Operation;
    type Error = Trouble;

    /// Few go into a message.
    fn bytes(_: &JobOf<Toy>) -> usize {
        16 << 20
    }

    fn digest(operation: &Operation) -> u64 {
        hash(operation)
    }

    fn is_scan(operation: &Operation) -> bool {
        *operation == Operation::Before
    }

    fn combine(_: &Operation, left: &u64, right: &u64) -> u64 {
        hash((left, right))
    }
}

pub(super) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn first(rank: u32) -> u64 {
    hash(rank)
}

/// A rank's step: it sends something to some, takes part in some operations, and may fall asleep.
/// Rank 0 never does, and wakes the others for the end.
pub(super) fn step(ranks: u32, work: Work, job: JobOf<Toy>) -> Step<Toy> {
    let Job { rank, state, letters, results, .. } = job;
    let heard: Vec<_> = letters.iter().map(|letter| (letter.from, letter.content)).collect();
    let state = hash((state, heard, results, work.superstep));
    // Ranks have more to do in one superstep than in another.
    let took = Duration::from_nanos(hash((rank, work.superstep / 3)) % 100);
    if work.superstep >= LAST {
        return Step { next: Next::Ended(state), letters: Vec::new(), offered: Vec::new(), took };
    }
    let to: Vec<u32> = if rank == 0 && work.superstep + 1 == LAST {
        (0..ranks).collect()
    } else {
        (0..state % 4).map(|number| (hash((state, number)) % u64::from(ranks)) as u32).collect()
    };
    let letter = |(number, to)| Letter { from: rank, to, content: hash((state, number)) };
    let letters = to.into_iter().enumerate().map(letter).collect();
    let operations = [Operation::All, Operation::Before, Operation::All];
    let offered = operations.into_iter().map(|operation| (operation, state));
    let offered = offered.take((state % 5) as usize).collect();
    let is_awake = rank == 0 || state % 3 > 0;
    let next = if is_awake { Next::Awake(state) } else { Next::Asleep(state) };
    Step { next, letters, offered, took }
}

/// The outputs, found by one loop.
pub(super) fn outputs(ranks: u32) -> BTreeMap<u32, u64> {
    let mut states: Vec<_> = (0..ranks).map(|rank| Next::Awake(first(rank))).collect();
    let mut letters: Vec<Vec<Letter<u64>>> = vec![Vec::new(); ranks as usize];
    let mut results: Vec<Vec<Option<u64>>> = vec![Vec::new(); ranks as usize];
    for superstep in 0..=LAST {
        let work = Work { ticket: 0, superstep, is_saved: false, is_quiet: false };
        let mut sent: Vec<Vec<Letter<u64>>> = vec![Vec::new(); ranks as usize];
        let mut collected: Vec<(Operation, Vec<(u32, u64)>)> = Vec::new();
        for rank in 0..ranks {
            let at = rank as usize;
            let letters = take(&mut letters[at]);
            let results = take(&mut results[at]);
            let state = match states[at] {
                Next::Awake(state) => state,
                Next::Asleep(state) if !letters.is_empty() => state,
                _ => continue,
            };
            let step = step(ranks, work, Job { rank, state, letters, results, is_stepping: true });
            states[at] = step.next;
            step.letters.into_iter().for_each(|letter| sent[letter.to as usize].push(letter));
            for (number, (operation, value)) in step.offered.into_iter().enumerate() {
                if number == collected.len() {
                    collected.push((operation, Vec::new()));
                }
                collected[number].1.push((rank, value));
            }
        }
        letters = sent;
        results.iter_mut().for_each(Vec::clear);
        for (operation, values) in collected {
            let combine = &mut |left: &u64, right: &u64| Toy::combine(&operation, left, right);
            let mut spans = Spans::of_own(0..ranks, values.clone(), combine);
            let all = spans.all(ranks, combine);
            spans.divide(0..ranks, values.clone());
            for (rank, _) in values {
                let is_scan = Toy::is_scan(&operation);
                let result = if is_scan { spans.before(rank, combine) } else { all };
                results[rank as usize].push(result);
            }
        }
    }
    let output = |(rank, next): (u32, _)| match next {
        Next::Ended(output) => (rank, output),
        next => panic!("rank {rank} has not ended: {next:?}"),
    };
    (0..).zip(states).map(output).collect()
}
