//! Jobs leave nothing behind in their process. These tests count its threads and its open files,
//! and so are a separate program.

#[path = "common/mod.rs"]
mod common;

use common::on_both_lanes;
use std::time::Duration;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine_testkit::eventually;

async fn oversleep(cx: Context, (): ()) {
    cx.sleep(Duration::from_hours(1)).await;
}

/// Waits for a task there.
async fn wait_for(cx: Context, n: Pe) -> Result<(), TaskError> {
    cx.spawn_at(n, oversleep, ()).await
}

/// Runs many jobs on both lanes and checks that they leave neither threads nor files behind.
fn nothing_is_left_of<F, T>(main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let count = |folder: &str| std::fs::read_dir(folder).expect("on Linux").count();
    let (tasks, files) = ("/proc/self/task", "/proc/self/fd");
    // What is made once for the whole process.
    on_both_lanes(3, main.clone());
    let (tasks_before, files_before) = (count(tasks), count(files));
    for _ in 0..15 {
        on_both_lanes(3, main.clone());
    }
    // A thread that has done its work may take a moment to go.
    eventually("the threads end", || count(tasks) <= tasks_before);
    eventually("the files are closed", || count(files) <= files_before);
}

#[test]
fn many_jobs_one_after_the_other_leave_nothing_behind() {
    nothing_is_left_of(async |cx| {
        assert_eq!(par_map(&cx, |n: u32| n, 0..50).await?.len(), 50);
        // Tasks that are still waiting at the end, for a time or for a task elsewhere.
        for n in (0..3).map(Pe::new) {
            drop(cx.spawn_at(n, oversleep, ()));
            drop(cx.spawn_at(Pe::new((n.number() + 1) % 3), wait_for, n));
        }
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}

#[test]
fn a_task_that_waits_for_another_of_its_pe_is_dropped() {
    nothing_is_left_of(async |cx| {
        drop(cx.spawn_at(Pe::new(2), wait_for, Pe::new(2)));
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}

#[test]
fn a_task_that_waits_for_nothing_is_dropped() {
    nothing_is_left_of(async |cx| {
        drop(cx.spawn_at(Pe::new(1), async |_, ()| std::future::pending::<()>().await, ()));
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}
