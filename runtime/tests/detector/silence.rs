//! PEs that are there and say nothing, and PEs that go.

use crate::played::{Call, Job, SETTINGS, until};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::{DetectorSettings, Verdict};
use ultramarine_runtime::protocol::Notice;
use ultramarine_topology::Pe;

const ONE: Pe = Pe::new(1);
const TWO: Pe = Pe::new(2);

#[test]
fn one_that_falls_silent_is_dead_after_that_time() {
    let job = Job::start(2, 1, SETTINGS);
    // In the ring 0 → 1 → 2 → 0 the played PE 2 is called by 1 and calls 0.
    let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
    let mut caller = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    for _ in 0..10 {
        called.say(&Notice::Known { dead: 0 });
        caller.say(&Notice::Known { dead: 0 });
        assert!(job.watchers[0].is_quiet_for(SETTINGS.dead_after / 5));
    }
    let silent = Instant::now();
    for watcher in &job.watchers {
        assert_eq!(watcher.verdict(), Verdict::Dead(vec![TWO]));
    }
    println!("dead after {:?} of silence", silent.elapsed());
    assert!(silent.elapsed() > SETTINGS.dead_after / 2);
    // It is told so.
    assert_eq!(called.hear(), Some(Notice::Bulletin { dead: vec![TWO] }));
    assert_eq!(caller.hear(), Some(Notice::Bulletin { dead: vec![TWO] }));
    // It has come back to life, and is told again.
    let mut again = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    assert_eq!(again.hear(), Some(Notice::Bulletin { dead: vec![TWO] }));
    job.watchers.into_iter().for_each(|watcher| drop(watcher.detector.goodbye()));
}

#[test]
fn one_that_accepts_and_never_answers_is_dead_after_the_grace() {
    let job = Job::start(2, 1, SETTINGS);
    let start = Instant::now();
    for watcher in &job.watchers {
        assert_eq!(watcher.verdict(), Verdict::Dead(vec![TWO]));
    }
    println!("dead after {:?} without a word", start.elapsed());
    assert!(start.elapsed() > SETTINGS.dead_after * 3, "it might only have been starting");
}

#[test]
fn one_whose_port_is_closed_is_dead_at_once() {
    let settings = DetectorSettings { dead_after: Duration::from_secs(100), ..SETTINGS };
    let mut job = Job::start(3, 1, settings);
    let start = Instant::now();
    job.played.clear();
    for watcher in &job.watchers {
        assert_eq!(watcher.verdict(), Verdict::Dead(vec![Pe::new(3)]));
    }
    println!("dead after {:?}", start.elapsed());
}

#[test]
fn a_broken_connection_of_one_that_lives_is_made_again() {
    let job = Job::start(2, 1, SETTINGS);
    for _ in 0..5 {
        let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
        called.say(&Notice::Known { dead: 0 });
    }
    let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
    called.say(&Notice::Known { dead: 0 });
    assert!(job.watchers[1].counters().redials.load(Relaxed) >= 5);
    assert!(job.watchers[1].is_quiet_for(Duration::ZERO));
}

#[test]
fn what_somebody_else_noticed_is_believed() {
    let job = Job::start(3, 0, SETTINGS);
    job.watchers[1].detector.suspect(TWO);
    job.watchers[1].detector.suspect(Pe::new(99));
    assert_eq!(job.watchers[0].verdict(), Verdict::Dead(vec![TWO]));
    assert_eq!(job.watchers[1].verdict(), Verdict::Dead(vec![TWO]));
    assert_eq!(job.watchers[2].verdict(), Verdict::Expelled);
}

#[test]
fn who_misses_the_root_tells_all_and_only_the_root_stays() {
    let job = Job::start(3, 0, SETTINGS);
    let [root, one, two] = &job.watchers[..] else { panic!("three") };
    root.detector.suspect(Pe::ROOT);
    one.detector.suspect(Pe::ROOT);
    for (watcher, said) in
        [(one, "PE 0 does not answer any more"), (two, "PE 1 says that PE 0 is gone")]
    {
        let Verdict::RootLost { reason } = watcher.verdict() else { panic!("it is lost") };
        assert_eq!(reason, said);
    }
    assert!(root.is_quiet_for(Duration::ZERO), "a root cannot lose itself");
}

#[test]
fn a_goodbye_is_no_death() {
    for _ in 0..20 {
        let mut job = Job::start(4, 0, SETTINGS);
        let last = job.watchers.pop().expect("four");
        // Also of those that have hardly started.
        let leaving = std::mem::take(&mut job.watchers).into_iter().map(|watcher| {
            std::thread::spawn(move || {
                drop(watcher.detector.goodbye());
                watcher.verdicts.try_iter().collect::<Vec<_>>()
            })
        });
        let leaving: Vec<_> = leaving.collect();
        let verdict = last.verdict();
        assert!(matches!(verdict, Verdict::JobOver { .. }), "{verdict:?}");
        for thread in leaving {
            let verdicts = thread.join().unwrap();
            let is_over = |verdict: &Verdict| matches!(verdict, Verdict::JobOver { .. });
            assert!(verdicts.len() <= 1 && verdicts.iter().all(is_over), "{verdicts:?}");
        }
        assert!(last.is_quiet_for(Duration::from_millis(5)), "it was the last verdict");
        last.detector.goodbye();
    }
}

#[test]
fn what_is_dropped_looks_like_a_crash() {
    let mut job = Job::start(3, 0, SETTINGS);
    until(|| job.watchers[2].counters().heartbeats_received.load(Relaxed) > 0);
    drop(job.watchers.remove(1));
    for watcher in &job.watchers {
        assert_eq!(watcher.verdict(), Verdict::Dead(vec![ONE]));
    }
}

#[test]
fn few_connections_and_little_work_while_nothing_happens() {
    let settings = DetectorSettings::default();
    let job = Job::start(24, 0, settings);
    let begun = cpu_time();
    std::thread::sleep(settings.dead_after);
    println!(
        "24 detectors used {:?} of a core in {:?}",
        cpu_time().saturating_sub(begun),
        settings.dead_after
    );
    for watcher in &job.watchers {
        let counters = watcher.counters();
        assert!(counters.dialled.load(Relaxed) <= 2, "{counters:?}");
        assert!(counters.dialled.load(Relaxed) + counters.accepted.load(Relaxed) >= 2);
        assert!(counters.heartbeats_received.load(Relaxed) > 0);
        assert_eq!(counters.suspicions.load(Relaxed), 0);
        assert!(watcher.is_quiet_for(Duration::ZERO));
    }
    job.watchers.into_iter().for_each(|watcher| drop(watcher.detector.goodbye()));
}

/// What this process has used so far.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // A hundred ticks a second, everywhere that matters.
    Duration::from_millis(10 * ticks)
}
