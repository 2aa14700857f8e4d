//! Jobs whose processes are killed or stopped, as the program sees it.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run, run_with, square, stop, until};
use crate::common::launcher::{over_each_lane, over_each_lane_with};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{Options, Result, TaskError};
use ultramarine_testkit::itself;

/// How long a PE waits at the end for others that do not answer. It is longer than the test may
/// last, so no PE may wait.
const GRACE: &str = "50s";

/// The variable that names a folder which the processes of a job share.
const FOLDER: &str = "DEATHS_FOLDER";

/// What is said of most deaths.
const GOES_ON: &str = "the job goes on without it";

/// Runs a main task on this many processes over each lane. All must be well although some are
/// killed.
fn survives<T>(processes: u32, main: impl FnOnce(Context) -> T)
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    survives_what_is_told(processes, &[GOES_ON], || run(main));
}

/// The same for a program, with the texts that must be printed about the loss.
fn survives_what_is_told(processes: u32, told: &[&str], program: impl FnOnce()) {
    let program = itself(program);
    let folder = tempfile::tempdir().expect("there is room");
    let variables = |lane: &str| {
        let folder = folder.path().join(lane);
        std::fs::create_dir(&folder).expect("each lane has its own");
        [(FOLDER, folder.into()), ("ULTRAMARINE_SHUTDOWN_GRACE", GRACE.into())]
    };
    for (lane, ended) in over_each_lane_with(processes, variables, program) {
        ended.is_well();
        for line in told {
            assert!(ended.err.contains(line), "{lane}: `{line}` is not in: {}", ended.err);
        }
    }
}

/// The folder that the processes of a job share.
fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("the test names a folder").into()
}

/// Whether this is the first call of its kind in the job.
fn first(what: &str) -> bool {
    std::fs::create_dir(folder().join(what)).is_ok()
}

async fn poison(_: Context, _: u32) {
    die();
}

#[test]
fn a_task_that_kills_its_hosts_is_given_up_and_harms_no_other() {
    survives_what_is_told(6, &[GOES_ON], || {
        run_with(Options::default().set("max_replicas", 3), async |cx| {
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
                    assert_eq!((with.len(), with[0]), (4, Pe::new(1)), "{with:?}");
                }
                other => panic!("{other:?}"),
            }
            for (n, task) in innocent.into_iter().enumerate() {
                assert_eq!(task.await?, n as u64);
            }
            Ok(())
        });
    });
}

#[test]
fn a_task_that_kills_all_others_does_not_get_the_root() {
    survives(5, async |cx| {
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
fn supervision_is_nested() {
    survives(5, async |cx| {
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
        assert!(cx.dead() > 0, "somebody must have died");
        Ok(())
    });
}

#[test]
fn a_task_whose_supervisor_has_died_is_stopped() {
    survives(4, async |cx| {
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
                until(&cx, || folder().join("task").exists()).await;
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
fn an_unsupervised_task_that_is_lost_ends_with_an_error() {
    survives(3, async |cx| {
        kill(&cx, Pe::new(1)).await;
        assert_eq!(cx.spawn_at(Pe::new(2), async |_, n: u32| n, 3).await, Ok(3));
        Ok(())
    });
}

#[test]
fn all_but_the_root_may_die() {
    survives(4, async |cx| {
        let supervised = cx.supervised();
        let task = async |cx: Context, n: u64| {
            cx.sleep(Duration::from_millis(3)).await;
            if cx.pe() != Pe::ROOT && n % 20 == 7 && first(&cx.pe().number().to_string()) {
                die();
            }
            n
        };
        let tasks: Vec<_> = (0..400).map(|n| supervised.spawn(Distance::ONE, task, n)).collect();
        for n in 1..cx.pes() {
            drop(supervised.spawn_at(Pe::new(n), task, 7));
        }
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await?, n as u64);
        }
        for n in 1..cx.pes() {
            until(&cx, || cx.is_dead(Pe::new(n))).await;
        }
        assert_eq!(par_map(&supervised, |n: u64| n + 1, 0..3).await?, [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn tasks_may_be_placed_on_the_dead() {
    survives(3, async |cx| {
        let dead = Pe::new(1);
        kill(&cx, dead).await;
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
fn the_program_goes_on_after_the_job() {
    survives_what_is_told(3, &[GOES_ON], || {
        static IS_DONE: AtomicBool = AtomicBool::new(false);
        let job = Options::default().run(async |cx| {
            kill(&cx, Pe::new(1)).await;
            IS_DONE.store(true, SeqCst);
            Ok(())
        });
        job.expect("the job ends well");
        if IS_DONE.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(300));
            println!("all is well");
        }
    });
}

#[test]
fn a_process_stopped_for_too_long_leaves_and_the_job_goes_on() {
    survives_what_is_told(3, &["PE 1 leaves: the others hold it for dead"], || {
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
    });
}

#[test]
fn a_task_that_calls_exit_is_a_death() {
    let told = [0, 3].map(|code| format!("called exit({code}) amid the job; the job goes on"));
    survives_what_is_told(4, &[&told[0], &told[1]], || {
        run(async |cx| {
            let exit = async |_: Context, code: i32| {
                if first(&format!("exit-{code}")) {
                    std::process::exit(code);
                }
                code
            };
            let cx = cx.supervised();
            let exits = [(1, 0), (2, 3)].map(|(pe, code)| cx.spawn_at(Pe::new(pe), exit, code));
            square(&cx, 200, 2000).await?;
            for (task, code) in exits.into_iter().zip([0, 3]) {
                assert_eq!(task.await, Ok(code));
            }
            Ok(())
        });
    });
}

#[test]
fn a_process_stopped_for_a_while_is_not_held_for_dead() {
    let program = || {
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
    };
    for (lane, ended) in over_each_lane(3, program) {
        ended.is_well();
        assert!(!ended.err.contains("hold it for dead"), "{lane}: {}", ended.err);
    }
}

#[test]
fn without_the_root_all_leave_and_the_launcher_fails() {
    let program = || {
        let _ = Options::default().run(async |cx| {
            cx.spawn_at(Pe::new(1), async |_, n: u32| n, 3).await?;
            die();
            Ok(())
        });
    };
    for (lane, ended) in over_each_lane(4, program) {
        assert!(!ended.is_success, "{lane}: {}", ended.err);
    }
}

#[test]
fn an_exit_of_the_root_is_an_error() {
    let program = || {
        let _ = Options::default().run(async |cx| {
            cx.spawn_at(Pe::new(1), async |_, n: u32| n, 3).await?;
            std::process::exit(0)
        });
    };
    for (_, ended) in over_each_lane(3, program) {
        ended.fails_with("called exit(0) amid the job: the job ends");
    }
}
