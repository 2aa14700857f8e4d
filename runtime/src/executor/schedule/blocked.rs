//! Finds tasks that block their thread: they wait inside a call, so the thread neither computes nor
//! runs another task.
//!
//! Each worker, and the standby, notes which function it is inside of, and counts the tasks it
//! starts and resumes. The driver looks at that now and then. Where nothing has changed, it asks
//! the system what the thread did meanwhile. A thread that used the CPU, or waited for it,
//! computes; so does one that waits for it still, however long.
//!
//! A thread that waits for another thread may be inside rayon, and wait for what a worker computes.
//! So it counts as blocked only while no worker computes. (Inside rayon no thread waits for the
//! standby.)

use crate::executor::task::activity::Activity;
use std::time::{Duration, Instant};

/// The driver looks this number of times within the time after which a task is reported.
const LOOKS: u32 = 5;

/// A thread computes if it uses at least one part in this number of a core's time, or waits for it:
/// a twentieth.
const COMPUTES_FROM: u32 = 20;

/// What the driver has seen of the threads that run tasks.
pub(crate) struct BlockedCheck {
    looked_at: Instant,
    /// The workers, then the standby.
    threads: Vec<Seen>,
    workers: usize,
}

/// What it has seen of one of them.
#[derive(Default)]
struct Seen {
    runs: u64,
    busy_for: Option<Duration>,
    /// Whether it has computed since the last look.
    computes: bool,
    /// How long it has been in the same function without computing.
    waited: Duration,
    was_reported: bool,
}

impl BlockedCheck {
    /// For this number of workers, and a standby.
    pub(crate) fn new(workers: usize) -> Self {
        let threads = (0..=workers).map(|_| Seen::default()).collect();
        BlockedCheck { looked_at: Instant::now(), threads, workers }
    }

    /// How often to [look](Self::look) at least, so that a thread is reported soon after `limit`.
    pub(crate) fn interval(limit: Duration) -> Duration {
        limit / LOOKS
    }

    /// Reports each thread that its task has blocked for `limit`, once for each such task: the
    /// thread's index, and how long it has waited. The workers' activities come first, then the
    /// standby's, if there is one.
    pub(crate) fn look<'a, I>(
        &mut self,
        limit: Duration,
        activities: I,
        mut report: impl FnMut(usize, &Activity, Duration),
    ) where
        I: Iterator<Item = &'a Activity> + Clone,
    {
        let now = Instant::now();
        let passed = now - self.looked_at;
        if passed < Self::interval(limit) {
            return;
        }
        self.looked_at = now;
        // The whole process may have been stopped meanwhile.
        let counts_max = Self::interval(limit) * 2;
        for (seen, activity) in self.threads.iter_mut().zip(activities.clone()) {
            seen.look(activity, passed, counts_max);
        }
        let do_workers_compute = self.threads[..self.workers].iter().any(|seen| seen.computes);
        for (index, activity) in activities.enumerate() {
            if self.threads[index].is_late(limit, activity)
                && !(do_workers_compute && activity.waits_for_thread())
            {
                self.threads[index].was_reported = true;
                report(index, activity, self.threads[index].waited);
            }
        }
    }
}

impl Seen {
    /// Compares with the last look, `passed` ago. A wait since then counts for `counts_max` at
    /// most.
    fn look(&mut self, activity: &Activity, passed: Duration, counts_max: Duration) {
        let (runs, busy_for) = (activity.runs(), activity.busy_for());
        let more = busy_for.zip(self.busy_for).map(|(now, before)| now.saturating_sub(before));
        self.computes = more.is_none_or(|more| more > passed / COMPUTES_FROM);
        let is_the_same = runs == self.runs && activity.function.get().is_some();
        self.was_reported &= is_the_same;
        let waits = is_the_same && !self.computes;
        self.waited = if waits { self.waited + passed.min(counts_max) } else { Duration::ZERO };
        (self.runs, self.busy_for) = (runs, busy_for);
    }

