//! Jobs whose processes are killed or stopped, as the program sees it. Each program below
//! is a test that only a launcher runs.
#![cfg(feature = "mpi")]

use crate::common::job::{die, run, run_with};
use crate::common::launcher::{SOON, launched_with, over_each_lane};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Options, TaskError};
use ultramarine_testkit::program;

/// How long a PE waits at the end for others that do not answer. It is longer than the test may
/// last, so no PE may wait.
const GRACE: &str = "50s";

/// The variable that names a folder which the processes of a job share.
const FOLDER: &str = "DEATHS_FOLDER";

/// Runs a program on this many processes over each lane. All must be well although some are killed.
fn survives(processes: u32, program: &str) {
    survives_what_is_told(processes, program, &["the job goes on without it"]);
}

/// The same, with the text that must be printed about the loss.
fn survives_what_is_told(processes: u32, program: &str, told: &[&str]) {
    for lane in ["mpi", "tcp"] {
        let folder = format!("ultramarine-deaths-{}-{program}-{lane}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).expect("no other test has a folder of this name");
        let start = Instant::now();
        let variables =
            [(FOLDER, folder.as_os_str()), ("ULTRAMARINE_SHUTDOWN_GRACE", OsStr::new(GRACE))];
        let ended = launched_with(processes, program!(program), lane, &variables);
        std::fs::remove_dir_all(&folder).expect("it is ours");
        let Some(ended) = ended else { return };
        ended.is_well();
        for line in told {
            assert!(ended.err.contains(line), "{lane}: `{line}` is not in: {}", ended.err);
        }
        assert!(start.elapsed() < SOON, "{lane}: {:?}", start.elapsed());
    }
}

#[test]
fn a_task_that_kills_its_hosts_is_given_up_and_harms_no_other() {
    survives(6, "be_poisoned");
}

#[test]
fn a_task_that_kills_all_others_does_not_get_the_root() {
    survives(5, "be_poisoned_all_but_one");
}

#[test]
fn supervision_is_nested() {
    survives(5, "lose_coordinators");
}

#[test]
fn a_task_whose_supervisor_has_died_is_stopped() {
    survives(4, "leave_an_orphan");
}

#[test]
fn an_unsupervised_task_that_is_lost_ends_with_an_error() {
    survives(3, "lose_the_unsupervised");
}

#[test]
fn all_but_the_root_may_die() {
    survives(4, "be_left_alone");
}

#[test]
fn tasks_may_be_placed_on_the_dead() {
    survives(3, "place_on_the_dead");
}

#[test]
fn the_program_goes_on_after_the_job() {
    survives(3, "say_more_afterwards");
}

#[test]
fn a_process_stopped_for_too_long_leaves_and_the_job_goes_on() {
    survives_what_is_told(3, "be_held_for_dead", &["PE 1 leaves: the others hold it for dead"]);
}

#[test]
fn a_task_that_calls_exit_is_a_death() {
    let told = [0, 3].map(|code| format!("called exit({code}) amid the job; the job goes on"));
    survives_what_is_told(4, "call_exit", &[&told[0], &told[1]]);
}

#[test]
fn a_process_stopped_for_a_while_is_not_held_for_dead() {
    over_each_lane(3, &program!("be_stopped_for_a_while"), |lane, ended| {
        ended.is_well();
        assert!(!ended.err.contains("hold it for dead"), "{lane}: {}", ended.err);
    });
}

#[test]
fn without_the_root_all_leave_and_the_launcher_fails() {
    over_each_lane(4, &program!("lose_the_root"), |lane, ended| {
        assert!(!ended.is_success, "{lane}: {}", ended.err);
    });
}

#[test]
fn an_exit_of_the_root_is_an_error() {
    over_each_lane(3, &program!("call_exit_at_the_root"), |_, ended| {
        ended.fails_with("called exit(0) amid the job: the job ends");
    });
}

/// The programs, as tests that are run under a launcher only.
mod programs {
    use super::*;

    /// Whether this is the first call of its kind in the job.
    fn first(what: &str) -> bool {
        let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the test names a folder"));
        std::fs::create_dir(folder.join(what)).is_ok()
    }

    /// Stops this process, all of its threads, for this many milliseconds.
    fn stop(millis: u32) {
        let own = std::process::id();
        let seconds = f64::from(millis) / 1000.0;
        let script = format!("kill -STOP {own}; sleep {seconds}; kill -CONT {own}");
        Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
    }

    async fn poison(_: Context, _: u32) {
        die();
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_poisoned() {
        run_with(Options::default().set("max_replicas", 2), async |cx| {
            let supervised = cx.supervised();
            let slow = |n: u64| {
                std::thread::sleep(Duration::from_millis(2));
                n
            };
            let innocent: Vec<_> =
                (0..300).map(|n| supervised.spawn_fn(Distance::ONE, slow, n)).collect();
            let poison = cx.supervised().spawn_at(Pe::new(1), poison, 1);
            match poison.await {
                Err(TaskError::GaveUp { task, with }) => {
                    assert!(task.contains("poison"), "{task}");
                    assert_eq!((with.len(), with[0]), (3, Pe::new(1)), "{with:?}");
                }
                other => panic!("{other:?}"),
            }
            for (n, task) in innocent.into_iter().enumerate() {
                assert_eq!(task.await?, n as u64);
            }
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_poisoned_all_but_one() {
        run(async |cx| {
            let poison = cx.supervised().spawn_at(Pe::new(1), poison, 1);
            match poison.await {
                Err(TaskError::GaveUp { with, .. }) => assert_eq!(with.len(), 4, "{with:?}"),
                other => panic!("{other:?}"),
            }
            assert_eq!(par_map(&cx.supervised(), |n: u64| n + 1, 0..3).await?, [1, 2, 3]);
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_coordinators() {
        run(async |cx| {
            let coordinate = async |cx: Context, first_number: u64| {
                let square = |n: u64| {
                    std::thread::sleep(Duration::from_millis(5));
                    n * n
                };
                let numbers = first_number..first_number + 40;
                let squares = par_map(&cx, square, numbers).await;
                let name = format!("coordinator-{}", cx.pe().number());
                if cx.pe() != Pe::ROOT && cx.pe() != Pe::new(4) && first(&name) {
                    die();
                }
                squares.map(|squares| squares.iter().sum::<u64>())
            };
            let place = |n| cx.supervised().spawn_at(Pe::new(n), coordinate, 40 * u64::from(n));
            let parts: Vec<_> = (0..5).map(place).collect();
            let mut sum = 0;
            for part in parts {
                sum += part.await??;
            }
            assert_eq!(sum, (0..200).map(|n| n * n).sum::<u64>());
            let dead = (0..cx.pes()).filter(|n| cx.is_dead(Pe::new(*n))).count();
            assert!(dead > 0, "somebody must have died");
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn leave_an_orphan() {
        run(async |cx| {
            let supervise = async |cx: Context, ()| {
                // The first loses its supervisor, and would go on for ever.
                let task = async |cx: Context, ()| {
                    if first("task") {
                        loop {
                            cx.sleep(Duration::from_millis(1)).await;
                        }
                    }
                };
                let done = cx.spawn_at(Pe::new(2), task, ());
                if cx.pe() == Pe::new(1) {
                    let folder = std::env::var_os(FOLDER).expect("the test names a folder");
                    while !PathBuf::from(&folder).join("task").exists() {
                        cx.sleep(Duration::from_millis(1)).await;
                    }
                    die();
                }
                done.await
            };
            let supervised = cx.supervised().spawn_at(Pe::new(1), supervise, ());
            assert!(supervised.await?.is_ok());
            while cx.statistics().await?.orphans == 0 {
                cx.sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_the_unsupervised() {
        run(async |cx| {
            let lost = cx.spawn_at(Pe::new(1), async |_, ()| die(), ());
            assert_eq!(lost.await, Err(TaskError::Lost { pe: Pe::new(1) }));
            assert_eq!(cx.spawn_at(Pe::new(2), async |_, n: u32| n, 3).await, Ok(3));
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_left_alone() {
        run(async |cx| {
            let supervised = cx.supervised();
            let task = async |cx: Context, n: u64| {
                cx.sleep(Duration::from_millis(3)).await;
                if cx.pe() != Pe::ROOT && n % 20 == 7 && first(&cx.pe().number().to_string()) {
                    die();
                }
                n
            };
            let tasks: Vec<_> =
                (0..400).map(|n| supervised.spawn(Distance::ONE, task, n)).collect();
            for n in 1..cx.pes() {
                drop(supervised.spawn_at(Pe::new(n), task, 7));
            }
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await?, n as u64);
            }
            for n in 1..cx.pes() {
                while !cx.is_dead(Pe::new(n)) {
                    cx.sleep(Duration::from_millis(1)).await;
                }
            }
            assert_eq!(par_map(&supervised, |n: u64| n + 1, 0..3).await?, [1, 2, 3]);
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn place_on_the_dead() {
        run(async |cx| {
            let dead = Pe::new(1);
            let killed = cx.spawn_at(dead, async |_, ()| die(), ());
            assert_eq!(killed.await, Err(TaskError::Lost { pe: dead }));
            assert!(cx.is_dead(dead));
            let again = cx.spawn_at(dead, async |_, n: u32| n, 3);
            assert_eq!(again.await, Err(TaskError::Lost { pe: dead }));
            let elsewhere = cx.supervised().spawn_at(dead, async |_, n: u32| n, 3);
            assert_eq!(elsewhere.await, Ok(3));
            let pushed = push_map(&cx.supervised(), |n: u32| n, 0..10).await?;
            assert_eq!(pushed, (0..10).collect::<Vec<_>>());
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn say_more_afterwards() {
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_done = done.clone();
        let job = Options::default().run(async move |cx| {
            let killed = cx.spawn_at(Pe::new(1), async |_, ()| die(), ());
            assert_eq!(killed.await, Err(TaskError::Lost { pe: Pe::new(1) }));
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        });
        job.expect("the job ends well");
        if is_done.load(std::sync::atomic::Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(300));
            println!("all is well");
        }
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_held_for_dead() {
        let options = Options::default()
            .set("heartbeat", "200ms")
            .set("dead_after", "1s")
            .set("stalled_after", "3s");
        run_with(options, async |cx| {
            let stopped = Pe::new(1);
            // Only one that the others have heard can be told that they hold it for dead. They do
            // so after 3 s, and its guard would kill it after 6.
            let be_heard_and_stop = async |_: Context, ()| {
                std::thread::sleep(Duration::from_secs(1));
                stop(4500);
            };
            let lost = cx.spawn_at(stopped, be_heard_and_stop, ());
            assert_eq!(lost.await, Err(TaskError::Lost { pe: stopped }));
            assert_eq!(push_map(&cx.supervised(), |n: u32| n, 0..3).await?, [0, 1, 2]);
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn be_stopped_for_a_while() {
        // Its host answers, so it may be silent for longer than that.
        let options = Options::default().set("heartbeat", "200ms").set("dead_after", "1s");
        run_with(options, async |cx| {
            let stopped = Pe::new(1);
            let task = async |cx: Context, millis| {
                stop(millis);
                cx.pe()
            };
            assert_eq!(cx.supervised().spawn_at(stopped, task, 3200).await?, stopped);
            assert!(!cx.is_dead(stopped));
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn call_exit() {
        run(async |cx| {
            let exit = async |_: Context, code: i32| {
                if first(&format!("exit-{code}")) {
                    std::process::exit(code);
                }
                code
            };
            let cx = cx.supervised();
            let exits = [(1, 0), (2, 3)].map(|(pe, code)| cx.spawn_at(Pe::new(pe), exit, code));
            let squares = |n: u64| {
                std::thread::sleep(Duration::from_millis(2));
                n * n
            };
            let squares = par_map(&cx, squares, 0..200).await?;
            assert_eq!(squares, (0..200).map(|n| n * n).collect::<Vec<_>>());
            for (task, code) in exits.into_iter().zip([0, 3]) {
                assert_eq!(task.await, Ok(code));
            }
            Ok(())
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn call_exit_at_the_root() {
        let _ = Options::default().run(async |cx| {
            cx.spawn_at(Pe::new(1), async |_, n: u32| n, 3).await?;
            std::process::exit(0)
        });
    }

    #[test]
    #[ignore = "runs under a launcher"]
    fn lose_the_root() {
        let _ = Options::default().run(async |cx| {
            cx.spawn_at(Pe::new(1), async |_, n: u32| n, 3).await?;
            die();
            Ok(())
        });
    }
}
