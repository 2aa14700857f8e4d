//! What ranks do in the search, and what must come of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use ultramarine_skeletons::bsp::machine::{Job, JobOf, Kind, Letter, Next, Step, Trouble, Work};

/// The program of all ranks. The outputs depend on all that a rank has heard, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The number of ranks.
    pub ranks: u32,
    /// The number of supersteps.
    pub supersteps: u64,
    /// What a rank does in each.
    pub habit: Habit,
    /// Whether each rank that takes a step also takes part in a collective operation.
    pub collects: bool,
    /// Whether the last rank has less to do than others, so that ranks move.
    pub is_uneven: bool,
}

/// What a rank does in a superstep, but for the last, in which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// It sends something to the rank that is this far behind it.
    Ring(u32),
    /// Rank 0 wakes another, and all in the end. The others sleep otherwise.
    Wakes,
    /// All sleep: the run cannot go on.
    Sleeps,
}

/// What a run handles here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Toy;

/// What a rank sends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Word {
    pub(super) value: u64,
    /// The superstep in which it was sent.
    pub(super) superstep: u64,
    /// The set of PEs that its sender knew to be dead, or its receiver when it was restored.
    pub(super) dead: u32,
}

impl Kind for Toy {
    type State = u64;
    type Content = Word;
    type Saved = JobOf<Toy>;
    type Output = u64;
    /// By rank, in order.
    type Value = Vec<u64>;
    type Operation = ();
    type Error = Trouble;

    fn bytes(_: &JobOf<Toy>) -> usize {
        0
    }

    fn digest((): &()) -> u64 {
        0
    }

    fn is_scan((): &()) -> bool {
        false
    }

    fn combine((): &(), left: &Vec<u64>, right: &Vec<u64>) -> Vec<u64> {
        [&left[..], right].concat()
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn first(rank: u32) -> u64 {
    hash(rank)
}

impl Program {
    /// A rank's step, on a PE that knows these to be dead.
    pub(super) fn step(&self, work: Work, dead: u32, job: JobOf<Toy>) -> Step<Toy> {
        let Job { rank, state, letters, results, .. } = job;
        let (ranks, superstep) = (self.ranks, work.superstep);
        let heard: Vec<_> =
            letters.iter().map(|letter| (letter.from, letter.content.value)).collect();
        let state = hash((state, heard, results, superstep));
        let took = if self.is_uneven { 1 + 4 * u64::from(rank + 1 < self.ranks) } else { 0 };
        let took = Duration::from_nanos(took);
        if superstep + 1 >= self.supersteps && self.habit != Habit::Sleeps {
            return Step {
                next: Next::Ended(state),
                letters: Vec::new(),
                offered: Vec::new(),
                took,
            };
        }
        let (to, next): (Vec<u32>, _) = match self.habit {
            Habit::Ring(far) => (vec![(rank + far) % ranks], Next::Awake(state)),
            Habit::Wakes if rank > 0 => (Vec::new(), Next::Asleep(state)),
            Habit::Wakes if superstep + 2 == self.supersteps => {
                ((1..ranks).collect(), Next::Awake(state))
            }
            Habit::Wakes => (vec![1 + superstep as u32 % (ranks - 1)], Next::Awake(state)),
            Habit::Sleeps => (Vec::new(), Next::Asleep(state)),
        };
        let content = Word { value: state, superstep, dead };
        let letter = |to| Letter { from: rank, to, content: content.clone() };
        let letters = to.into_iter().map(letter).collect();
        let offered = if self.collects { vec![((), vec![state])] } else { Vec::new() };
        Step { next, letters, offered, took }
    }

    /// How a run must end, found by one loop.
    pub(super) fn end(&self) -> Result<BTreeMap<u32, u64>, Trouble> {
        if self.habit == Habit::Sleeps {
            return Err(Trouble::Stalled { superstep: 1 });
        }
        let mut nexts: Vec<_> = (0..self.ranks).map(|rank| Next::Awake(first(rank))).collect();
        let mut letters: Vec<Vec<Letter<Word>>> = vec![Vec::new(); nexts.len()];
        let mut results: Vec<Vec<Option<Vec<u64>>>> = vec![Vec::new(); nexts.len()];
        for superstep in 0..self.supersteps {
            let work = Work { ticket: 0, superstep, is_saved: false, is_quiet: false };
            let mut sent = vec![Vec::new(); nexts.len()];
            let mut collected: BTreeMap<u32, u64> = BTreeMap::new();
            for rank in 0..self.ranks {
                let at = rank as usize;
                let (letters, results) =
                    (std::mem::take(&mut letters[at]), std::mem::take(&mut results[at]));
                let state = match nexts[at] {
                    Next::Awake(state) => state,
                    Next::Asleep(state) if !letters.is_empty() => state,
                    _ => continue,
                };
                let job = Job { rank, state, letters, results, is_stepping: true };
                let step = self.step(work, 0, job);
                nexts[at] = step.next;
                step.letters.into_iter().for_each(|letter| sent[letter.to as usize].push(letter));
                collected.extend(step.offered.into_iter().map(|((), value)| (rank, value[0])));
            }
            letters = sent;
            let all: Vec<u64> = collected.values().copied().collect();
            collected.keys().for_each(|rank| results[*rank as usize].push(Some(all.clone())));
        }
        let output = |(rank, next)| match next {
            Next::Ended(output) => Some((rank, output)),
            _ => None,
        };
        Ok((0..).zip(nexts).filter_map(output).collect())
    }
}
