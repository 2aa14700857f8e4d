//! Who is called when something is to be done: a worker, the driver or the standby.

use super::{A_WHILE, ByHand, alone, end_of, jobs, start};
use crate::executor::api::context::Context;
use crate::executor::pe::processor::Processor;
use crate::executor::pe::worker::turn_if_due;
use crate::protocol::Message;
use crate::transport::{Lane, LaneError, Sleeper};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

/// Counts how often the driver is woken that sleeps here.
#[derive(Default)]
struct Bell(AtomicU32);

impl Bell {
    fn rung(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }
}

impl Sleeper for Bell {
    fn sleep(&self, _: Duration) {}
    fn wake(&self) {
        self.0.fetch_add(1, SeqCst);
    }
    fn wakes_on_traffic(&self) -> bool {
        true
    }
}

/// A lane to nowhere.
struct WithBell(Arc<Bell>);

impl Lane for WithBell {
    fn name(&self) -> &'static str {
        "with a bell"
    }
    fn frame_bytes_max(&self) -> usize {
        1000
    }
    fn send(&mut self, _: Pe, _: &mut Vec<u8>) -> Result<bool, LaneError> {
        Ok(true)
    }
    fn poll(&mut self, _: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        Ok(0)
    }
    fn is_flushed(&mut self) -> bool {
        true
    }
    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.0.clone()
    }
}

fn with_bell() -> (ByHand, Arc<Bell>) {
    let bell = Arc::<Bell>::default();
    let mut job = jobs(1, 1).next().expect("there is one");
    job.lane = Box::new(WithBell(bell.clone()));
    (start(job), bell)
}

/// Has a thread of the PE wait inside a task until it is opened.
struct Blocked {
    is_open: Arc<AtomicBool>,
}

impl Blocked {
    /// A worker.
    fn one(pe: &Arc<Processor>) -> Self {
        let (blocked, is_inside, block) = Self::new();
        pe.run_async(block).expect("this thread is no worker").detach();
        eventually("it has begun", || is_inside.load(SeqCst));
        blocked
    }

    /// The standby, while all workers are blocked.
    fn standby(pe: &Arc<Processor>) -> Self {
        let (blocked, is_inside, block) = Self::new();
        urgent(pe, block);
        eventually("it has begun", || {
            pe.call_standby_if_late();
            is_inside.load(SeqCst)
        });
        blocked
    }

    fn new() -> (Self, Arc<AtomicBool>, impl Future<Output = ()> + Send + 'static) {
        let (is_open, is_inside) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (open, inside) = (is_open.clone(), is_inside.clone());
        let block = async move {
            inside.store(true, SeqCst);
            eventually("it is opened", || open.load(SeqCst));
        };
        (Blocked { is_open }, is_inside, block)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.is_open.store(true, SeqCst);
    }
}

/// Has the PE run what must not wait for a worker.
fn urgent(pe: &Arc<Processor>, future: impl Future<Output = ()> + Send + 'static) {
    let again = |_| unreachable!("it waits for nothing");
    let (runnable, task) = async_task::spawn(future, again);
    task.detach();
    pe.resume_first(runnable);
}

#[test]
fn a_nudge_wakes_the_driver_where_it_sleeps() {
    let (pe, bell) = with_bell();
    bell.rung();
    pe.0.nudge();
    assert_eq!(bell.rung(), 1);
    let next: Arc<dyn Sleeper> = Arc::<Bell>::default();
    pe.0.driver.set_sleeper(&next);
    pe.0.nudge();
    assert_eq!(bell.rung(), 0, "it sleeps elsewhere");
}

#[test]
fn the_driver_is_woken_for_what_is_sent_and_for_a_turn_of_a_thread_that_is_no_worker() {
    let (pe, bell) = with_bell();
    bell.rung();
    assert!(turn_if_due(&pe.0), "the first is due");
    assert_eq!(bell.rung(), 1);
    while !turn_if_due(&pe.0) {
        assert_eq!(bell.rung(), 0);
    }
    assert_eq!(bell.rung(), 1);
    pe.0.send_message(Pe::ROOT, Message::Failed { reason: String::new() });
    assert_eq!((bell.rung(), pe.0.turns.outbox().len()), (1, 1));
    pe.0.start_ending();
    pe.0.send_message(Pe::ROOT, Message::Failed { reason: String::new() });
    assert_eq!(
        (bell.rung(), pe.0.turns.outbox().len()),
        (0, 1),
        "none waits for it while the job ends"
    );
}

/// Once it rests, only the driver handles what arrives.
#[test]
fn the_last_worker_that_rests_wakes_the_driver() {
    let (pe, bell) = with_bell();
    let blocked = Blocked::one(&pe.0);
    bell.rung();
    drop(blocked);
    eventually("it rests", || pe.rests());
    eventually("the driver is woken", || bell.rung() > 0);
}

