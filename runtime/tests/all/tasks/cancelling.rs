//! Tasks that are not wanted any more.

use super::{PATIENCE, alone, among, until};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

/// Counts a stopped task.
struct Stopped(&'static AtomicU32);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn what_waits_is_never_started() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    const TASKS: usize = 10_000;
    among(4, 1, async |cx: Context| {
        let count = async |_, _: u32| {
            STARTED.fetch_add(1, SeqCst);
            // So that most of them wait on all PEs.
            thread::sleep(Duration::from_millis(1));
        };
        let placed: Vec<_> =
            (0..TASKS as u32).map(|n| cx.spawn_at(Pe::new(n % 4), count, n)).collect();
        let spawned: Vec<_> =
            (0..TASKS as u32).map(|n| cx.spawn(Distance::ONE, count, n)).collect();
        // Some are on their way, and some have ended.
        cx.sleep(Duration::from_millis(20)).await;
        Future::abort_all(placed.iter().chain(&spawned));
        let mut cancelled = 0;
        for future in placed.into_iter().chain(spawned) {
            match future.await {
                Ok(()) => {}
                Err(TaskError::Cancelled) => cancelled += 1,
                Err(other) => panic!("{other}"),
            }
        }
        // This task arrives after everything that was sent there before.
        for pe in 0..4 {
            cx.spawn_at(Pe::new(pe), async |_, ()| {}, ()).await.expect("it does nothing");
        }
        let started = STARTED.load(SeqCst);
        // A few run, or were just being handed on.
        assert!(started as usize + cancelled >= 2 * TASKS, "all that did not end");
        assert!(cancelled > TASKS, "{cancelled}");
        cx.sleep(Duration::from_millis(100)).await;
        assert!(STARTED.load(SeqCst) - started < 50, "they go on");
    });
}

#[test]
fn what_awaits_something_is_stopped_with_all_that_it_waits_for() {
    static STOPPED: AtomicU32 = AtomicU32::new(0);
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    async fn nest(cx: Context, depth: u32) {
        let _stopped = Stopped(&STOPPED);
        BEGUN.fetch_add(1, SeqCst);
        if depth == 0 {
            std::future::pending::<()>().await;
        }
        let next = Pe::new((cx.pe().number() + 1) % cx.pes());
        let _ = cx.spawn_at(next, boxed, depth - 1).boxed().await;
    }
    fn boxed(cx: Context, depth: u32) -> BoxFuture<'static, ()> {
        nest(cx, depth).boxed()
    }
    for pes in [1, 3] {
        BEGUN.store(0, SeqCst);
        STOPPED.store(0, SeqCst);
        among(pes, 2, async |cx: Context| {
            let outer = cx.spawn(Distance::ONE, boxed, 5);
            eventually("all wait", || BEGUN.load(SeqCst) == 6);
            outer.abort();
            assert_eq!(outer.await, Err(TaskError::Cancelled));
            eventually("all are stopped", || STOPPED.load(SeqCst) == 6);
        });
    }
}

/// A task that has begun, and is cancelled before it is known to wait, is stopped nevertheless.
#[test]
fn what_is_just_beginning_is_stopped() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static STOPPED: AtomicU32 = AtomicU32::new(0);
    const ROUNDS: u32 = 3000;
    among(2, 2, async |cx: Context| {
        let wait = async |cx: Context, ()| {
            BEGUN.fetch_add(1, SeqCst);
            let _stopped = Stopped(&STOPPED);
            cx.sleep(Duration::from_hours(1)).await;
        };
        for round in 0..ROUNDS {
            let begun = BEGUN.load(SeqCst);
            let task = match round % 3 {
                0 => cx.spawn_at(Pe::new(0), wait, ()),
                1 => cx.spawn_at(Pe::new(1), wait, ()),
                _ => cx.spawn(Distance::ONE, wait, ()),
            };
            // Mostly it is about to begin, or has just begun.
            (0..200).take_while(|_| BEGUN.load(SeqCst) == begun).for_each(|_| thread::yield_now());
            task.abort();
            assert_eq!(task.await, Err(TaskError::Cancelled));
        }
        assert!(BEGUN.load(SeqCst) > ROUNDS / 4, "{BEGUN:?} of them had begun");
        until(&cx, || BEGUN.load(SeqCst) == STOPPED.load(SeqCst)).await;
    });
}