    /// Whether it has waited for `limit`, waits at this moment, and was not reported yet.
    fn is_late(&self, limit: Duration, activity: &Activity) -> bool {
        self.waited >= limit && !self.was_reported && !activity.is_runnable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    #[test]
    fn a_thread_that_waits_in_one_function_without_computing_is_blocked() {
        let (activity, mut seen) = (Arc::<Activity>::default(), Seen::default());
        activity.bind_to_this_thread();
        let second = Duration::from_secs(1);
        let mut looks = |activity: &Activity| {
            // The time since the last look. The test's own work is short against it.
            seen.look(activity, second, second);
            seen.waited
        };
        looks(&activity);
        assert_eq!(looks(&activity), Duration::ZERO, "it is between two tasks");
        activity.function.set(Some(|| "one"));
        assert_eq!(looks(&activity), second);
        assert_eq!(looks(&activity), 2 * second);
        activity.started.store(1, Ordering::Relaxed);
        assert_eq!(looks(&activity), Duration::ZERO, "it is another task");
        assert_eq!(looks(&activity), second);
        activity.resumed.store(1, Ordering::Relaxed);
        assert_eq!(looks(&activity), Duration::ZERO);
        let start = activity.busy_for().expect("the system says it");
        let enough = start + second / COMPUTES_FROM * 2;
        while activity.busy_for().expect("it does") < enough {}
        assert_eq!(looks(&activity), Duration::ZERO, "it has computed");
        let stranger = Activity::default();
        stranger.function.set(Some(|| "two"));
        assert_eq!(looks(&stranger), Duration::ZERO);
        assert_eq!(looks(&stranger), Duration::ZERO, "nothing is known of its thread");
    }

    /// Inside rayon no thread waits for it.
    #[test]
    fn a_standby_that_computes_hides_no_blocked_worker() {
        let limit = Duration::from_millis(100);
        // The other computes as it seems, since nothing is known of its thread.
        let (waits, computes) = (Arc::<Activity>::default(), Activity::default());
        let own = waits.clone();
        let (go_on, wait) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            own.bind_to_this_thread();
            own.function.set(Some(|| "one"));
            say.send(()).expect("it is awaited");
            let _ = wait.recv();
        });
        said.recv().expect("it says so");
        let reported = |threads: [&Activity; 2]| {
            let (mut check, mut reported) = (BlockedCheck::new(1), Vec::new());
            for _ in 0..3 * LOOKS {
                std::thread::sleep(BlockedCheck::interval(limit));
                check.look(limit, threads.into_iter(), |index, _, _| reported.push(index));
            }
            reported
        };
        assert_eq!(reported([&waits, &computes]), [0]);
        assert!(reported([&computes, &waits]).is_empty(), "it may wait for the worker");
        drop(go_on);
        thread.join().expect("it ends");
    }

    #[test]
    fn a_thread_that_waits_for_a_core_is_not_late() {
        let (activity, mut seen) = (Arc::<Activity>::default(), Seen::default());
        // It takes no part of the time given below that counts.
        let (day, limit) = (Duration::from_hours(24), Duration::from_secs(1));
        let other = activity.clone();
        let (go_on, wait) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let spins = Arc::new(AtomicBool::new(true));
        let spin = spins.clone();
        let thread = std::thread::Builder::new().name("a) S (name".into()).spawn(move || {
            other.bind_to_this_thread();
            other.function.set(Some(|| "one"));
            say.send(()).expect("it is awaited");
            while spin.load(Ordering::Relaxed) {}
            let _ = wait.recv();
        });
        said.recv().expect("it says so");
        (0..2).for_each(|_| seen.look(&activity, day, day));
        assert_eq!(seen.waited, day, "what it used is little");
        assert!(!seen.is_late(limit, &activity), "it uses a core, or waits for one");
        spins.store(false, Ordering::Relaxed);
        while activity.is_runnable() {
            std::thread::yield_now();
        }
        assert!(seen.is_late(limit, &activity));
        drop(go_on);
        thread.expect("it starts").join().expect("it ends");
    }
}
