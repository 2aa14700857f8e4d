//! Random numbers that a seed repeats, and the PEs that they choose to kill.

use std::hash::{BuildHasher, RandomState};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use super::deed::{Act, Deed, Target};

/// One in this many jobs loses all its victims at once, as when a switch fails (HdpH-RS §6.5.1).
const AT_ONCE_ONE_IN: u64 = 4;

/// Kills one to all but one of the PEs, at moments up to the usual end of such a job, so that some
/// die while it ends. The root is killed only if it is `among` them.
pub(crate) fn kills(random: &mut Random, among: Range<u32>, usual: Duration) -> Vec<Deed> {
    let count = 1 + random.below(u64::from(among.end - 1));
    let mut left: Vec<u32> = among.collect();
    let at_once = random.below(AT_ONCE_ONE_IN) == 0;
    let mut after = Duration::ZERO;
    let mut kill = |n| {
        if n == 0 || !at_once {
            after = random.moment(usual);
        }
        let pe = left.swap_remove(random.below(left.len() as u64) as usize);
        Deed { after, act: Act::Kill(Target::Pe(pe)) }
    };
    let mut kills: Vec<_> = (0..count).map(&mut kill).collect();
    kills.sort();
    kills
}

/// A seed short enough to be typed again.
pub(crate) fn any_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// Random numbers: `SplitMix64`, which needs no dependency.
pub(crate) struct Random(u64);

impl Random {
    /// Each number has its own stream, so that one job can be repeated without those before it.
    pub(crate) fn new(seed: u64, number: u32) -> Self {
        let mut random = Random(seed ^ (u64::from(number) << 32));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub(crate) fn among(&mut self, range: RangeInclusive<u32>) -> u32 {
        let (first, last) = range.into_inner();
        first + self.below(u64::from(last - first) + 1) as u32
    }

    /// A moment before `end`.
    pub(crate) fn moment(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.below(end.as_micros().max(1) as u64))
    }

    /// Whether a coin shows heads.
    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const USUAL: Duration = Duration::from_secs(2);

    fn drawn(run: u32) -> Vec<Deed> {
        kills(&mut Random::new(7, run), 1..5, USUAL)
    }

    fn victim(kill: &Deed) -> u32 {
        match kill.act {
            Act::Kill(Target::Pe(pe)) => pe,
            ref other => panic!("{other:?} is no kill"),
        }
    }

    #[test]
    fn no_process_is_killed_twice_and_the_root_never() {
        let mut counts = BTreeSet::new();
        for run in 0..300 {
            let kills = drawn(run);
            let victims: BTreeSet<u32> = kills.iter().map(victim).collect();
            assert_eq!(victims.len(), kills.len());
            assert!(victims.iter().all(|pe| (1..5).contains(pe)));
            assert!(kills.is_sorted() && kills.iter().all(|kill| kill.after < USUAL));
            counts.insert(kills.len());
        }
        assert_eq!(counts, BTreeSet::from([1, 2, 3, 4]));
    }

    #[test]
    fn the_root_is_killed_too_where_it_may_be_and_one_lives() {
        let mut ever_killed = BTreeSet::new();
        for run in 0..300 {
            let kills = kills(&mut Random::new(7, run), 0..5, USUAL);
            let victims: BTreeSet<u32> = kills.iter().map(victim).collect();
            assert!(victims.len() == kills.len() && victims.len() < 5, "{victims:?}");
            ever_killed.extend(victims);
        }
        assert_eq!(ever_killed, BTreeSet::from([0, 1, 2, 3, 4]));
    }

    #[test]
    fn some_die_together() {
        let together = |run: &u32| {
            let kills = drawn(*run);
            kills.len() > 1 && kills.iter().all(|kill| kill.after == kills[0].after)
        };
        let count = (0..400).filter(together).count();
        assert!((40..120).contains(&count), "{count}");
    }

    #[test]
    fn a_run_is_repeated_by_its_seed_and_number() {
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
        assert_ne!(drawn(3), kills(&mut Random::new(8, 3), 1..5, USUAL));
    }

    #[test]
    fn a_range_is_drawn_from_end_to_end() {
        let mut random = Random::new(7, 0);
        let drawn: BTreeSet<u32> = (0..200).map(|_| random.among(3..=6)).collect();
        assert_eq!(drawn, BTreeSet::from([3, 4, 5, 6]));
    }
}
