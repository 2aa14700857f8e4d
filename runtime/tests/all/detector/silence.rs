//! PEs that live and send nothing, and PEs that leave.

use super::played::{Call, Job, SETTINGS, Watcher, known};
use super::{ONE, THREE, TWO};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::{DetectorSettings, FailureEvent};
use ultramarine_runtime::protocol::{Claim, Death, Evidence, Heading, Notice, Term};
use ultramarine_testkit::eventually;
use ultramarine_topology::Pe;

/// The root's list, if it has this death alone.
fn bulletin_of(death: Death) -> Notice {
    Notice::Bulletin { of: Heading::FIRST, after: 0, dead: vec![death] }
}

#[test]
fn one_that_falls_silent_while_its_host_answers_has_stalled_and_is_dead_later() {
    let job = Job::start(2, 1, SETTINGS);
    // In the ring 0 → 1 → 2 → 0 the played PE 2 is called by 1 and calls 0.
    let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
    let mut caller = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    for _ in 0..10 {
        called.say(&known(0));
        caller.say(&known(0));
        assert!(job.watchers[0].is_quiet_for(SETTINGS.dead_after / 5));
    }
    let silent = Instant::now();
    job.all_hear_of(TWO);
    println!("dead after {:?} of silence", silent.elapsed());
    assert!(silent.elapsed() > SETTINGS.stalled_after.mul_f64(0.8));
    // It is told so.
    assert_eq!(called.hear(), Some(bulletin_of(Death::silent(TWO))));
    assert_eq!(caller.hear(), Some(bulletin_of(Death::silent(TWO))));
    // It has come back to life, and is told again.
    let mut again = Call::dial(job.watchers[0].address, job.key, TWO, Pe::ROOT);
    assert_eq!(again.hear(), Some(bulletin_of(Death::silent(TWO))));
    job.goodbye();
}

#[test]
fn one_that_accepts_and_never_answers_is_dead_after_the_grace() {
    let job = Job::start(2, 1, SETTINGS);
    let start = Instant::now();
    job.all_hear_of(TWO);
    println!("dead after {:?} without a word", start.elapsed());
    assert!(start.elapsed() > SETTINGS.dead_after * 3, "it might only have been starting");
}

#[test]
fn one_whose_port_is_closed_is_dead_at_once() {
    let settings = DetectorSettings { dead_after: Duration::from_secs(100), ..SETTINGS };
    let mut job = Job::start(3, 1, settings);
    let start = Instant::now();
    job.played.clear();
    job.all_hear_of(THREE);
    println!("dead after {:?}", start.elapsed());
}

#[test]
fn a_broken_connection_of_one_that_lives_is_made_again() {
    let job = Job::start(2, 1, SETTINGS);
    for _ in 0..5 {
        let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
        called.say(&known(0));
    }
    let mut called = Call::accept(&job.played[0], job.key, TWO, 3);
    called.say(&known(0));
    assert!(job.watchers[1].counters().redials.load(Relaxed) >= 5);
    assert!(job.watchers[1].is_quiet_for(Duration::ZERO));
}

#[test]
fn the_suspicion_of_another_pe_makes_it_look_and_is_not_believed() {
    let job = Job::start(4, 0, SETTINGS);
    let heard = |watcher: &Watcher| watcher.counters().heartbeats_received.load(Relaxed) > 0;
    eventually("all have heard", || job.watchers.iter().all(heard));
    for watcher in &job.watchers {
        for pe in [0, 1, 2, 3, 99] {
            watcher.detector.suspect(Pe::new(pe));
        }
    }
    for watcher in &job.watchers {
        assert!(watcher.is_quiet_for(SETTINGS.dead_after / 2));
        assert_eq!(watcher.counters().losses.load(Relaxed), 0);
    }
    job.goodbye();
}

#[test]
fn one_that_is_gone_and_suspected_is_dead_though_no_neighbour_of_the_suspicious() {
    let mut job = Job::start(6, 1, SETTINGS);
    // In the ring the played PE 6 has the neighbours 5 and 0.
    job.watchers[2].detector.suspect(Pe::new(6));
    job.played.clear();
    job.all_hear_of(Pe::new(6));
}

