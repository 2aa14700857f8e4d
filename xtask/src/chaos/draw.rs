//! Random numbers that a seed repeats, and the PEs that they choose to kill.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

use super::deed::{Act, Deed, Target};

/// One in this many jobs loses all its victims at once, as when a switch fails (HdpH-RS §6.5.1).
const AT_ONCE_ONE_IN: u32 = 4;

/// Kills one to all but one of the PEs, at moments up to the usual end of such a job, so that some
/// die while it ends. The root is killed only if it is `among` them.
pub(crate) fn kills(random: &mut Rng, among: Range<u32>, usual: Duration) -> Vec<Deed> {
    let count = 1 + random.u32(..among.end - 1);
    let mut left: Vec<u32> = among.collect();
    let at_once = random.u32(..AT_ONCE_ONE_IN) == 0;
    let mut after = Duration::ZERO;
    let mut kill = |n| {
        if n == 0 || !at_once {
            after = moment(random, usual);
        }
        let pe = left.swap_remove(random.usize(..left.len()));
        Deed { after, act: Act::Kill(Target::Pe(pe)) }
    };
    let mut kills: Vec<_> = (0..count).map(&mut kill).collect();
    kills.sort();
    kills
}

/// A seed short enough to be typed again.
pub(crate) fn any_seed() -> u64 {
    fastrand::u32(..).into()
}

/// Random numbers. Each number has its own stream, so that one job can be repeated without those
/// before it.
pub(crate) fn random(seed: u64, number: u32) -> Rng {
    Rng::with_seed(seed ^ (u64::from(number) << 32))
}

/// A moment before `end`.
pub(crate) fn moment(random: &mut Rng, end: Duration) -> Duration {
    Duration::from_micros(random.u64(..end.as_micros().max(1) as u64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const USUAL: Duration = Duration::from_secs(2);

    fn drawn(run: u32) -> Vec<Deed> {
        kills(&mut random(7, run), 1..5, USUAL)
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
            let kills = kills(&mut random(7, run), 0..5, USUAL);
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
        assert_ne!(drawn(3), kills(&mut random(8, 3), 1..5, USUAL));
    }
}
