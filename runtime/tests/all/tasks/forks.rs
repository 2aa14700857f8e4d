//! Forks of threads that have no deque.

use super::alone;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_testkit::eventually;
use ultramarine_topology::Distance;

#[test]
fn what_a_foreign_thread_forks_and_leaves_is_run_once() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    alone(1, async |cx| {
        let task = async |_: Context, n: u32| {
            RUN.fetch_add(1, SeqCst);
            n
        };
        let foreign = cx.clone();
        let fork_all = move || {
            let forks: Vec<_> = (0..9).map(|n| foreign.fork(Distance::ONE, task, n)).collect();
            let mut left = Vec::new();
            for (n, fork) in (0..).zip(forks) {
                match n % 3 {
                    0 => left.push((n, fork.leave())),
                    // The worker runs this main task, and none of them.
                    1 => assert!(matches!(fork.take_back(), Ok(argument) if argument == n)),
                    _ => drop(fork),
                }
            }
            left
        };
        let left = thread::spawn(fork_all).join().expect("no panic");
        for (n, future) in left {
            assert_eq!(future.await, Ok(n));
        }
        assert_eq!(cx.spawn(Distance::ONE, task, 7).await, Ok(7));
        assert_eq!(RUN.load(SeqCst), 3 + 1);
    });
}

/// Another worker has taken it; it is taken back before and after it has ended.
#[test]
fn the_result_of_a_fork_that_has_been_run_is_not_lost() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static MAY_END: AtomicU32 = AtomicU32::new(0);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    alone(2, async |cx| {
        let task = async |_: Context, n: u32| {
            BEGUN.fetch_add(1, SeqCst);
            while MAY_END.load(SeqCst) < n {
                thread::yield_now();
            }
            ENDED.fetch_add(1, SeqCst);
            n
        };
        for n in 1..=2 {
            let fork = cx.fork(Distance::ONE, task, n);
            eventually("another worker takes it", || BEGUN.load(SeqCst) == n);
            let end = || {
                MAY_END.store(n, SeqCst);
                eventually("it ends", || ENDED.load(SeqCst) == n);
            };
            if n == 1 {
                end();
            }
            let Err(future) = fork.take_back() else { panic!("it has begun") };
            if n == 2 {
                end();
            }
            assert_eq!(future.await, Ok(n));
        }
    });
}

#[test]
fn a_join_calls_one_function_here_and_leaves_the_other_to_a_thief() {
    static WAS_STOLEN: AtomicBool = AtomicBool::new(false);
    async fn one(_: Context, is_stolen: bool) -> u32 {
        if is_stolen {
            eventually("another worker takes the other", || WAS_STOLEN.load(SeqCst));
        }
        1
    }
    async fn other(_: Context, n: u32) -> u32 {
        WAS_STOLEN.store(true, SeqCst);
        assert!(n > 0, "no number");
        n
    }
    alone(1, async move |cx| {
        assert_eq!(cx.join(Distance::ONE, one, false, other, 2).await, Ok((1, 2)));
        let panicked = cx.join(Distance::ONE, one, false, other, 0).await;
        assert!(matches!(panicked, Err(TaskError::Panicked { .. })), "{panicked:?}");
    });
    WAS_STOLEN.store(false, SeqCst);
    alone(2, async move |cx| {
        assert_eq!(cx.join(Distance::ONE, one, true, other, 2).await, Ok((1, 2)));
        WAS_STOLEN.store(false, SeqCst);
        let panicked = cx.join(Distance::ONE, one, true, other, 0).await;
        assert!(matches!(panicked, Err(TaskError::Panicked { .. })), "{panicked:?}");
    });
}

#[test]
fn a_join_offers_its_outer_halves_while_thieves_find_too_little() {
    const DEPTH: u32 = 20;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    async fn taken(_: Context, by: u32) {
        TAKEN.fetch_add(by, SeqCst);
    }
    fn below(cx: Context, depth: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if depth < DEPTH {
                cx.join(Distance::ONE, below, depth + 1, taken, 1).await.expect("none panics");
                return;
            }
            // Each of these joins may be a beat. Nothing else offers what is outside.
            let begun = Instant::now();
            while TAKEN.load(SeqCst) < DEPTH {
                assert!(begun.elapsed() < Duration::from_secs(20), "the other worker gets nothing");
                let none = async |_: Context, ()| {};
                cx.join(Distance::ONE, none, (), taken, 0).await.expect("none panics");
            }
        })
    }
    alone(2, async |cx| below(cx.clone(), 0).await);
}

#[test]
fn a_join_whose_first_function_awaits_leaves_the_second_to_any_worker() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    alone(1, async |cx| {
        let waits = async |cx: Context, ()| {
            while RUN.load(SeqCst) == 0 {
                cx.sleep(Duration::from_millis(1)).await;
            }
        };
        let runs = async |_: Context, n: u32| RUN.fetch_add(n, SeqCst);
        let both = cx.join(Distance::ONE, waits, (), runs, 1);
        let both = cx.timeout(Duration::from_secs(20), both).await.expect("in time");
        assert_eq!(both, Ok(((), 0)));
    });
}

/// An argument that panics when it is dropped.
#[derive(serde::Serialize, serde::Deserialize)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("it goes off");
    }
}

