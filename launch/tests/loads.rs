//! Jobs with thousands of PEs in one process, and with more data than may be in flight at once.

mod common;

use common::{LANES, pes};
use std::sync::mpsc;
use std::time::Duration;
use ultramarine::LaneKind;
use ultramarine::prelude::*;
use ultramarine_testkit::bounded;

/// The longest that the largest job here may take, on two cores that others use as well. Reached
/// only when the test fails.
const PATIENCE: Duration = Duration::from_mins(4);

#[test]
fn two_thousand_pes_in_one_process_work_and_end() {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let job = pes(2000, LaneKind::Memory).run(async |cx| {
            let squares: Vec<_> =
                (0..2000).map(|n| cx.spawn_at(Pe::new(n), async |_, n: u32| n * n, n)).collect();
            for (n, square) in (0..).zip(squares) {
                assert_eq!(square.await?, n * n);
            }
            let sums = par_map(&cx, |n: u64| (0..n).sum::<u64>(), 0..2000).await?;
            assert_eq!(sums[1999], 1998 * 1999 / 2);
            Ok(())
        });
        done.send(job).expect("somebody waits");
    });
    is_done.recv_timeout(PATIENCE).expect("the job ends").expect("no PE takes another for dead");
}

/// Places tasks on one PE whose arguments together are many times what may wait for a PE; their
/// results come back the same way. Small tasks among them stay in their order.
fn more_than_fits(lane: LaneKind, supervised: bool) {
    const LONG: usize = 300 << 10;
    let job = pes(2, lane).set("backlog_bytes_max", 1 << 20).set("message_bytes_max", 400 << 10);
    let main = async move |cx: Context| {
        let there = Pe::new(1);
        let echo = async |_: Context, text: String| text;
        let place = |n: usize| {
            let text = n.to_string().repeat(if n.is_multiple_of(3) {
                1
            } else {
                LONG / n.to_string().len()
            });
            let task = if supervised {
                cx.supervised().spawn_at(there, echo, text.clone())
            } else {
                cx.spawn_at(there, echo, text.clone())
            };
            (text, task)
        };
        for (text, echoed) in (1..40).map(place).collect::<Vec<_>>() {
            assert!(echoed.await? == text, "what went out comes back");
        }
        Ok(())
    };
    bounded(move || job.run(main)).unwrap_or_else(|error| panic!("{lane:?}: {error}"));
}

#[test]
fn data_beyond_the_limit_waits_and_arrives() {
    for lane in LANES {
        more_than_fits(lane, false);
        more_than_fits(lane, true);
    }
}

#[test]
fn a_job_ends_though_much_still_waits_to_be_sent() {
    for lane in LANES {
        let job = pes(2, lane).set("backlog_bytes_max", 1 << 20);
        let main = async |cx: Context| {
            let sent = |n: usize| cx.spawn_at(Pe::new(1), async |_, _: String| (), "x".repeat(n));
            let waiting: Vec<_> = (0..20).map(|_| sent(1 << 20)).collect();
            drop(waiting);
            Ok(())
        };
        bounded(move || job.run(main)).unwrap_or_else(|error| panic!("{lane:?}: {error}"));
    }
}
