//! The lines that say how far the work is, where there is no terminal. Each program below is a test
//! that only these start.

use crate::common::alone;
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
fn a_line_says_how_many_tasks_have_been_started_and_of_how_many() {
    says("of_eight", "5/8 tasks started after ");
}

#[test]
fn a_line_says_how_many_tasks_have_been_started_if_no_total_is_known() {
    says("of_unknown", "5 tasks started after ");
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

    /// Eight tasks, of which the only thread starts five before the file is there.
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
}
