//! Jobs over TCP whose processes may have few files open. The program below is a test that only
//! these tests run, under a shell that sets the limit.
#![cfg(feature = "mpi")]

use crate::common::job::{run, square};
use std::process::Command;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{Error, TaskError};
use ultramarine_testkit::{Ended, finish, itself, launcher_name, scrub};

const PATIENCE: Duration = Duration::from_secs(100);

/// Talks to all PEs, from each PE.
async fn greet_all(cx: Context, (): ()) -> Result<u32, TaskError> {
    let pes = (0..cx.pes()).map(Pe::new);
    let ask = |pe| cx.spawn_at(pe, async |cx: Context, n: u32| cx.pe().number() + n, 1);
    let mut sum = 0;
    for answer in pes.map(ask).collect::<Vec<_>>() {
        sum += answer.await?;
    }
    Ok(sum)
}

fn talk_to_all() {
    run(async |cx| {
        for _ in 0..3 {
            let greet = |pe| cx.spawn_at(Pe::new(pe), greet_all, ());
            for sum in (0..cx.pes()).map(greet).collect::<Vec<_>>() {
                assert_eq!(sum.await?.map_err(Error::from)?, cx.pes() * (cx.pes() + 1) / 2);
            }
            square(&cx, 500, 0).await?;
        }
        assert_eq!(cx.dead(), 0);
        Ok(())
    });
}

/// How a job ends whose processes have this limit, behind the words of a launcher.
fn limited(launcher: &[&str], limit: &str, variables: &[(&str, &str)]) -> Ended {
    let program = itself(talk_to_all);
    let shell = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let words = [launcher, &["sh", "-c", &shell]].concat();
    let mut command = Command::new(words[0]);
    scrub(&mut command);
    command.args(&words[1..]).args(program);
    command.env("ULTRAMARINE_THREADS", "1").env("ULTRAMARINE_LANE", "tcp");
    finish(command.envs(variables.iter().copied()), PATIENCE)
}

/// What a job that went well said on standard error.
fn succeeds(ended: Ended) -> String {
    ended.is_well();
    for loss in ["hold it for dead", "lost its root", "has died"] {
        assert!(!ended.err.contains(loss), "{}", ended.err);
    }
    ended.err
}

#[test]
fn a_crowd_with_few_descriptors_each_loses_no_pe() {
    let Some(launcher) = launcher_name() else { return };
    let launcher = launcher.into_string().expect("its name is text");
    // The hard limit is the same. Some MPI libraries alone take more than 64, which the job says.
    for limit in [64, 80, 96] {
        let ended = limited(&[&launcher, "-n", "24"], &format!("-n {limit}"), &[]);
        if ended.err.contains("out of file descriptors: ") {
            continue;
        }
        let err = succeeds(ended);
        let warned = err.matches(&format!("may have {limit} files open")).count();
        return assert_eq!(warned, 1, "{err}");
    }
    panic!("96 descriptors should be enough for any MPI");
}

#[test]
fn two_connections_are_enough() {
    for limit in ["2", "3"] {
        let variables = [("ULTRAMARINE_PES", "12"), ("ULTRAMARINE_CONNECTIONS_MAX", limit)];
        succeeds(limited(&["env"], "-n 1024", &variables));
    }
}

#[test]
fn a_soft_limit_that_is_too_low_is_raised() {
    succeeds(limited(&["env"], "-Sn 64", &[("ULTRAMARINE_PES", "24")]));
}

#[test]
fn a_job_without_descriptors_enough_ends_at_once_and_says_so() {
    let ended = limited(&["env"], "-n 64", &[("ULTRAMARINE_PES", "24")]);
    ended.fails_with("out of file descriptors: RLIMIT_NOFILE is 64");
    ended.fails_with("ulimit -n");
}