#[test]
fn a_panic_in_a_join_is_the_first_functions_whatever_its_argument_does() {
    alone(1, async |cx| {
        let joins = async |cx: Context, (): ()| {
            let panics = async |_: Context, (): ()| panic!("no first");
            let none = async |_: Context, _: Bomb| {};
            drop(cx.join(Distance::ONE, panics, (), none, Bomb).await);
        };
        let ended = cx.spawn(Distance::ZERO, joins, ()).await;
        let Err(TaskError::Panicked { message, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!(message, "no first");
    });
}

#[test]
fn what_the_second_function_awaits_is_aborted_with_the_join() {
    static WAS_STOPPED: AtomicBool = AtomicBool::new(false);
    struct Stopped;
    impl Drop for Stopped {
        fn drop(&mut self) {
            WAS_STOPPED.store(true, SeqCst);
        }
    }
    alone(1, async |cx| {
        let second = async |cx: Context, ()| {
            let child = async |cx: Context, ()| {
                let _stopped = Stopped;
                cx.sleep(Duration::from_mins(1)).await;
            };
            cx.spawn(Distance::ZERO, child, ()).await.expect("it is not lost");
        };
        let first = async |_: Context, ()| {};
        let mut both = Box::pin(cx.join(Distance::ONE, first, (), second, ()));
        let polled = poll_fn(|task| Poll::Ready(both.as_mut().poll(task).is_pending())).await;
        assert!(polled, "the child sleeps");
        cx.sleep(Duration::from_millis(20)).await;
        drop(both);
        let is_stopped = async {
            while !WAS_STOPPED.load(SeqCst) {
                cx.sleep(Duration::from_millis(1)).await;
            }
        };
        cx.timeout(Duration::from_secs(20), is_stopped).await.expect("the child is stopped");
    });
}

#[test]
fn a_join_of_the_main_task_leaves_all_second_functions_when_the_first_awaits() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    alone(1, async |cx| {
        let runs = async |_: Context, ()| {
            RUN.fetch_add(1, SeqCst);
        };
        let inner = async move |cx: Context, ()| {
            let waits = async |cx: Context, ()| {
                while RUN.load(SeqCst) < 2 {
                    cx.sleep(Duration::from_millis(1)).await;
                }
            };
            cx.join(Distance::ONE, waits, (), runs, ()).await.expect("none panics");
        };
        let both = cx.join(Distance::ONE, inner, (), runs, ());
        let both = cx.timeout(Duration::from_secs(20), both).await.expect("in time");
        assert_eq!(both, Ok(((), ())));
    });
}

#[test]
fn a_fork_that_is_dropped_is_not_run() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    alone(1, async |cx| {
        let task = async |_: Context, n: u32| RUN.fetch_add(n, SeqCst);
        drop(cx.fork(Distance::ONE, task, 1));
        cx.spawn(Distance::ONE, task, 10).await.expect("it ends");
        assert_eq!(RUN.load(SeqCst), 10);
    });
}

/// A fork that a thief has taken, and that ends only when it is aborted.
async fn endless(cx: Context, begun: u32) {
    ENDLESS.fetch_add(begun, SeqCst);
    let _ended = OnDrop;
    loop {
        cx.sleep(Duration::from_millis(1)).await;
    }
}

static ENDLESS: AtomicU32 = AtomicU32::new(0);

struct OnDrop;

impl Drop for OnDrop {
    fn drop(&mut self) {
        ENDLESS.store(0, SeqCst);
    }
}

fn is_taken() {
    eventually("another worker takes it", || ENDLESS.load(SeqCst) > 0);
}

fn is_aborted() {
    eventually("it is aborted", || ENDLESS.load(SeqCst) == 0);
}

#[test]
fn a_fork_that_is_dropped_or_whose_join_ends_early_is_aborted_at_its_thief() {
    alone(2, async |cx| {
        let fork = cx.fork(Distance::ONE, endless, 1);
        is_taken();
        drop(fork);
        is_aborted();

        let waits = async |cx: Context, ()| {
            is_taken();
            cx.sleep(Duration::from_hours(1)).await;
        };
        let join = cx.join(Distance::ONE, waits, (), endless, 1);
        let late = cx.timeout(Duration::from_millis(50), join).await;
        assert!(late.is_err(), "{late:?}");
        is_aborted();

        let both = async |cx: Context, ()| {
            let panics = async |_: Context, ()| {
                is_taken();
                panic!("the first half");
            };
            cx.join(Distance::ONE, panics, (), endless, 1).await.map(drop)
        };
        let panicked = cx.spawn(Distance::ZERO, both, ()).await;
        assert!(matches!(panicked, Err(TaskError::Panicked { .. })), "{panicked:?}");
        is_aborted();
    });
}

#[test]
fn a_function_joins_with_itself_as_deep_as_memory_allows() {
    fn depth(cx: Context, left: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            let Some(left) = left.checked_sub(1) else { return 0 };
            let one = async |_: Context, ()| 1;
            cx.join(Distance::ONE, depth, left, one, ()).await.map_or(0, |(deep, one)| deep + one)
        })
    }
    alone(1, async |cx| assert_eq!(depth(cx, 200_000).await, 200_000));
}

#[test]
fn what_is_forked_inside_rayons_join_is_done_once() {
    alone(2, async |cx| {
        let forked = |n: u32| {
            let fork = cx.fork(Distance::ONE, async |_, n: u32| n, n);
            // Another worker may take it meanwhile.
            thread::sleep(Duration::from_millis(u64::from(n % 2)));
            fork.take_back()
        };
        for n in 0..50 {
            let (left, right) = rayon::join(|| forked(2 * n), || forked(2 * n + 1));
            for (n, done) in [(2 * n, left), (2 * n + 1, right)] {
                let result = match done {
                    Ok(n) => n,
                    Err(stolen) => stolen.await.expect("it ends"),
                };
                assert_eq!(result, n);
            }
        }
    });
}
