//! The main task goes on, and messages are heard, while all workers of a PE are inside long tasks.

use super::{PATIENCE, among, until};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{Context, Shared};
use ultramarine_topology::{Distance, Pe};

/// Whether the main task of each test has got what it waits for.
static HAS_GOT: [AtomicBool; 8] = [const { AtomicBool::new(false) }; 8];

/// A test's place in that.
fn new_test() -> usize {
    static TESTS: AtomicUsize = AtomicUsize::new(0);
    TESTS.fetch_add(1, SeqCst)
}

/// Blocks its worker until the main task of the test goes on. Returns whether it does in time.
fn block(test: usize) -> bool {
    let start = Instant::now();
    while !HAS_GOT[test].load(SeqCst) && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    HAS_GOT[test].load(SeqCst)
}

/// The root's only worker blocks until the main task has finished `wait`.
fn while_the_worker_is_busy<T>(pes: u32, wait: impl FnOnce(Context) -> T + Send + 'static)
where
    T: Future<Output = ()> + Send + 'static,
{
    while_the_worker_is_busy_with(block, pes, wait);
}

/// The same where it does something before it blocks.
fn while_the_worker_is_busy_with<T>(
    task: impl Fn(usize) -> bool + Stateless,
    pes: u32,
    wait: impl FnOnce(Context) -> T + Send + 'static,
) where
    T: Future<Output = ()> + Send + 'static,
{
    among(pes, 1, async move |cx| {
        let test = new_test();
        let busy = cx.spawn_fn(Distance::ZERO, task, test);
        // The worker gets to it.
        cx.sleep(Duration::from_millis(20)).await;
        wait(cx).await;
        HAS_GOT[test].store(true, SeqCst);
        assert!(busy.await.expect("it does not fail"), "the main task waited for the worker");
    });
}

#[test]
fn it_wakes_in_time() {
    while_the_worker_is_busy(1, async |cx| {
        for _ in 0..3 {
            cx.sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn it_gets_results() {
    while_the_worker_is_busy(2, async |cx| {
        for n in 0..100_u64 {
            let square = cx.spawn_at(Pe::new(1), async |_, n| n * n, n);
            assert_eq!(square.await.expect("it does not fail"), n * n);
        }
    });
}

#[test]
fn it_gets_what_takes_long_to_decode() {
    const LENGTH: usize = 10_000;
    let long = async |_: Context, n: u64| vec![(n, true); LENGTH];
    while_the_worker_is_busy(2, async move |cx| {
        let other = Pe::new(1);
        let result = cx.spawn_at(other, long, 7).await.expect("it does not fail");
        assert_eq!(result, vec![(7, true); LENGTH]);
        let value = cx.remote(other, long, 8).get().await.expect("it is there");
        assert_eq!(value.len(), LENGTH);
        assert_eq!(cx.statistics().await.expect("all are well").tasks, 3);
    });
}

#[test]
fn values_pass_by_a_pe_whose_worker_is_busy() {
    const PES: u32 = 6;
    among(PES, 1, async |cx| {
        let test = new_test();
        let table = cx.share(vec![(7_u64, true); 10_000]);
        // All but the last would pass it on.
        let block = |pe| cx.spawn_at(Pe::new(pe), async |_, test| block(test), test);
        let busy: Vec<_> = (1..PES - 1).map(block).collect();
        cx.sleep(Duration::from_millis(20)).await;
        let length = async |_, table: Shared<Vec<(u64, bool)>>| table.len();
        let length = cx.spawn_at(Pe::new(PES - 1), length, table);
        assert_eq!(length.await, Ok(10_000));
        assert!(cx.statistics().await.is_ok(), "all PEs are asked");
        HAS_GOT[test].store(true, SeqCst);
        for busy in busy {
            assert_eq!(busy.await, Ok(true), "the value waited for a worker");
        }
    });
}

#[test]
fn it_hears_other_threads() {
    while_the_worker_is_busy(1, async |_| {
        let (send, receive) = futures_util::future::abortable(std::future::pending::<()>());
        thread::spawn(move || receive.abort());
        assert!(send.await.is_err(), "it was aborted");
    });
}

#[test]
fn it_hears_the_task_that_keeps_its_worker() {
    static MAIN: futures_util::task::AtomicWaker = futures_util::task::AtomicWaker::new();
    static CALLED: AtomicBool = AtomicBool::new(false);
    let call = |test| {
        // Only now does the main task wait: from the first sleep on it has slept.
        thread::sleep(Duration::from_millis(100));
        CALLED.store(true, SeqCst);
        MAIN.wake();
        block(test)
    };
    while_the_worker_is_busy_with(call, 1, async |_| {
        std::future::poll_fn(|cx| {
            MAIN.register(cx.waker());
            if CALLED.load(SeqCst) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    });
}

#[test]
fn it_may_yield_while_no_worker_is_free() {
    while_the_worker_is_busy(1, async |cx| {
        for _ in 0..10_000 {
            cx.yield_now().await;
        }
    });
}

#[test]
fn messages_are_heard_while_no_worker_is_free() {
    static HEARD: AtomicU32 = AtomicU32::new(0);
    while_the_worker_is_busy(2, async |cx| {
        let answers = cx.spawn_at(
            Pe::new(1),
            async |cx: Context, ()| {
                for _ in 0..10 {
                    let answer = async |_, ()| {
                        HEARD.fetch_add(1, SeqCst);
                    };
                    cx.tell(Pe::ROOT, answer, ()).expect("the job goes on");
                }
            },
            (),
        );
        answers.await.expect("it does not fail");
        until(&cx, || HEARD.load(SeqCst) >= 10).await;
    });
}