#[test]
fn a_notice_that_the_root_or_another_is_lost_is_not_believed() {
    let job = Job::start(3, 1, SETTINGS);
    let mut called = Call::accept(&job.played[0], job.key, THREE, 4);
    let mut caller = Call::dial(job.watchers[0].address, job.key, THREE, Pe::ROOT);
    let begun = Instant::now();
    // It insists for less time than two ends of a broken path have.
    while begun.elapsed() < SETTINGS.dead_after * 2 {
        called.say(&Notice::Orphaned { herald: THREE, term: Term::FIRST, claim: Claim::Suspected });
        called.say(&known(0));
        caller.say(&Notice::Accuse { pe: ONE, claim: Claim::Suspected });
        assert!(job.watchers.iter().all(|watcher| watcher.is_quiet_for(SETTINGS.heartbeat / 4)));
    }
}

#[test]
fn of_two_that_insist_on_a_broken_path_one_leaves_and_no_other() {
    let job = Job::start(3, 1, SETTINGS);
    let mut called = Call::accept(&job.played[0], job.key, THREE, 4);
    let mut caller = Call::dial(job.watchers[0].address, job.key, THREE, Pe::ROOT);
    let begun = Instant::now();
    let dead = loop {
        called.say(&known(0));
        caller.say(&Notice::Accuse { pe: ONE, claim: Claim::Lost });
        if let Ok(event) = job.watchers[0].events.recv_timeout(SETTINGS.heartbeat) {
            break event;
        }
        assert!(begun.elapsed() < SETTINGS.dead_after * 10, "no decision comes");
    };
    // Of equals the greater number.
    assert_eq!(dead, FailureEvent::Dead(vec![THREE]));
    for watcher in &job.watchers[1..] {
        assert_eq!(watcher.event(), FailureEvent::Dead(vec![THREE]));
    }
    assert!(job.watchers.iter().all(|watcher| watcher.is_quiet_for(SETTINGS.heartbeat)));
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
                watcher.events.try_iter().collect::<Vec<_>>()
            })
        });
        let leaving: Vec<_> = leaving.collect();
        let event = last.event();
        assert!(matches!(event, FailureEvent::JobOver { .. }), "{event:?}");
        for thread in leaving {
            let events = thread.join().unwrap();
            let is_over = |event: &FailureEvent| matches!(event, FailureEvent::JobOver { .. });
            assert!(events.len() <= 1 && events.iter().all(is_over), "{events:?}");
        }
        assert!(last.is_quiet_for(Duration::from_millis(5)), "it was the last event");
        last.detector.goodbye();
    }
}

#[test]
fn a_pe_that_leaves_first_sends_the_list_of_the_dead() {
    let settings = DetectorSettings { dead_after: Duration::from_secs(100), ..SETTINGS };
    let mut job = Job::start(2, 2, settings);
    // In the ring 0 → 1 → 2 → 3 → 0.
    let mut called = Call::accept(&job.played[0], job.key, TWO, 4);
    job.played.pop();
    job.watchers.iter().for_each(|watcher| watcher.detector.suspect(THREE));
    job.all_hear_of(THREE);
    // PE 2 knows already, so that nothing is due but what the leaver says.
    called.say(&known(1));
    let leaver = job.watchers.pop().expect("two");
    let leaving = std::thread::spawn(move || drop(leaver.detector.goodbye()));
    let bulletin = Some(bulletin_of(Death { pe: THREE, evidence: Evidence::Witnessed }));
    assert_eq!([called.hear(), called.hear()], [bulletin, Some(Notice::Goodbye)]);
    leaving.join().expect("it leaves");
}

#[test]
fn deaths_are_announced_also_when_the_job_is_over() {
    let mut job = Job::start(2, 2, SETTINGS);
    let mut called = Call::accept(&job.played[0], job.key, TWO, 4);
    called.say(&Notice::Goodbye);
    let watcher = &job.watchers[1];
    assert_eq!(watcher.event(), FailureEvent::JobOver { by: TWO });
    job.played.pop();
    watcher.detector.suspect(THREE);
    assert_eq!(watcher.event(), FailureEvent::Dead(vec![THREE]));
}

#[test]
fn a_dropped_detector_looks_like_a_crash() {
    let mut job = Job::start(3, 0, SETTINGS);
    let heard = || job.watchers[2].counters().heartbeats_received.load(Relaxed) > 0;
    eventually("one has heard", heard);
    drop(job.watchers.remove(1));
    job.all_hear_of(ONE);
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
    job.goodbye();
}

/// What this process has used so far.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // A hundred ticks a second, everywhere that matters.
    Duration::from_millis(10 * ticks)
}
