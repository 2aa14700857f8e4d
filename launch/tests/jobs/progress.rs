//! The lines that say how far the work is, where there is no terminal.

use crate::common::{alone, pes};
use ultramarine::prelude::*;
use ultramarine::{LaneKind, with_progress};

/// Runs eight tasks, of which the only thread ends four before this line is said.
fn says(total: Option<u64>, line: &str) {
    let main = async move |cx: Context| {
        // Before: these are not counted.
        map(|n: u64| n, 0..3).run(&cx).await?;
        let task = async |_: Context, n: u64| {
            if n >= 4 {
                alone::wait_until_heard();
            }
            n
        };
        let tasks: Vec<_> = (0..8).map(|n| cx.spawn_at(cx.pe(), task, n)).collect();
        let work = async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await?;
            }
            Ok::<_, TaskError>(sum)
        };
        assert_eq!(with_progress(&cx, total, work).await?, 28);
        Ok(())
    };
    let program = || pes(1, LaneKind::Memory).run(main).expect("it ends well");
    let is_it = |said: &str| said.starts_with(line);
    let lines = alone::lines_of(program, is_it);
    assert!(lines.iter().any(|said| is_it(said)), "`{line}` was not said: {lines:#?}");
}

#[test]
fn a_line_says_how_many_tasks_have_ended_and_of_how_many() {
    says(Some(8), "4/8 tasks ended after ");
}

#[test]
fn a_line_says_how_many_tasks_have_ended_if_no_total_is_known() {
    says(None, "4 tasks ended after ");
}

/// What is shown never goes back, and ends with all tasks, each of which counts once.
#[test]
#[cfg(feature = "mpi")]
fn the_display_ends_with_the_last_task_although_a_process_dies() {
    use crate::common::job::{die, run};
    use crate::common::launcher::launched;
    use std::time::Duration;
    let main = async |cx: Context| {
        let supervised = cx.supervised();
        // Tasks before that count for nothing, also if the process dies that has spawned them.
        let before = async |cx: Context, ()| par_map(&cx, |n: u64| n, 0..50).await.map(drop);
        supervised.spawn_at(Pe::new(1), before, ()).await??;
        let task = |n: u64| {
            std::thread::sleep(Duration::from_millis(15));
            n
        };
        let die_later = async |cx: Context, ()| {
            cx.sleep(Duration::from_millis(700)).await;
            if cx.pe() == Pe::new(1) {
                die();
            }
        };
        drop(cx.spawn_at(Pe::new(1), die_later, ()));
        let work = par_map(&supervised, task, 0..400);
        assert_eq!(with_progress(&cx, 400, work).await?.len(), 400);
        assert!(cx.is_dead(Pe::new(1)));
        Ok(())
    };
    let Some(ended) = launched(3, "tcp", || run(main)) else { return };
    ended.is_well();
    let count = |line: &str| line.split_once("/400 tasks ended after ")?.0.parse().ok();
    let counts: Vec<u64> = ended.err.lines().filter_map(count).collect();
    assert!(counts.len() > 1 && counts.is_sorted(), "{}", ended.err);
    assert_eq!(counts.last(), Some(&400), "{}", ended.err);
}