#[test]
fn what_is_urgent_wakes_a_worker_or_else_the_driver() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    let urgent = |pe| urgent(pe, async { _ = DONE.fetch_add(1, SeqCst) });
    let (pe, bell) = with_bell();
    urgent(&pe.0);
    eventually("the worker does it", || DONE.load(SeqCst) == 1);
    eventually("it rests", || pe.rests());
    let blocked = Blocked::one(&pe.0);
    bell.rung();
    urgent(&pe.0);
    assert_eq!(bell.rung(), 1);
    // This is what the driver does.
    eventually("the standby does it", || {
        pe.0.call_standby_if_late();
        DONE.load(SeqCst) == 2
    });
    assert!(!pe.rests(), "the worker has not come back");
    assert!(bell.rung() > 0, "the driver looks at what the standby does");
    drop(blocked);
    eventually("it rests, and wakes the driver", || bell.rung() > 0);
    pe.0.start_ending();
    urgent(&pe.0);
    std::thread::sleep(A_WHILE);
    assert_eq!((bell.rung(), DONE.load(SeqCst)), (0, 2), "the job ends");
    pe.0.close();
    urgent(&pe.0);
    assert!(!pe.0.queues.has_urgent(), "the PE has left");
}

/// Were it to wake itself, it would not rest while the standby is inside a long task.
#[test]
fn the_driver_is_not_woken_for_a_standby_that_is_at_work() {
    let (pe, bell) = with_bell();
    let _worker = Blocked::one(&pe.0);
    let _standby = Blocked::standby(&pe.0);
    urgent(&pe.0, async {});
    bell.rung();
    let start = Instant::now();
    while start.elapsed() < A_WHILE {
        pe.0.call_standby_if_late();
    }
    assert_eq!(bell.rung(), 0);
}

#[test]
fn the_main_task_is_run_by_a_worker_or_else_by_the_standby() {
    static ON: AtomicU32 = AtomicU32::new(0);
    let main = async || {
        let thread = std::thread::current();
        let is_standby = thread.name().is_some_and(|name| name == "pe0-standby");
        ON.store(1 + u32::from(is_standby), SeqCst);
    };
    let pe = alone(1, |_| {});
    pe.0.run_main(main());
    eventually("it is run", || ON.load(SeqCst) > 0);
    assert_eq!(ON.swap(0, SeqCst), 1);
    eventually("the worker rests", || pe.rests());
    let blocked = Blocked::one(&pe.0);
    pe.0.run_main(main());
    eventually("it is run", || ON.load(SeqCst) > 0);
    assert_eq!(ON.swap(0, SeqCst), 2);
    drop(blocked);
    eventually("the worker rests", || pe.rests());
    pe.0.start_ending();
    pe.0.run_main(main());
    std::thread::sleep(A_WHILE);
    assert_eq!(ON.load(SeqCst), 0, "the job ends");
}

#[test]
fn as_many_are_active_as_there_are_workers_and_none_once_they_have_gone() {
    let pe = alone(2, |_| {});
    let active = || pe.0.crew.active();
    assert_eq!([(); 3].map(|()| pe.0.try_add_active()), [true, true, false]);
    assert_eq!(active(), 2);
    assert!(!pe.0.wake_worker(), "all are at work");
    (0..2).for_each(|_| pe.0.crew.rest());
    pe.0.start_ending();
    pe.0.close();
    pe.0.wake_worker();
    assert_eq!(active(), 0, "there are none");
    assert!(!pe.0.crew.spawn(|| unreachable!("there are none")));
}

/// The driver looks now and then: the call for it may have been declined.
#[test]
fn the_driver_calls_workers_for_what_waits() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    for was_declined in [false, true] {
        let pe = alone(2, |_| {});
        let task = |()| _ = RUN.fetch_add(1, SeqCst);
        // Two are active as it seems, so that none is called.
        assert_eq!([(); 2].map(|()| pe.0.try_add_active()), [true; 2]);
        let waiting = pe.context().spawn_fn(Distance::ZERO, task, ());
        (0..2).for_each(|_| pe.0.crew.rest());
        assert!(!pe.0.queues.is_empty());
        if was_declined {
            pe.0.crew.decline();
        }
        pe.0.wake_workers_if_needed();
        assert_eq!(end_of(waiting), Ok(()));
        assert!(!pe.0.crew.take_declined());
        eventually("all rest", || pe.rests());
        eventually("all have answered", || !pe.0.crew.is_calling_all());
        assert!(!pe.0.crew.is_calling());
        pe.0.wake_workers_if_needed();
        assert!(pe.rests(), "nothing waits");
    }
    assert_eq!(RUN.load(SeqCst), 2);
}

#[test]
fn a_future_runs_at_once_on_a_thread_that_runs_tasks() {
    let pe = alone(1, |_| {});
    let ends = async |cx: Context, ()| {
        static STEPS: AtomicU32 = AtomicU32::new(0);
        let ended = cx.pe.run_async(async { _ = STEPS.fetch_add(1, SeqCst) }).is_none();
        let waiting = cx.pe.run_async(async {
            STEPS.fetch_add(1, SeqCst);
            std::future::pending::<()>().await;
        });
        (ended, waiting.is_some(), STEPS.load(SeqCst))
    };
    let ended = end_of(pe.context().spawn(Distance::ZERO, ends, ()));
    assert_eq!(ended, Ok((true, true, 2)));
}
