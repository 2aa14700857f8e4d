//! Who is woken by what has ended, if one task has begun to wait for it and another goes on.

use super::{alone, until};
use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{self, Waker};
use std::time::Instant;
use ultramarine_runtime::executor::{Context, Future};
use ultramarine_testkit::{PATIENCE, Woken, eventually};
use ultramarine_topology::Distance;

/// Polls it by two, one after the other, neither of which finds it ended. Then has it end, and
/// waits until the second is woken; the first must not be.
fn moves<T: std::future::Future>(waiting: T, end: impl FnOnce(&T)) {
    let woken: [Arc<Woken>; 2] = Default::default();
    let mut waiting = pin!(waiting);
    for waker in woken.iter().map(Woken::waker) {
        let polled = waiting.as_mut().poll(&mut task::Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    end(&waiting);
    eventually("the last one is woken", || woken[1].count() > 0);
    assert_eq!(woken[0].count(), 0);
    assert!(waiting.as_mut().poll(&mut task::Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn the_result_of_a_task_wakes_the_one_that_asked_last() {
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    alone(2, async |cx: Context| {
        let wait = async |cx: Context, ()| {
            until(&cx, || IS_OPEN.load(SeqCst)).await;
        };
        let future = cx.spawn(Distance::ZERO, wait, ());
        moves(future, |_| IS_OPEN.store(true, SeqCst));
    });
}

#[test]
fn a_task_that_is_cancelled_wakes_the_one_that_asked_last() {
    alone(1, async |cx: Context| {
        let wait = async |_, ()| std::future::pending::<()>().await;
        moves(cx.spawn(Distance::ZERO, wait, ()), Future::abort);
    });
}

#[test]
fn who_yields_is_woken_at_once_and_goes_on_the_next_time() {
    alone(1, async |cx: Context| {
        let woken = Arc::<Woken>::default();
        let waker = woken.waker();
        let mut yielding = pin!(cx.yield_now());
        let mut poll = || yielding.as_mut().poll(&mut task::Context::from_waker(&waker));
        assert!(poll().is_pending());
        assert_eq!(woken.count(), 1);
        assert!(poll().is_ready());
    });
}

#[test]
fn a_value_in_a_mailbox_wakes_the_one_that_asked_last() {
    alone(2, async |cx: Context| {
        let (key, me) = (cx.new_key(), cx.pe());
        let mail = cx.mailbox::<u32>(key);
        moves(mail.receive(me), |_| mail.send(me, 7).expect("it may be sent"));
        moves(mail.receive_any(), |_| mail.send(me, 8).expect("it may be sent"));
        moves(mail.receive(me), |_| cx.forget(key));
    });
}

#[test]
fn one_that_yields_again_and_again_lets_what_it_has_spawned_start() {
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    alone(1, async |cx: Context| {
        let yields = async |cx: Context, ()| {
            drop(cx.spawn(Distance::ZERO, async |_, ()| HAS_RUN.store(true, SeqCst), ()));
            let start = Instant::now();
            while !HAS_RUN.load(SeqCst) && start.elapsed() < PATIENCE {
                cx.yield_now().await;
            }
            HAS_RUN.load(SeqCst)
        };
        assert_eq!(cx.spawn(Distance::ZERO, yields, ()).await, Ok(true));
    });
}
