//! What a turn at the engine says, and does when the lane fails.

use super::{ByHand, end_of, end_with_turns_of, jobs, start, two};
use crate::executor::api::context::Context;
use crate::executor::engine::failure::JobError;
use crate::executor::engine::liveness::{DetectorSetup, FailureDetector};
use crate::executor::pe::processor::Job;
use crate::transport::testing::Disturbed;
use crate::transport::{Lane, LaneError, memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

const THERE: Pe = Pe::new(1);

/// Takes turns until work comes to the second.
fn until_work_comes([here, there]: &[ByHand; 2]) {
    for _ in 0..1000 {
        here.0.turn();
        if there.0.turn().work_came {
            return;
        }
    }
    panic!("no work comes");
}

#[test]
fn a_turn_says_that_work_has_come() {
    static HEARD: AtomicU32 = AtomicU32::new(0);
    let pes = two(1);
    let [here, there] = &pes;
    let cx = here.context();
    assert!(!there.0.turn().work_came, "nothing is under way");
    let task = async |_: Context, ()| _ = HEARD.fetch_add(1, SeqCst);
    let rests = || eventually("its worker rests", || there.rests());
    let comes_back = || {
        eventually("a result comes back", || {
            there.0.turn();
            here.0.turn().work_came
        });
    };
    let placed = cx.spawn_at(THERE, task, ());
    until_work_comes(&pes);
    comes_back();
    rests();
    let asked = cx.ask(THERE, task, ());
    until_work_comes(&pes);
    comes_back();
    rests();
    cx.tell(THERE, task, ()).expect("it may be sent");
    until_work_comes(&pes);
    eventually("all are run", || HEARD.load(SeqCst) == 3);
    assert_eq!([end_of(placed), end_of(asked)], [Ok(()), Ok(())]);
}

#[test]
fn a_turn_says_that_stolen_work_has_come() {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    let pes = two(1);
    let cx = pes[0].context();
    let keep = |()| {
        IS_KEPT.store(true, SeqCst);
        eventually("it is opened", || IS_OPEN.load(SeqCst));
    };
    let kept = cx.spawn_fn(Distance::ZERO, keep, ());
    eventually("it is kept", || IS_KEPT.load(SeqCst));
    let stolen = cx.spawn_fn(Distance::ONE, |n: u32| n + 1, 6);
    until_work_comes(&pes);
    assert_eq!(end_with_turns_of(&pes, stolen), Ok(7));
    IS_OPEN.store(true, SeqCst);
    assert_eq!(end_of(kept), Ok(()));
}

struct Silent;

impl FailureDetector for Silent {
    fn suspect(&self, _: Pe) {}
    fn ask_end(&self) {}
    fn goodbye(self: Box<Self>) {}
}

/// Two PEs whose lanes fail when they are told to, and hand no arrays over.
fn failing(has_fallback: bool, has_failed: &Arc<AtomicBool>) -> [ByHand; 2] {
    let lanes = memory::network(2).into_iter().zip(memory::network(2));
    let mut pes = jobs(2, 1).zip(lanes).map(|(job, (inner, fallback))| {
        let fallback = has_fallback.then(|| Box::new(fallback) as Box<dyn Lane>);
        let begin = |_| Ok(Box::new(Silent) as Box<dyn FailureDetector>);
        let detector = Some(DetectorSetup { fallback, start: Box::new(begin) });
        let has_failed = has_failed.clone();
        let lane = Box::new(Disturbed(inner, move |_: &mut _| {
            let error =
                || LaneError::Io { doing: "a test".into(), source: std::io::Error::other("") };
            if has_failed.load(SeqCst) { Err(error()) } else { Ok(()) }
        }));
        start(Job { lane, detector, ..job })
    });
    [(); 2].map(|()| pes.next().expect("there are two"))
}

#[test]
fn a_pe_whose_lane_fails_goes_on_over_the_other_or_ends() {
    for (has_fallback, fails_first) in [(true, true), (true, false), (false, true)] {
        let has_failed = Arc::new(AtomicBool::new(fails_first));
        let pes = failing(has_fallback, &has_failed);
        let cx = pes[0].context();
        let answer = cx.spawn_at(THERE, async |_, n: u32| n + 1, 6);
        if !fails_first {
            pes[0].0.turn();
            has_failed.store(true, SeqCst);
        }
        if has_fallback {
            assert_eq!(end_with_turns_of(&pes, answer), Ok(7));
        } else {
            pes[0].0.turn();
            assert!(matches!(*pes[0].0.ending.failure(), Some(JobError::Link { .. })));
            assert!(pes[0].0.is_ending());
        }
        assert_eq!(pes[0].0.is_ending(), !has_fallback);
    }
}

/// These are on one host, so that one reads the other's memory.
#[test]
fn a_long_array_is_copied_once_on_its_way_to_a_neighbour() {
    const LENGTH: u64 = 1 << 20;
    let pes = failing(false, &Arc::default());
    let long: Vec<u64> = (0..LENGTH).collect();
    let length = pes[0].context().spawn_at(THERE, async |_, long: Vec<u64>| long.len(), long);
    assert_eq!(end_with_turns_of(&pes, length), Ok(LENGTH as usize));
    let fetched =
        pes[1].0.turns.engine().as_ref().map(|engine| engine.link_counters().bytes_fetched);
    assert_eq!(fetched, Some(LENGTH * 8));
}
