//! Processes that are killed on purpose (`--kill-at`, `--chaos-monkey`): which PE dies when. All
//! processes draw the same plan, from a seed that the root chooses.

use crate::error::StartError;
use crate::log;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use ultramarine_environment::faults::{ChaosSeed, FaultFlags};
use ultramarine_topology::Pe;

/// How long a chaos monkey goes on, unless `--chaos-within` says it.
const WITHIN_DEFAULT: Duration = Duration::from_secs(10);

/// What one process was told, for the others to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Faults {
    kill_at: Vec<Duration>,
    /// If there is a chaos monkey: how long it goes on.
    chaos_within: Option<Duration>,
    seed: Seed,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Seed {
    /// To the chaos monkey.
    Given(u64),
    /// By the setting of that name, or at random: the root's counts.
    Own(u64),
}

/// Whether two processes were told the same.
impl PartialEq for Seed {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Seed::Given(own), Seed::Given(other)) => own == other,
            (Seed::Own(_), Seed::Own(_)) => true,
            _ => false,
        }
    }
}

impl Eq for Seed {}

impl Faults {
    /// What this process was told; `setting` is the seed among its settings.
    pub(crate) fn of(options: &FaultFlags, setting: Option<u64>) -> Option<Self> {
        // Short enough to be typed again.
        let random = || RandomState::new().hash_one(()) >> 32;
        let seed = match options.chaos_monkey {
            Some(ChaosSeed::Given(seed)) => Seed::Given(seed),
            Some(ChaosSeed::Random) | None => Seed::Own(setting.unwrap_or_else(random)),
        };
        let within = options.chaos_within.unwrap_or(WITHIN_DEFAULT);
        options.are_wanted().then(|| Faults {
            kill_at: options.kill_at.clone().map_or_else(Vec::new, |times| times.0),
            chaos_within: options.chaos_monkey.map(|_| within),
            seed,
        })
    }

    /// The deaths in a job of this many PEs.
    ///
    /// # Errors
    ///
    /// More are to die than there are beside the root.
    pub(crate) fn plan(&self, pes: u32) -> Result<DeathPlan, StartError> {
        let mortals = pes.saturating_sub(1) as usize;
        let count = self.kill_at.len();
        if count > mortals {
            let text = format!(
                "--kill-at names {count} moments, and the job has {pes} PEs: at most {mortals} of \
                 them can be killed, since the job ends with its root"
            );
            return Err(StartError::Options(text));
        }
        let (Seed::Given(seed) | Seed::Own(seed)) = self.seed;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Each moment draws a PE that was not drawn before.
        let mut left: Vec<u32> = (1..pes).collect();
        let mut victim =
            |random: &mut _| left.swap_remove(below(random, left.len() as u64) as usize);
        let mut deaths: Vec<_> =
            self.kill_at.iter().map(|at| (*at, Pe::new(victim(&mut random)))).collect();
        let spared = (mortals - count) as u64;
        if let Some(within) = self.chaos_within.filter(|_| spared > 0) {
            for _ in 0..=below(&mut random, spared) {
                let at = Duration::from_nanos(below(&mut random, within.as_nanos() as u64));
                deaths.push((at, Pe::new(victim(&mut random))));
            }
        }
        deaths.sort();
        Ok(DeathPlan { deaths, seed, with_chaos: self.chaos_within.is_some() })
    }
}

/// A random number below `end`, which is not zero.
fn below(random: &mut Xoshiro256PlusPlus, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

/// Which PE dies when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeathPlan {
    /// In the order of time.
    deaths: Vec<(Duration, Pe)>,
    seed: u64,
    with_chaos: bool,
}

impl DeathPlan {
    /// When this PE dies, if it does.
    pub(crate) fn death_of(&self, pe: Pe) -> Option<Duration> {
        self.deaths.iter().find(|(_, dying)| *dying == pe).map(|(at, _)| *at)
    }
}

impl fmt::Display for DeathPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeathPlan { deaths, seed, with_chaos } = self;
        write!(f, "seed {seed} (again by ")?;
        if *with_chaos {
            write!(f, "--chaos-monkey={seed})")?;
        } else {
            write!(f, "--set seed={seed})")?;
        }
        for (i, (at, pe)) in deaths.iter().enumerate() {
            let separator = if i == 0 { ": to be killed are" } else { "," };
            write!(f, "{separator} {pe} after {:.3} s", at.as_secs_f64())?;
        }
        Ok(())
    }
}

/// A thread that kills this process, unless it is dropped before.
pub(crate) struct DeathTimer(Option<(Sender<()>, JoinHandle<()>)>);

impl DeathTimer {
    /// Kills this process, which is `pe`, after this time.
    pub(crate) fn start(pe: Pe, after: Duration) -> Result<Self, StartError> {
        Self::call_after(after, move || {
            tracing::warn!(
                "{pe} kills itself, as planned {:.3} s after the start",
                after.as_secs_f64()
            );
            log::flush();
            let own = rustix::process::getpid();
            if let Err(error) = rustix::process::kill_process(own, rustix::process::Signal::KILL) {
                tracing::error!("{pe} cannot kill itself: {error}");
            }
        })
    }

