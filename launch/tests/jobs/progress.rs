//! The lines that say how far the work is, where there is no terminal. Each program below is a test
//! that only these start.

#[cfg(feature = "mpi")]
use crate::common::launcher::launched;
use crate::common::{alone, job};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options, with_progress};
use ultramarine_testkit::{PATIENCE, program};

/// The variable that names a file for which a program waits.
const FILE: &str = "PROGRESS_FILE";

/// Runs a program until it says this, lets it go on, and waits for its end.
fn says(program: &str, line: &str) {
    let is_it = |said: &str| said.starts_with(line);
    let lines = alone::lines_of(&program!(program), FILE, is_it);
    assert!(lines.iter().any(|said| is_it(said)), "`{line}` was not said: {lines:#?}");
}

#[test]
fn a_line_says_how_many_tasks_have_ended_and_of_how_many() {
    says("of_eight", "4/8 tasks ended after ");
}

#[test]
fn a_line_says_how_many_tasks_have_ended_if_no_total_is_known() {
    says("of_unknown", "4 tasks ended after ");
}

/// What is shown never goes back, and ends with all tasks, each of which counts once.
#[test]
#[cfg(feature = "mpi")]
fn the_display_ends_with_the_last_task_although_a_process_dies() {
    let Some(ended) = launched(3, program!("lose_one"), "tcp") else { return };
    ended.is_well();
    let count = |line: &str| line.split_once("/400 tasks ended after ")?.0.parse().ok();
    let counts: Vec<u64> = ended.err.lines().filter_map(count).collect();
    assert!(counts.len() > 1 && counts.is_sorted(), "{}", ended.err);
    assert_eq!(counts.last(), Some(&400), "{}", ended.err);
}

/// The programs, as tests that are run alone only.
mod programs {
    use super::*;

    /// The fifth and later tasks wait for the file.
    fn wait_for_the_file(number: u64) -> u64 {
        let file = PathBuf::from(std::env::var_os(FILE).expect("the test names it"));
        let start = Instant::now();
        while number >= 4 && !file.exists() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        number
    }

    /// Eight tasks, of which the only thread ends four before the file is there.
    fn run(total: Option<u64>) {
        let options = Options::default().pes(1).threads(1).lane(LaneKind::Memory);
        let main = async move |cx: Context| {
            // Before: these are not counted.
            map(|n: u64| n, 0..3).run(&cx).await?;
            let tasks = (0..8).map(|n| cx.spawn_at(cx.pe(), async |_, n| wait_for_the_file(n), n));
            let tasks: Vec<_> = tasks.collect();
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
        options.run(main).expect("it ends well");
    }

    #[test]
    #[ignore = "runs alone"]
    fn of_eight() {
        run(Some(8));
    }

    #[test]
    #[ignore = "runs alone"]
    fn of_unknown() {
        run(None);
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_one() {
        job::run(async move |cx| {
            let supervised = cx.supervised();
            // Tasks before that count for nothing, also if the process dies that has spawned them.
            let before = async |cx: Context, ()| par_map(&cx, |n: u64| n, 0..50).await.map(drop);
            supervised.spawn_at(Pe::new(1), before, ()).await??;
            let task = |n: u64| {
                std::thread::sleep(Duration::from_millis(15));
                n
            };
            let die = async |cx: Context, ()| {
                cx.sleep(Duration::from_millis(700)).await;
                if cx.pe() == Pe::new(1) {
                    ultramarine_testkit::kill(std::process::id() as i32);
                }
            };
            drop(cx.spawn_at(Pe::new(1), die, ()));
            let work = par_map(&supervised, task, 0..400);
            assert_eq!(with_progress(&cx, 400, work).await?.len(), 400);
            assert!(cx.is_dead(Pe::new(1)));
            Ok(())
        });
    }
}
