//! Tasks that block their thread are named, once; those that compute are left alone. Each program
//! below is a test that only these start.

use crate::common::alone;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options};
use ultramarine_testkit::{PATIENCE, program};

/// The variable that names a file for which a program waits.
const FILE: &str = "BLOCKED_FILE";

/// How a report goes on after the task's name.
const REPORT: &str = "has blocked its thread for";

/// The lines that a program prints on standard error. The first report lets it go on.
fn lines_of(program: &str) -> Vec<String> {
    alone::lines_of(&program!(program), FILE, |line| line.contains(REPORT))
}

/// The report of the last of these tasks lets the program go on, if none did before.
fn is_reported(program: &str, task: &str) {
    is_reported_of(&["worker 0 on "], program, task);
}

/// The same, for one of these threads.
fn is_reported_of(threads: &[&str], program: &str, task: &str) {
    let lines = lines_of(program);
    let reports: Vec<_> = lines.iter().filter(|line| line.contains(REPORT)).collect();
    assert_eq!(reports.len(), 1, "{lines:#?}");
    let is_of_one = threads.iter().any(|thread| reports[0].contains(thread));
    assert!(is_of_one && reports[0].contains(task), "{lines:#?}");
}

#[test]
fn a_task_that_blocks_its_thread_is_named_once() {
    is_reported("block_at_once", "the task jobs::blocked::programs::wait_for_the_file ");
}

#[test]
fn a_task_that_blocks_its_thread_later_is_named_too() {
    is_reported("block_later", "the task jobs::blocked::programs::rest_and_wait ");
}

#[test]
fn a_closure_that_blocks_its_thread_is_named_by_where_it_stands() {
    is_reported("block_in_closure", "a closure in jobs::blocked::programs::block_in_closure has");
}

#[test]
fn a_main_task_that_blocks_its_thread_is_named_too() {
    // The standby takes it where the worker, which a loaded machine delays, does not come at once.
    is_reported_of(&["worker 0 on ", "the standby on "], "block_main", "the main task has");
}

#[test]
fn a_main_task_that_blocks_the_standby_is_named_too() {
    is_reported_of(&["the standby on "], "block_main_beside_a_task", "the main task has");
}

#[test]
fn a_task_that_computes_is_not_reported() {
    let lines = lines_of("compute");
    assert!(!lines.iter().any(|line| line.contains(REPORT)), "{lines:#?}");
}

#[test]
fn a_task_that_waits_for_another_type_than_comes_is_told_of() {
    let said = "a task waits at a mailbox of `u64`, and what has come under its key is for a \
                mailbox of `u32`";
    for program in ["wait_and_get_another_type", "get_another_type_and_wait"] {
        let lines = alone::lines_of(&program!(program), FILE, |line| line.contains(said));
        let count = lines.iter().filter(|line| line.contains(said)).count();
        assert_eq!(count, 1, "{lines:#?}");
    }
}

/// The programs, as tests that are run alone only.
mod programs {
    use super::*;

    fn options() -> Options {
        let options = Options::default().pes(1).threads(1).lane(LaneKind::Memory);
        options.set("blocked_after", "200ms")
    }

    fn wait_for_the_file(polls: u32) -> u32 {
        let file = PathBuf::from(std::env::var_os(FILE).expect("the test names it"));
        let start = Instant::now();
        let mut polls = polls;
        while !file.exists() && start.elapsed() < PATIENCE {
            polls += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
        polls
    }

    async fn rest_and_wait(cx: Context, (): ()) -> u32 {
        cx.sleep(Duration::from_millis(1)).await;
        wait_for_the_file(0)
    }

    #[test]
    #[ignore = "runs alone"]
    fn block_at_once() {
        let main = async |cx: Context| {
            cx.spawn_fn(Distance::ZERO, wait_for_the_file, 0).await?;
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn block_later() {
        let main = async |cx: Context| {
            let task = cx.spawn(Distance::ZERO, rest_and_wait, ());
            // Another task that has been started since then.
            cx.spawn_fn(Distance::ZERO, |n: u32| n, 1).await?;
            task.await?;
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn block_in_closure() {
        let main = async |cx: Context| {
            cx.spawn_fn(Distance::ZERO, |polls| wait_for_the_file(polls + 1), 0).await?;
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn block_main() {
        let main = async |cx: Context| {
            // Resumed by a worker.
            cx.sleep(Duration::from_millis(1)).await;
            wait_for_the_file(0);
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    static IS_AT_WORK: AtomicBool = AtomicBool::new(false);

    fn work_until_main_ends(_: ()) {
        IS_AT_WORK.store(true, Ordering::Relaxed);
        while IS_AT_WORK.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    #[test]
    #[ignore = "runs alone"]
    fn block_main_beside_a_task() {
        let main = async |cx: Context| {
            let task = cx.spawn_fn(Distance::ZERO, work_until_main_ends, ());
            while !IS_AT_WORK.load(Ordering::Relaxed) {
                cx.sleep(Duration::from_millis(1)).await;
            }
            wait_for_the_file(0);
            IS_AT_WORK.store(false, Ordering::Relaxed);
            task.await?;
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    /// Receives what was sent as another type: once the file is there, gives up.
    async fn receive(cx: &Context, key: ultramarine::Key) {
        let file = PathBuf::from(std::env::var_os(FILE).expect("the test names it"));
        let mail = cx.mailbox::<u64>(key);
        let mut receive = std::pin::pin!(mail.receive(cx.pe()));
        let start = Instant::now();
        while !file.exists() && start.elapsed() < PATIENCE {
            let waited = cx.timeout(Duration::from_millis(10), receive.as_mut()).await;
            assert!(waited.is_err(), "nothing comes: {waited:?}");
        }
    }

    #[test]
    #[ignore = "runs alone"]
    fn wait_and_get_another_type() {
        let main = async |cx: Context| {
            let key = cx.new_key();
            let send = async {
                cx.sleep(Duration::from_millis(20)).await;
                cx.mailbox(key).send(cx.pe(), 7_u32)
            };
            let ((), sent) = futures_util::future::join(receive(&cx, key), send).await;
            Ok(sent?)
        };
        options().run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn get_another_type_and_wait() {
        let main = async |cx: Context| {
            let key = cx.new_key();
            cx.mailbox(key).send(cx.pe(), 7_u32)?;
            cx.sleep(Duration::from_millis(20)).await;
            receive(&cx, key).await;
            Ok(())
        };
        options().run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn compute() {
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
        options().run(main).expect("it ends well");
    }
}
