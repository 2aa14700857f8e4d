//! Several jobs of one user on one machine, at the same time.

use super::LIOUVILLE;
use super::job::Job;
use crate::common::launcher;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

/// Long enough to be at the same time.
const LONG: &str = "--upto 100000000 --tasks 200 --json --supervised";
const RESULT: i64 = -3884;

/// A job of three PEs with these flags besides.
fn job(flags: &str) -> Option<Command> {
    let mut command = launcher()?;
    command.args(["-n", "3", LIOUVILLE]).args(LONG.split(' ')).args(flags.split_whitespace());
    Some(command)
}

/// This many ports, most of which are free.
fn ports(count: u16) -> (u16, u16) {
    loop {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
        let first = free.local_addr().expect("it has one").port();
        if let Some(last) = first.checked_add(count - 1) {
            return (first, last);
        }
    }
}

#[test]
fn three_jobs_at_once_are_right_each_though_one_loses_processes() {
    let flags = ["", "--kill-at 0.05,0.1", "--lane tcp"];
    let mut jobs: Vec<_> = flags.iter().filter_map(|flags| job(flags)).collect();
    let mut jobs: Vec<_> = jobs.iter_mut().map(Job::start).collect();
    for job in &mut jobs {
        job.begun(3);
    }
    for (job, dead) in jobs.into_iter().zip([0, 2, 0]) {
        let ended = job.end();
        let report = ended.report();
        assert_eq!(
            (&report["result"], &report["dead"]),
            (&RESULT.into(), &dead.into()),
            "{}",
            ended.err
        );
    }
}

#[test]
fn jobs_with_the_same_ports_get_along() {
    let (first, last) = ports(60);
    let flags = format!("--ports {first}-{last}");
    let mut jobs: Vec<_> = (0..2).filter_map(|_| job(&flags)).collect();
    let jobs: Vec<_> = jobs.iter_mut().map(Job::start).collect();
    for mut job in jobs {
        job.begun(3);
        assert_eq!(job.end().report()["result"], RESULT);
    }
}

#[test]
fn too_few_ports_are_an_error_that_says_so_once() {
    let (first, last) = ports(5);
    let flags = format!("--ports {first}-{last}");
    let Some(mut command) = job(&flags) else { return };
    let ended = Job::start(&mut command).end();
    let said = format!("no port to listen for PEs on: all from {first} to {last} are taken");
    assert_eq!(ended.err.matches(&said).count(), 1, "{}", ended.err);
    ended.fails_with("give a wider range, as in --ports 40000-40100: each process takes two");
}