#[test]
fn what_computes_can_ask() {
    for place in 0..2 {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        static ENDED: AtomicBool = AtomicBool::new(false);
        BEGUN.store(false, SeqCst);
        ENDED.store(false, SeqCst);
        among(2, 1, async move |cx: Context| {
            let compute = async |cx: Context, ()| {
                let start = Instant::now();
                assert!(!cx.is_cancelled());
                BEGUN.store(true, SeqCst);
                while !cx.is_cancelled() {
                    assert!(start.elapsed() < PATIENCE, "it is not told");
                    thread::yield_now();
                }
                // It is stopped at the next await.
                let _stopped = OnDrop(|| ENDED.store(true, SeqCst));
                std::future::pending::<()>().await;
            };
            let computing = cx.spawn_at(Pe::new(place), compute, ());
            until(&cx, || BEGUN.load(SeqCst)).await;
            computing.abort();
            assert_eq!(computing.await, Err(TaskError::Cancelled));
            until(&cx, || ENDED.load(SeqCst)).await;
        });
    }
}

/// Calls a function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn what_is_cancelled_where_it_waits_is_not_stolen_from_there() {
    static OPEN: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    static STARTED: AtomicU32 = AtomicU32::new(0);
    /// Keeps the worker of its PE until that is open.
    fn block(pe: Pe) {
        let start = Instant::now();
        while !OPEN[pe.index()].load(SeqCst) {
            assert!(start.elapsed() < PATIENCE, "it is not opened");
            thread::sleep(Duration::from_millis(1));
        }
    }
    among(3, 1, async |cx: Context| {
        static KEPT: AtomicU32 = AtomicU32::new(0);
        let keep = async |cx: Context, ()| {
            KEPT.fetch_add(1, SeqCst);
            block(cx.pe());
        };
        let kept = [0, 2].map(|pe| cx.spawn_at(Pe::new(pe), keep, ()));
        until(&cx, || KEPT.load(SeqCst) >= 2).await;
        // PE 1 steals some, and is kept by the first.
        let task = async |cx: Context, _: u32| {
            STARTED.fetch_add(1, SeqCst);
            block(cx.pe());
        };
        let tasks: Vec<_> = (0..200).map(|n| cx.spawn(Distance::ONE, task, n)).collect();
        until(&cx, || STARTED.load(SeqCst) > 0).await;
        cx.sleep(Duration::from_millis(20)).await;
        Future::abort_all(&tasks);
        // This task arrives after the cancellation.
        cx.tell(Pe::new(1), async |_, ()| OPEN[2].store(true, SeqCst), ()).expect("it goes");
        cx.sleep(Duration::from_millis(100)).await;
        OPEN.iter().for_each(|pe| pe.store(true, SeqCst));
        for kept in kept {
            kept.await.expect("it does not fail");
        }
        for pe in 0..3 {
            cx.spawn_at(Pe::new(pe), async |_, ()| {}, ()).await.expect("it does nothing");
        }
        assert_eq!(STARTED.load(SeqCst), 1, "only the first had begun");
    });
}

#[test]
fn dropping_a_future_cancels_its_task_if_it_is_set_to() {
    static STOPPED: AtomicU32 = AtomicU32::new(0);
    among(2, 1, async |cx: Context| {
        for pe in [0, 1] {
            let wait = async |_, ()| {
                let _stopped = Stopped(&STOPPED);
                std::future::pending::<()>().await;
            };
            let spawn = || cx.spawn_at(Pe::new(pe), wait, ());
            let (kept, dropped) = (spawn(), AbortOnDrop::new(spawn()));
            // They begin.
            cx.spawn_at(Pe::new(pe), async |_, ()| {}, ()).await.expect("it does nothing");
            drop(kept);
            drop(dropped);
            until(&cx, || STOPPED.load(SeqCst) > pe).await;
        }
        // Each of the two that were only dropped goes on until the job ends.
        assert_eq!(STOPPED.load(SeqCst), 2);
    });
}

