//! Tasks that block their thread are named, once; those that compute are left alone.

use crate::common::alone::{self, is_heard, wait_until_heard};
use crate::common::job::until;
use crate::common::pes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Result};
use ultramarine_testkit::PATIENCE;

/// How a report goes on after the task's name.
const REPORT: &str = "has blocked its thread for";

/// The lines with this text that a job of one PE prints on standard error. The first one is heard.
fn lines_with<T>(text: &str, main: impl FnOnce(Context) -> T) -> Vec<String>
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    let options = pes(1, LaneKind::Memory).set("blocked_after", "200ms");
    let program = || options.run(main).expect("it ends well");
    let mut lines = alone::lines_of(program, |line| line.contains(text));
    lines.retain(|line| line.contains(text));
    lines
}

/// The main task or one of its tasks, of which this is the last, blocks one of these threads until
/// that is reported.
fn is_reported<T>(threads: &[&str], task: &str, main: impl FnOnce(Context) -> T)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    let reports = lines_with(REPORT, main);
    let [report] = &reports[..] else { panic!("{reports:#?}") };
    let is_of_one = threads.iter().any(|thread| report.contains(thread));
    assert!(is_of_one && report.contains(task), "{report}");
}

const WORKER: &str = "worker 0 on ";
const STANDBY: &str = "the standby on ";

fn block(n: u32) -> u32 {
    wait_until_heard();
    n
}

async fn rest_and_block(cx: Context, (): ()) {
    cx.sleep(Duration::from_millis(1)).await;
    wait_until_heard();
}

#[test]
fn a_task_that_blocks_its_thread_is_named_once() {
    is_reported(&[WORKER], "the task jobs::blocked::block ", async |cx| {
        cx.spawn_fn(Distance::ZERO, block, 0).await?;
        Ok(())
    });
}

#[test]
fn a_task_that_blocks_its_thread_later_is_named_too() {
    is_reported(&[WORKER], "the task jobs::blocked::rest_and_block ", async |cx| {
        let task = cx.spawn(Distance::ZERO, rest_and_block, ());
        // Another task that has been started since then.
        cx.spawn_fn(Distance::ZERO, |n: u32| n, 1).await?;
        Ok(task.await?)
    });
}

#[test]
fn a_closure_that_blocks_its_thread_is_named_by_where_it_stands() {
    let place = "a closure in jobs::blocked::a_closure_that_blocks_its_thread_is_named_by_where";
    is_reported(&[WORKER], place, async |cx| {
        cx.spawn_fn(Distance::ZERO, |n| block(n + 1), 0).await?;
        Ok(())
    });
}

#[test]
fn a_main_task_that_blocks_its_thread_is_named_too() {
    // The standby takes it where the worker, which a loaded machine delays, does not come at once.
    is_reported(&[WORKER, STANDBY], "the main task has", async |cx| {
        // Resumed by a worker.
        cx.sleep(Duration::from_millis(1)).await;
        wait_until_heard();
        Ok(())
    });
}

#[test]
fn a_main_task_that_blocks_the_standby_is_named_too() {
    static IS_AT_WORK: AtomicBool = AtomicBool::new(false);
    fn work_until_main_ends(_: ()) {
        IS_AT_WORK.store(true, Ordering::Relaxed);
        while IS_AT_WORK.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
    is_reported(&[STANDBY], "the main task has", async |cx| {
        let task = cx.spawn_fn(Distance::ZERO, work_until_main_ends, ());
        until(&cx, || IS_AT_WORK.load(Ordering::Relaxed)).await;
        wait_until_heard();
        IS_AT_WORK.store(false, Ordering::Relaxed);
        Ok(task.await?)
    });
}

#[test]
fn a_task_that_computes_is_not_reported() {
    let compute = |millis| {
        let (start, mut sum) = (Instant::now(), 0_u64);
        while start.elapsed() < Duration::from_millis(millis) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        sum
    };
    let main = async move |cx: Context| {
        cx.spawn_fn(Distance::ZERO, compute, 1000).await?;
        Ok(())
    };
    let reports = lines_with(REPORT, main);
    assert!(reports.is_empty(), "{reports:#?}");
}

/// What is said of a task that waits at a mailbox of another type.
const OTHER_TYPE: &str = "a task waits at a mailbox of `u64`, and what has come under its key is \
                          for a mailbox of `u32`";

/// Receives what was sent as another type, until that is said.
async fn receive(cx: &Context, key: Key) {
    let mail = cx.mailbox::<u64>(key);
    let mut receive = std::pin::pin!(mail.receive(cx.pe()));
    let start = Instant::now();
    while !is_heard() && start.elapsed() < PATIENCE {
        let waited = cx.timeout(Duration::from_millis(10), receive.as_mut()).await;
        assert!(waited.is_err(), "nothing comes: {waited:?}");
    }
}

#[test]
fn a_task_that_waits_for_another_type_than_comes_is_told_of() {
    let main = async |cx: Context| {
        let key = cx.new_key();
        let send = async {
            cx.sleep(Duration::from_millis(20)).await;
            cx.mailbox(key).send(cx.pe(), 7_u32)
        };
        let ((), sent) = futures_util::future::join(receive(&cx, key), send).await;
        Ok(sent?)
    };
    let said = lines_with(OTHER_TYPE, main);
    assert_eq!(said.len(), 1, "{said:#?}");
}

#[test]
fn a_task_that_waits_for_another_type_than_has_come_is_told_of() {
    let main = async |cx: Context| {
        let key = cx.new_key();
        cx.mailbox(key).send(cx.pe(), 7_u32)?;
        cx.sleep(Duration::from_millis(20)).await;
        receive(&cx, key).await;
        Ok(())
    };
    let said = lines_with(OTHER_TYPE, main);
    assert_eq!(said.len(), 1, "{said:#?}");
}