    fn call_after(
        after: Duration,
        act: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StartError> {
        let (cancel, is_cancelled) = mpsc::channel::<()>();
        let wait = move || {
            if is_cancelled.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                act();
            }
        };
        let io = |source| StartError::Io { doing: "starting the thread of faults".into(), source };
        let thread = thread::Builder::new().name("faults".to_owned()).spawn(wait).map_err(io)?;
        Ok(DeathTimer(Some((cancel, thread))))
    }
}

impl Drop for DeathTimer {
    fn drop(&mut self) {
        if let Some((cancel, thread)) = self.0.take() {
            drop(cancel);
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const WITHIN: Duration = Duration::from_mins(1);

    fn faults(kill_at: &[u64], chaos: bool, seed: u64) -> Faults {
        Faults {
            kill_at: kill_at.iter().map(|s| Duration::from_secs(*s)).collect(),
            chaos_within: chaos.then_some(WITHIN),
            seed: Seed::Given(seed),
        }
    }

    fn victims(plan: &DeathPlan) -> BTreeSet<u32> {
        plan.deaths.iter().map(|(_, pe)| pe.number()).collect()
    }

    #[test]
    fn no_pe_dies_twice_and_the_root_never() {
        for seed in 0..500 {
            let plan = faults(&[3, 1, 1], seed % 2 == 0, seed).plan(6).expect("five can die");
            let victims = victims(&plan);
            assert_eq!(victims.len(), plan.deaths.len(), "{plan}");
            assert!(victims.iter().all(|pe| (1..6).contains(pe)), "{plan}");
            assert!(plan.deaths.is_sorted(), "{plan}");
        }
    }

    #[test]
    fn the_moments_are_those_given() {
        let plan = faults(&[7, 2, 2], false, 5).plan(4).expect("three can die");
        let moments: Vec<_> = plan.deaths.iter().map(|(at, _)| at.as_secs()).collect();
        assert_eq!(moments, [2, 2, 7]);
        let (at, pe) = plan.deaths[0];
        assert_eq!(plan.death_of(pe), Some(at));
        assert_eq!(plan.death_of(Pe::ROOT), None);
    }

    #[test]
    fn the_monkey_kills_one_to_all_within_its_time() {
        let plans = (0..300).map(|seed| faults(&[], true, seed).plan(5).expect("four can die"));
        let mut counts = BTreeSet::new();
        for plan in plans {
            counts.insert(plan.deaths.len());
            assert!(plan.deaths.iter().all(|(at, _)| *at < WITHIN), "{plan}");
        }
        assert_eq!(counts, BTreeSet::from([1, 2, 3, 4]));
    }

    #[test]
    fn every_pe_is_drawn_sometime() {
        let first = |seed| victims(&faults(&[1], false, seed).plan(5).expect("one dies"));
        let drawn: BTreeSet<u32> = (0..100).flat_map(first).collect();
        assert_eq!(drawn, BTreeSet::from([1, 2, 3, 4]));
    }

    #[test]
    fn the_plan_comes_from_the_seed_alone() {
        let plan = |seed| faults(&[1], true, seed).plan(20).expect("one to nineteen die");
        assert_eq!(plan(3), plan(3));
        assert_ne!(plan(3).deaths, plan(4).deaths);
        // A seed printed by one version is good for the next.
        assert_eq!(
            faults(&[1], true, 3).plan(4).expect("three can die").to_string(),
            "seed 3 (again by --chaos-monkey=3): to be killed are PE 1 after 1.000 s, \
             PE 3 after 37.608 s, PE 2 after 52.021 s"
        );
    }

    #[test]
    fn more_kills_than_mortals_are_refused() {
        let refused = |kill_at: &[u64], pes| match faults(kill_at, false, 0).plan(pes) {
            Err(error) => error.to_string(),
            Ok(plan) => panic!("{plan}"),
        };
        let text = refused(&[1, 2, 3], 3);
        assert!(text.contains("names 3 moments, and the job has 3 PEs: at most 2 of"), "{text}");
        assert!(refused(&[1], 1).contains("at most 0"));
        let plan = faults(&[], true, 0).plan(1).expect("the monkey finds no victim");
        assert_eq!(plan.deaths, []);
    }

    #[test]
    fn processes_compare_what_they_were_told() {
        let own = |seed| Faults { seed: Seed::Own(seed), ..faults(&[1], false, 0) };
        assert_eq!(own(1), own(2), "the root's is taken");
        assert_ne!(own(1), faults(&[1], false, 1));
        assert_ne!(faults(&[1], true, 1), faults(&[1], true, 2));
        assert_ne!(faults(&[1], true, 1), faults(&[2], true, 1));
    }

    #[test]
    fn a_death_timer_fires_unless_it_is_dropped() {
        let has_fired = Arc::new(AtomicBool::new(false));
        let start = |after| {
            let has_fired = has_fired.clone();
            DeathTimer::call_after(after, move || has_fired.store(true, Ordering::SeqCst))
                .expect("a thread")
        };
        drop(start(Duration::from_hours(1)));
        assert!(!has_fired.load(Ordering::SeqCst));
        let timer = start(Duration::ZERO);
        let started = std::time::Instant::now();
        while !has_fired.load(Ordering::SeqCst) {
            assert!(started.elapsed() < Duration::from_secs(20), "it does not fire");
            thread::yield_now();
        }
        drop(timer);
    }
}
