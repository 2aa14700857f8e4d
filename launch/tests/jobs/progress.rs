//! The lines that say how far the work is, where there is no terminal. Each program below is a test
//! that only these start.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options, with_progress};
use ultramarine_testkit::{program, scrub};

/// The longest that anything here may take; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// The variable that names a file for which a program waits.
const FILE: &str = "PROGRESS_FILE";

/// Kills a program that does not end.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program until it says this, lets it go on, and waits for its end.
fn says(program: &str, line: &str) {
    let file = format!("ultramarine-{program}-{}", std::process::id());
    let file = std::env::temp_dir().join(file);
    let words = program!(program);
    let mut command = Command::new(&words[0]);
    scrub(command.args(&words[1..]));
    command.env(FILE, &file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn().expect("it starts"));
    let (send, receive) = mpsc::channel();
    let said = BufReader::new(child.0.stderr.take().expect("it is piped"));
    std::thread::spawn(move || {
        said.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
    let (mut lines, start) = (Vec::new(), Instant::now());
    while let Ok(said) = receive.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
        if said.starts_with(line) {
            std::fs::write(&file, "").expect("there is room");
        }
        lines.push(said);
    }
    let was_said = std::fs::remove_file(&file).is_ok();
    assert!(was_said && start.elapsed() < PATIENCE, "`{line}` was not said: {lines:#?}");
    // Standard error has been closed, so that it ends now.
    assert!(child.0.wait().expect("it is our child").success(), "{lines:#?}");
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
