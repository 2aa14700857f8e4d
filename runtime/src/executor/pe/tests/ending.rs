//! What becomes of tasks and futures on a PE that ends, or that they are not wanted on.

use super::{A_WHILE, alone, end_of, now, two};
use crate::detector::FailureEvent;
use crate::error::TaskError;
use crate::executor::api::context::Context;
use crate::executor::pe::leave::Leave;
use crate::executor::task::origin::Origin;
use crate::protocol::TaskId;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use ultramarine_testkit::{bounded, eventually};
use ultramarine_topology::{Distance, Pe};

/// No result can come any more.
#[test]
fn all_futures_end_when_a_pe_closes() {
    let [root, _other] = two(1);
    let cx = root.context();
    let there = || cx.spawn_at(Pe::new(1), async |_, ()| (), ());
    let away = there();
    root.0.turn();
    assert_eq!(root.0.away(), 1);
    let (waits_to_leave, asks) = (there(), cx.ask(Pe::new(1), async |_, ()| (), ()));
    root.0.start_ending();
    let placed = cx.spawn_at(Pe::ROOT, async |_, ()| (), ());
    root.0.close();
    let afterwards = [there(), cx.ask(Pe::new(1), async |_, ()| (), ())];
    for future in [away, waits_to_leave, asks, placed].into_iter().chain(afterwards) {
        assert_eq!(now(future), Some(Err(TaskError::ShuttingDown)));
    }
    assert!(root.0.is_closed() && root.0.turns.outbox().is_empty());
    assert!(!root.0.crew.with_pool(|_| ()), "its workers have gone");
}

/// It may have been stuck while another has taken over, and brings the PE to its end.
#[test]
fn a_driver_that_is_not_the_current_one_ends_nothing() {
    for is_ending in [false, true] {
        let pe = alone(1, |_| {});
        let next = pe.0.driver.replace(|_| Ok::<_, ()>(std::thread::current()));
        next.expect("it is there");
        if is_ending {
            pe.0.start_ending();
        }
        let stale = pe.0.clone();
        assert_eq!(bounded(move || stale.drive(0)), None);
        assert!(!pe.0.is_closed(), "the other one closes it");
        pe.0.start_ending();
        assert_eq!(pe.0.drive(1), Some(Leave::Orderly));
        assert!(pe.0.is_closed());
    }
}

#[test]
fn a_task_is_not_wanted_for_any_of_three_reasons() {
    let [pe, _other] = two(1);
    let (task, home) = (TaskId { home: Pe::new(1), future: 7 }, Pe::new(1));
    let cx = Context::of(&pe.0, Origin { task, home, is_supervised: false });
    assert!(!cx.is_cancelled() && !pe.context().is_cancelled());
    pe.0.guests.cancel(home, &[7]);
    assert!(cx.is_cancelled() && !pe.context().is_cancelled());
    pe.0.guests.tidy();
    assert!(!cx.is_cancelled());
    pe.0.liveness.note(FailureEvent::Dead(vec![home]));
    assert!(cx.is_cancelled() && !pe.context().is_cancelled());
    pe.0.start_ending();
    assert!(pe.context().is_cancelled());
}

/// Else a PE would keep a little of each task that was cancelled while it ran.
#[test]
fn what_was_cancelled_is_forgotten_when_it_ends() {
    static NAME: Mutex<Option<TaskId>> = Mutex::new(None);
    static IS_NOTICED: AtomicBool = AtomicBool::new(false);
    let pe = alone(1, |_| {});
    let compute = async |cx: Context, ()| {
        *NAME.lock().expect("no panic") = Some(cx.origin.task);
        eventually("it is cancelled", || cx.is_cancelled());
        IS_NOTICED.store(true, SeqCst);
    };
    let computing = pe.context().spawn(Distance::ZERO, compute, ());
    let name = || *NAME.lock().expect("no panic");
    eventually("it begins", || name().is_some());
    computing.abort();
    eventually("it is noticed", || IS_NOTICED.load(SeqCst));
    let name = name().expect("it has begun");
    eventually("it is forgotten", || !pe.0.guests.cancelled().contains(name));
    assert_eq!(end_of(computing), Err(TaskError::Cancelled));
}

#[test]
fn what_can_go_on_while_the_job_ends_does_not() {
    static STEPS: AtomicU32 = AtomicU32::new(0);
    static IS_DROPPED: AtomicBool = AtomicBool::new(false);
    struct Dropped;
    impl Drop for Dropped {
        fn drop(&mut self) {
            IS_DROPPED.store(true, SeqCst);
        }
    }
    for is_closed in [false, true] {
        IS_DROPPED.store(false, SeqCst);
        STEPS.store(0, SeqCst);
        let pe = alone(2, |_| {});
        let other = Arc::<futures_util::task::AtomicWaker>::default();
        let waker = other.clone();
        let step = async move {
            let _dropped = Dropped;
            std::future::poll_fn(|cx| {
                waker.register(cx.waker());
                STEPS.fetch_add(1, SeqCst);
                std::task::Poll::<()>::Pending
            })
            .await;
        };
        let task = pe.0.run_async(step).expect("this thread is no worker");
        task.detach();
        eventually("it waits", || STEPS.load(SeqCst) == 1);
        other.wake();
        eventually("it goes on", || STEPS.load(SeqCst) == 2);
        eventually("the workers rest", || pe.rests());
        pe.0.start_ending();
        if is_closed {
            pe.0.close();
        }
        other.wake();
        std::thread::sleep(A_WHILE);
        assert_eq!((STEPS.load(SeqCst), IS_DROPPED.load(SeqCst)), (2, is_closed));
        drop(pe);
        assert!(IS_DROPPED.load(SeqCst));
    }
}

#[test]
fn a_value_that_is_known_is_not_made_again() {
    let pe = alone(1, |_| {});
    let (cx, key) = (pe.context(), pe.context().new_key());
    assert!(cx.known::<u32>(key).is_none());
    let made = end_of(cx.shared_async(key, async || 7)).expect("it is made");
    let again = end_of(cx.shared_async(key, async || -> u32 { unreachable!("it is there") }));
    assert!(Arc::ptr_eq(&made, &again.expect("it is there")));
    assert_eq!((cx.known::<u32>(key).as_deref(), cx.shared_count()), (Some(&7), 1));
    assert!(cx.known::<u64>(key).is_none(), "the type is part of its name");
    let other = cx.new_key();
    assert!(other != key && cx.known::<u32>(other).is_none());
    cx.forget(key);
    assert_eq!((cx.known::<u32>(key), cx.shared_count(), *made), (None, 0, 7));
    let failed = end_of(cx.shared_async::<u32, _>(key, async || panic!("it cannot be made")));
    assert!(matches!(failed, Err(TaskError::Panicked { .. })), "{failed:?}");
    assert_eq!(end_of(cx.shared_async(key, async || 8)).as_deref(), Ok(&8));
    assert_eq!(cx.shared_count(), 1, "nothing else is left");
}
