//! A result of a job that could go on without its root counts only once others have agreed.

use super::{PATIENCE, jobs};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use ultramarine_runtime::detector::FailureEvent;
use ultramarine_runtime::executor::{
    Context, DetectorSetup, EventHandler, FailureDetector, JobError, take_part,
};
use ultramarine_testkit::{eventually, within};
use ultramarine_topology::Pe;

/// Longer than a job takes that does not wait for an agreement.
const WHILE: Duration = Duration::from_millis(100);

/// What a root wants of its detector, and how far its main task is.
#[derive(Clone, Default)]
struct Asked {
    ends: Arc<AtomicU32>,
    steps: Arc<AtomicU32>,
    report: Arc<Mutex<Option<EventHandler>>>,
}

impl Asked {
    fn report(&self, event: FailureEvent) {
        self.report.lock().unwrap().as_ref().expect("the detector runs")(event);
    }
}

impl FailureDetector for Asked {
    fn suspect(&self, _: Pe) {}
    fn ask_end(&self) {
        self.ends.fetch_add(1, SeqCst);
    }
    fn goodbye(self: Box<Self>) {}
}

/// Runs a main task that returns 7, and may ask before that. Calls `answer` once it has asked.
fn run(asks: bool, answer: impl FnOnce(&Asked)) -> (Result<Option<u32>, JobError>, u32) {
    let asked = Asked::default();
    let detector = asked.clone();
    let start = Box::new(move |report| {
        *detector.report.lock().unwrap() = Some(report);
        Ok(Box::new(detector) as Box<dyn FailureDetector>)
    });
    let mut detector = Some(DetectorSetup { fallback: None, start });
    let job = jobs(1, 1, |_| detector.take()).pop().expect("there is one");
    let steps = asked.steps.clone();
    let main = move |cx: Context| {
        let steps = steps.clone();
        async move {
            if asks {
                cx.agree_to_end().await;
                steps.fetch_add(1, SeqCst);
            }
            7
        }
    };
    let take_part = move || {
        let (result, parting) = take_part(job, main, |_| true, || panic!("it ends here"));
        parting.goodbye();
        result
    };
    let job = thread::spawn(move || within(PATIENCE, take_part));
    eventually("the others are asked", || asked.ends.load(SeqCst) > 0);
    thread::sleep(WHILE);
    assert_eq!(asked.steps.load(SeqCst), 0, "the main task waits for the others");
    assert!(!job.is_finished());
    answer(&asked);
    (job.join().expect("it does not hang"), asked.steps.load(SeqCst))
}

fn lost() -> FailureEvent {
    FailureEvent::RootLost { reason: "the others go on".to_owned() }
}

#[test]
fn once_the_others_agree_the_main_task_goes_on_and_its_result_counts() {
    let (result, steps) = run(true, |asked| asked.report(FailureEvent::EndAgreed));
    assert!(matches!(result, Ok(Some(7))), "{result:?}");
    assert_eq!(steps, 1);
    let (result, _) = run(false, |asked| asked.report(FailureEvent::EndAgreed));
    assert!(matches!(result, Ok(Some(7))), "the runtime asks, too: {result:?}");
}

#[test]
fn a_root_that_the_others_have_left_has_no_result() {
    for asks in [true, false] {
        let (result, steps) = run(asks, |asked| asked.report(lost()));
        assert!(matches!(result, Err(JobError::RootLost { .. })), "{result:?}");
        assert_eq!(steps, 0);
    }
}

#[test]
fn a_pe_hears_that_the_job_has_ended_elsewhere_before_the_others_leave() {
    let [root, other] = [0, 1].map(|_| Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = jobs(2, 1, |_| None)
        .into_iter()
        .map(|job| {
            let heard = if job.me == Pe::ROOT { root.clone() } else { other.clone() };
            let seen = other.clone();
            thread::spawn(move || {
                let hear = move || _ = heard.fetch_add(1, SeqCst);
                let (result, parting) = take_part(job, |_| async { 7 }, |_| true, hear);
                parting.goodbye();
                (result, seen.load(SeqCst))
            })
        })
        .collect();
    for (pe, thread) in threads.into_iter().enumerate() {
        let (result, heard) = within(PATIENCE, || thread.join().expect("it does not panic"));
        assert_eq!(result.expect("no PE dies").is_some(), pe == 0);
        assert_eq!(heard, 1, "when PE {pe} leaves");
    }
    assert_eq!(root.load(SeqCst), 0);
}
