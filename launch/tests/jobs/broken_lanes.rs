//! Jobs in which a library closes files that are not its own: what the TCP lane of a PE waits for
//! its connections with, or the sockets on which a PE is called.
#![cfg(feature = "mpi")]

use crate::common::job::{run, run_restartable, square};
use crate::common::launcher::{launched_with, over_each_lane_with};
use crate::common::mischief;
use crate::common::ports::{self, PORTS};
use futures_util::future::try_join;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options};
use ultramarine_testkit::{Ended, itself, scrub};

/// How long a PE waits at the end for others that do not answer: longer than a test may last.
const GRACE: (&str, &str) = ("ULTRAMARINE_SHUTDOWN_GRACE", "5min");

/// What the PE says whose lane has failed.
const SAID: &str = "cannot go on: asking for the TCP lane's events";

/// The variables of a job under the launcher.
fn variables() -> [(&'static str, OsString); 2] {
    [(PORTS, ports::some().into()), (GRACE.0, GRACE.1.into())]
}

fn launched(program: impl FnOnce()) -> Option<Ended> {
    launched_with(3, "tcp", &variables(), &itself(program))
}

/// The PE has said it once.
fn says_it_once(ended: &Ended) {
    assert_eq!(ended.err.matches(SAID).count(), 1, "{}", ended.err);
}

#[test]
fn a_pe_whose_lane_fails_says_it_once_and_leaves() {
    let program = || run(async |cx| compute(&cx, Pe::new(1)).await);
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    says_it_once(&ended);
}

#[test]
fn a_job_outlives_a_root_whose_lane_fails() {
    let program = || run_restartable(async |cx| compute(&cx, Pe::ROOT).await);
    let Some(ended) = launched(program) else { return };
    ended.is_well();
    says_it_once(&ended);
}

fn leaves_if_it_cannot_be_called(program: impl FnOnce()) {
    for (lane, ended) in over_each_lane_with(3, |_| variables(), itself(program)) {
        ended.is_well();
        let said = ["listening for other PEs on the TCP lane", "watching the other PEs"];
        let count = said.map(|said| ended.err.matches(&format!("cannot go on: {said}")).count());
        assert_eq!(count[0] + count[1], 1, "{lane}: {}", ended.err);
    }
}

#[test]
fn a_pe_that_cannot_be_called_any_more_leaves() {
    leaves_if_it_cannot_be_called(|| run(async |cx| wait_there(&cx, Pe::new(1)).await));
}

#[test]
fn a_job_outlives_a_root_that_cannot_be_called_any_more() {
    leaves_if_it_cannot_be_called(|| run_restartable(async |cx| wait_there(&cx, Pe::ROOT).await));
}

#[test]
fn a_job_ends_with_a_root_whose_lane_fails() {
    let program = || run(async |cx| compute(&cx, Pe::ROOT).await);
    let Some(ended) = launched(program) else { return };
    ended.fails_with(SAID);
}

#[test]
fn a_job_inside_one_process_ends_when_a_lane_fails() {
    let program = || {
        let options = Options::default().pes(3).threads(1).lane(LaneKind::Tcp);
        let number: u32 = std::env::var(NUMBER).expect("the test says which").parse().unwrap();
        let job = options.run(async move |cx| {
            let break_it = async |_: Context, number: u32| break_lane(number as usize);
            cx.spawn_at(Pe::new(number), break_it, number).await?;
            cx.sleep(Duration::from_hours(1)).await;
            Ok(())
        });
        job.expect("it does not end well");
    };
    let words = itself(program);
    for number in ["0", "2"] {
        let mut command = Command::new(&words[0]);
        scrub(command.args(&words[1..]));
        command.env(PORTS, "1-65535").env(GRACE.0, GRACE.1).env(NUMBER, number);
        let ended = ultramarine_testkit::run(&mut command);
        ended.fails_with(&format!("PE {number} {SAID}"));
        // The PE says it, and then the root or the program.
        assert!(ended.err.matches(SAID).count() <= 3, "{}", ended.err);
    }
}

/// The variable that says which PE's lane is broken.
const NUMBER: &str = "BROKEN_LANES_NUMBER";

/// Has the lane of the PE wait for nothing from now on: the one that was made after `number` others
/// of this process.
fn break_lane(number: usize) {
    let listener = *ports::own().keys().nth(number).expect("it listens");
    let target = format!("tfd:{listener:>9} ");
    for file in std::fs::read_dir("/proc/self/fdinfo").expect("on Linux") {
        let file = file.expect("it can be read");
        let info = std::fs::read_to_string(file.path()).unwrap_or_default();
        if info.contains(&target) {
            let number = file.file_name().to_str().and_then(|name| name.parse().ok());
            mischief::spoil(number.expect("a number"));
        }
    }
}

/// Squares of numbers, some of which are computed where the lane is broken.
async fn compute(cx: &Context, broken: Pe) -> ultramarine::Result<()> {
    let cx = cx.supervised();
    let first = cx.attempt() == 1;
    let break_here = async |cx: Context, (broken, first): (Pe, bool)| {
        if first && cx.pe() == broken {
            break_lane(0);
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let break_it = async { cx.spawn_at(broken, break_here, (broken, first)).await };
    try_join(square(&cx, 200, 2000), break_it).await?;
    cx.agree_to_end().await;
    Ok(())
}

/// Waits on a PE whose sockets are gone, until that has left.
async fn wait_there(cx: &Context, broken: Pe) -> ultramarine::Result<()> {
    let first = cx.attempt() == 1;
    let close = async |cx: Context, (broken, first): (Pe, bool)| {
        if first && cx.pe() == broken {
            ports::own().into_keys().for_each(mischief::spoil);
            cx.sleep(Duration::from_hours(1)).await;
        }
    };
    cx.supervised().spawn_at(broken, close, (broken, first)).await?;
    cx.agree_to_end().await;
    Ok(())
}
