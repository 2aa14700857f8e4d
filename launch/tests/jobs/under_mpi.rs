//! Whole jobs of processes.
#![cfg(feature = "mpi")]

use crate::common::job::run;
use crate::common::launcher::{is_well_over_each_lane, launched, launched_with};
use rustix::process::{Signal, getpid, kill_process};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, Options, TaskError};
use ultramarine_testkit::{Ended, itself};

/// The variable that says when the death is.
const DIES_AFTER_MS: &str = "UNDER_MPI_DIES_AFTER_MS";

/// What MPICH's launcher prints if it fails itself, since a process dies in the last barrier. All
/// other processes have left by then.
const LAUNCHER_FAULT: &str = "assert (!closed) failed";

/// Why the job fails that is to fail.
const FAILURE: &str = "nothing came of it";

#[test]
fn every_pe_is_reached_and_answers() {
    is_well_over_each_lane(3, async |cx| {
        for number in 0..cx.pes() {
            let pe = Pe::new(number);
            let answer = cx.spawn_at(pe, async |cx: Context, n: u32| (cx.pe(), n + 1), number);
            assert_eq!(answer.await?, (pe, number + 1));
        }
        let missing = Pe::new(cx.pes());
        let error = cx.spawn_at(missing, async |_, ()| (), ()).await.expect_err("no such PE");
        assert_eq!(error, TaskError::NoSuchPe { pe: missing, pes: cx.pes() });
        Ok(())
    });
}

#[test]
fn large_arguments_and_results_travel() {
    is_well_over_each_lane(2, async |cx| {
        let reversed = async |_: Context, mut bytes: Vec<u64>| {
            bytes.reverse();
            bytes
        };
        for length in [0, 1, 1000, 1_000_000] {
            let sent: Vec<u64> = (0..length).collect();
            let received = cx.spawn_at(Pe::new(1), reversed, sent).await?;
            assert!(received.into_iter().eq((0..length).rev()), "{length} numbers");
        }
        Ok(())
    });
}

#[test]
fn a_panic_or_failure_elsewhere_reaches_the_task_that_awaits() {
    is_well_over_each_lane(2, async |cx| {
        let task = async |_: Context, n: u32| -> u32 { panic!("no {n} today") };
        let error = cx.spawn_at(Pe::new(1), task, 7).await.expect_err("it panics");
        let message = "no 7 today".to_owned();
        assert_eq!(error, TaskError::Panicked { pe: Pe::new(1), message });
        let read = async |_, path: PathBuf| -> Result<u64, Failure> {
            let text = std::fs::read_to_string(path)?;
            Ok(text.trim().parse()?)
        };
        let absent = cx.spawn_at(Pe::new(1), read, "/no/such/file".into()).await?;
        let text = absent.expect_err("there is no such file").to_string();
        assert!(text.starts_with("No such file or directory"), "{text}");
        let no_number = cx.spawn_at(Pe::new(1), read, "/proc/version".into()).await?;
        assert_eq!(no_number, Err(Failure::new("invalid digit found in string")));
        Ok(())
    });
}

#[test]
fn a_job_may_end_with_tasks_undone() {
    is_well_over_each_lane(4, async |cx| {
        let spawn = |n| cx.spawn_fn(Distance::ONE, |n: u64| (0..n).sum::<u64>(), n);
        let futures: Vec<_> = (0..20_000).map(spawn).collect();
        for future in futures.into_iter().take(100) {
            future.await?;
        }
        Ok(())
    });
}

#[test]
fn the_result_of_main_decides_how_the_job_ends() {
    let program = || {
        run(async |_| Err(Error::other(FAILURE)));
    };
    let Some(ended) = launched(2, "mpi", program) else { return };
    assert!(!ended.is_success && (ended.out + &ended.err).contains(FAILURE));
}

#[test]
fn a_second_job_of_a_process_is_refused_with_the_reason() {
    let program = || {
        fn refused(job: ultramarine::Result<()>) {
            let error = job.expect_err("it is the second").to_string();
            assert!(error.contains("one job only"), "{error}");
        }
        run(async |_| {
            refused(ultramarine::run(async |_| unreachable!("a job within the job")));
            Ok(())
        });
        refused(ultramarine::run(async |_| unreachable!("a job after the job")));
        println!("all is well");
    };
    let Some(ended) = launched(2, "mpi", program) else { return };
    ended.is_well();
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
}

#[test]
fn a_program_that_starts_mpi_itself_is_told_that_it_must_not() {
    let program = || {
        let universe = mpi::initialize().expect("MPI starts once");
        let refused = Options::default().run(async |_| Ok(())).expect_err("MPI runs already");
        assert!(refused.to_string().contains("it was started before `run`"), "{refused}");
        println!("all is well");
        drop(universe);
    };
    let Some(ended) = launched(2, "mpi", program) else { return };
    assert!(ended.out.contains("all is well"), "{}", ended.err);
}

#[test]
fn a_death_at_the_very_end_delays_no_process() {
    let program = || {
        let delay = std::env::var(DIES_AFTER_MS).expect("the test says when");
        let delay: u64 = delay.parse().expect("a number");
        run(async move |cx| {
            let die_soon = async |_, delay| {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(delay));
                    kill_process(getpid(), Signal::KILL)
                });
            };
            // It may die before it has answered.
            let _ = cx.spawn_at(Pe::new(1 + (delay / 4) as u32 % 4), die_soon, delay).await;
            Ok(())
        });
    };
    for delay in (4..32).step_by(4) {
        let grace = ("ULTRAMARINE_SHUTDOWN_GRACE", "50s".into());
        let variables = [(DIES_AFTER_MS, delay.to_string().into()), grace];
        let start = Instant::now();
        let ended = launched_with(5, "mpi", &variables, &itself(program));
        let Some(Ended { is_success, err, .. }) = ended else { return };
        assert!(is_success || err.contains(LAUNCHER_FAULT), "{delay} ms: {err}");
        assert!(start.elapsed() < Duration::from_secs(40), "{delay} ms: {err}");
    }
}

#[test]
fn a_program_that_prints_much_does_not_stand_still() {
    let program = || {
        run(async |_| {
            (0..20_000).for_each(|n| println!("{n:060}"));
            Ok(())
        });
    };
    let Some(ended) = launched(2, "mpi", program) else { return };
    assert!(ended.succeeded().len() > 1 << 20);
}

/// Where UCX sends long messages otherwise, a process that receives one is ended with its sender.
#[test]
fn ucx_is_told_to_send_eagerly_unless_the_user_chooses() {
    const NAME: &str = "UCX_RNDV_THRESH";
    let program = itself(|| {
        run(async |cx| {
            let value = |_| std::env::var(NAME).unwrap_or_default();
            let values = push_map(&cx, value, 0..cx.pes()).await?;
            println!("all have {values:?}");
            Ok(())
        });
    });
    for chosen in [None, Some("8k")] {
        let variables: Vec<_> = chosen.iter().map(|value| (NAME, value.into())).collect();
        let Some(ended) = launched_with(2, "mpi", &variables, &program) else { return };
        let value = chosen.unwrap_or("inf");
        assert!(ended.out.contains(&format!("all have {:?}", [value; 2])), "{}", ended.out);
    }
}
