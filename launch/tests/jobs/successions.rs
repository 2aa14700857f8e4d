//! Jobs that outlive their roots.
#![cfg(feature = "mpi")]

use crate::common::job::{die, run_restartable, until};
use crate::common::launcher::over_each_lane;
use futures_util::future::poll_immediate;
use rustix::process::{Signal, getpid, kill_process};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{EndRequest, Error, Result, shutdown_requested};
use ultramarine_testkit::Ended;

/// Runs a main task on this many processes over each lane, and tells how they ended.
fn ends<T>(
    processes: u32,
    main: impl Fn(Context) -> T + Send + Sync + 'static,
) -> impl Iterator<Item = Ended>
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    over_each_lane(processes, || run_restartable(main)).map(|(_, ended)| ended)
}

/// Waits until a PE has heard of a root.
async fn hear_of_root(cx: Context, root: Pe) {
    until(&cx, || cx.root() == root).await;
}

/// Has a process ask itself to end.
async fn ask(_: Context, (): ()) {
    kill_process(getpid(), Signal::TERM).expect("it is this one");
}

#[test]
fn root_after_root_may_die_until_one_process_is_left() {
    let main = async |cx: Context| {
        assert_eq!(cx.root(), cx.pe());
        // A root that died at once may have been unknown to this PE.
        let (first, latest) = (cx.pe() == Pe::ROOT, cx.pe().number() + 1);
        assert!(first || (2..=latest).contains(&cx.attempt()), "{}", cx.attempt());
        let slow = async |cx: Context, n: u64| {
            cx.sleep(Duration::from_millis(2)).await;
            n * n
        };
        let supervised = cx.supervised();
        let tasks: Vec<_> = (0..200).map(|n| supervised.spawn(Distance::ONE, slow, n)).collect();
        let mut sum = 0;
        for (n, task) in tasks.into_iter().enumerate() {
            sum += task.await?;
            if n == 100 && cx.dead() < cx.pes() - 1 {
                die();
            }
        }
        assert_eq!(sum, (0..200).map(|n| n * n).sum::<u64>());
        assert_eq!(cx.dead(), cx.pes() - 1);
        Ok(())
    };
    for ended in ends(4, main) {
        ended.is_well();
        for rank in 0..3 {
            let told = format!("rank {rank} on");
            assert!(ended.err.contains(&told), "`{told}` is not in: {}", ended.err);
        }
        let told = ended.err.matches("the job goes on without it").count();
        assert_eq!(told, 3, "{}", ended.err);
    }
}

#[test]
fn what_the_successor_returns_counts() {
    let failure = "no luck at the second attempt";
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            die();
        }
        Err(Error::other("no luck at the second attempt"))
    };
    for ended in ends(3, main) {
        ended.fails_with(failure);
    }
}

#[test]
fn a_job_does_not_outlive_its_last_process() {
    let main = async |_: Context| {
        die();
        Ok(())
    };
    for ended in ends(3, main) {
        ended.fails_with("was killed by SIGKILL: the job ends");
    }
}

#[test]
fn a_result_counts_though_the_root_is_killed_as_it_leaves() {
    let program = || {
        static IS_ROOT: AtomicBool = AtomicBool::new(false);
        run_restartable(async |_| {
            IS_ROOT.store(true, SeqCst);
            Ok(())
        });
        if IS_ROOT.load(SeqCst) {
            // The others listen no more by then.
            std::thread::sleep(Duration::from_millis(300));
            die();
        }
    };
    over_each_lane(3, program).for_each(|(_, ended)| ended.is_well());
}

#[test]
fn a_root_that_calls_exit_is_succeeded() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            std::process::exit(5);
        }
        Ok(())
    };
    for ended in ends(3, main) {
        ended.is_well();
        let told = "called exit(5) amid the job; the job goes on without it";
        assert!(ended.err.contains(told), "{}", ended.err);
    }
}

#[test]
fn the_others_pass_over_signals_after_a_succession_too() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            die();
        }
        let mut asked = pin!(shutdown_requested());
        // From the first poll on it listens.
        assert_eq!(poll_immediate(asked.as_mut()).await, None);
        for pe in 2..cx.pes() {
            // One that is asked before it has heard of this root would not follow it.
            cx.spawn_at(Pe::new(pe), hear_of_root, cx.pe()).await?;
            cx.spawn_at(Pe::new(pe), ask, ()).await?;
            assert_eq!(cx.spawn_at(Pe::new(pe), async |_, n: u32| n, 3).await?, 3);
        }
        ask(cx.clone(), ()).await;
        assert_eq!(asked.await, EndRequest::Terminate);
        assert_eq!(cx.dead(), 1, "only the first root");
        Ok(())
    };
    ends(4, main).for_each(|ended| ended.is_well());
}

#[test]
fn a_root_that_is_killed_after_it_was_asked_to_end_is_a_failure() {
    let main = async |cx: Context| {
        if cx.attempt() > 1 {
            println!("went on");
            return Ok(());
        }
        for pe in 1..cx.pes() {
            cx.spawn_at(Pe::new(pe), ask, ()).await?;
        }
        die();
        Ok(())
    };
    for ended in ends(3, main) {
        assert!(!ended.is_success, "{}{}", ended.out, ended.err);
        assert!(!ended.out.contains("went on"), "{}{}", ended.out, ended.err);
    }
}

#[test]
fn one_that_was_signalled_before_does_not_end_the_successors_job() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            cx.spawn_at(Pe::new(3), ask, ()).await?;
            die();
        }
        let slow = async |cx: Context, n: u64| {
            cx.sleep(Duration::from_millis(20)).await;
            n
        };
        let numbers = map_async(slow, 0..100).run(&cx.supervised()).await?;
        assert!(numbers.into_iter().eq(0..100));
        Ok(())
    };
    ends(4, main).for_each(|ended| ended.is_well());
}

#[test]
fn a_job_without_deaths_starts_its_main_task_once() {
    let main = async |cx: Context| {
        assert_eq!(par_map(&cx, |n: u64| n + 1, 0..3).await?, [1, 2, 3]);
        println!("attempt {} on {}", cx.attempt(), cx.pe());
        Ok(())
    };
    for ended in ends(3, main) {
        assert_eq!(ended.succeeded().matches("attempt 1 on PE 0").count(), 1, "{}", ended.err);
    }
}