#[test]
fn a_result_that_is_there_stays() {
    among(2, 1, async |cx: Context| {
        for pe in [0, 1] {
            let seven = cx.spawn_at(Pe::new(pe), async |_, ()| 7, ());
            until(&cx, || seven.is_ready()).await;
            seven.abort();
            seven.abort();
            assert_eq!(seven.await, Ok(7));
        }
    });
}

#[test]
fn what_takes_too_long_is_cancelled() {
    static STOPPED: AtomicU32 = AtomicU32::new(0);
    among(2, 1, async |cx: Context| {
        let wait = async |cx: Context, ()| {
            let _stopped = Stopped(&STOPPED);
            cx.sleep(PATIENCE * 10).await;
        };
        let both = [0, 1].map(|pe| cx.spawn_at(Pe::new(pe), wait, ()));
        let waiting = async {
            for one in both {
                one.await?;
            }
            Ok::<_, TaskError>(())
        };
        let result = cx.timeout(Duration::from_millis(20), waiting).await;
        assert_eq!(result, Err(ultramarine_runtime::executor::Elapsed));
        until(&cx, || STOPPED.load(SeqCst) >= 2).await;
        let seven = cx.timeout(PATIENCE, cx.spawn_at(Pe::new(1), async |_, ()| 7, ())).await;
        assert_eq!(seven, Ok(Ok(7)));
    });
}

#[test]
fn what_computes_too_long_in_the_same_task_is_cancelled_where_it_yields() {
    async fn is_late(cx: Context, (): ()) -> bool {
        let compute = async {
            let start = Instant::now();
            while start.elapsed() < PATIENCE {
                if cx.poll_runtime().is_some_and(|demand| demand.is_turn_wanted) {
                    cx.yield_now().await;
                }
            }
        };
        cx.timeout(Duration::from_millis(20), compute).await.is_err()
    }
    alone(1, async |cx: Context| {
        assert!(is_late(cx.clone(), ()).await);
        assert_eq!(cx.spawn(Distance::ONE, is_late, ()).await, Ok(true));
    });
}

/// Its drop waits inside rayon for what another worker does meanwhile.
struct DropsLong(&'static AtomicBool);

impl Drop for DropsLong {
    fn drop(&mut self) {
        let is_begun = AtomicBool::new(false);
        let other = || {
            is_begun.store(true, SeqCst);
            thread::sleep(Duration::from_millis(200));
        };
        let begin = || {
            let start = Instant::now();
            while !is_begun.load(SeqCst) && start.elapsed() < PATIENCE {
                thread::yield_now();
            }
        };
        rayon::join(begin, other);
        self.0.store(true, SeqCst);
    }
}

#[test]
fn what_another_task_lets_go_during_a_drop_is_not_cancelled() {
    static HELD: AtomicBool = AtomicBool::new(false);
    static DROPPED: AtomicBool = AtomicBool::new(false);
    static RAN: AtomicU32 = AtomicU32::new(0);
    alone(2, async |cx: Context| {
        let hold = async |cx: Context, ()| {
            let _held = DropsLong(&DROPPED);
            HELD.store(true, SeqCst);
            cx.sleep(PATIENCE * 2).await;
        };
        let held = cx.spawn(Distance::ZERO, hold, ());
        until(&cx, || HELD.load(SeqCst)).await;
        // Resumed while the other one is dropped.
        let let_go = async |cx: Context, ()| {
            let mut let_go = 0;
            while !DROPPED.load(SeqCst) {
                cx.sleep(Duration::from_millis(1)).await;
                let count = |()| {
                    RAN.fetch_add(1, SeqCst);
                };
                drop(cx.spawn_fn(Distance::ZERO, count, ()));
                let_go += 1;
            }
            let_go
        };
        let let_go = cx.spawn(Distance::ZERO, let_go, ());
        held.abort();
        let let_go = let_go.await.expect("it ends");
        eventually("all run", || RAN.load(SeqCst) == let_go);
    });
}
