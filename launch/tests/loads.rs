//! Jobs with thousands of PEs in one process, and with more data than may be in flight at once.

mod common;

use common::{on_both_lanes_with, pes};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{LaneKind, Options};
use ultramarine_testkit::within;

/// The longest that the largest job here may take, on two cores that others use as well. Reached
/// only when the test fails.
const PATIENCE: Duration = Duration::from_mins(4);

#[test]
fn two_thousand_pes_in_one_process_work_and_end() {
    let main = async |cx: Context| {
        let square = async |_: Context, n: u32| n * n;
        let squares: Vec<_> = (0..2000).map(|n| cx.spawn_at(Pe::new(n), square, n)).collect();
        for (n, square) in (0..).zip(squares) {
            assert_eq!(square.await?, n * n);
        }
        let sums = par_map(&cx, |n: u64| (0..n).sum::<u64>(), 0..2000).await?;
        assert_eq!(sums[1999], 1998 * 1999 / 2);
        Ok(())
    };
    let job = within(PATIENCE, move || pes(2000, LaneKind::Memory).run(main));
    job.expect("no PE takes another for dead");
}

/// A job of two PEs of which little may wait for each.
fn little(lane: LaneKind) -> Options {
    pes(2, lane).set("backlog_bytes_max", 1 << 20)
}

/// Places tasks on one PE whose arguments together are many times what may wait for a PE; their
/// results come back the same way. Small tasks among them stay in their order.
fn more_than_fits(supervised: bool) {
    const LONG: usize = 300 << 10;
    let options = |lane| little(lane).set("message_bytes_max", 400 << 10);
    on_both_lanes_with(options, move |cx| async move {
        let cx = if supervised { cx.supervised() } else { cx };
        let there = Pe::new(1);
        let echo = async |_: Context, text: String| text;
        let place = |n: usize| {
            let times = if n.is_multiple_of(3) { 1 } else { LONG / n.to_string().len() };
            let text = n.to_string().repeat(times);
            (text.clone(), cx.spawn_at(there, echo, text))
        };
        for (text, echoed) in (1..40).map(place).collect::<Vec<_>>() {
            assert!(echoed.await? == text, "what went out comes back");
        }
        Ok(())
    });
}

#[test]
fn data_beyond_the_limit_waits_and_arrives() {
    [false, true].into_iter().for_each(more_than_fits);
}

#[test]
fn a_job_ends_though_much_still_waits_to_be_sent() {
    on_both_lanes_with(little, async |cx| {
        let sent = |n: usize| cx.spawn_at(Pe::new(1), async |_, _: String| (), "x".repeat(n));
        let waiting: Vec<_> = (0..20).map(|_| sent(1 << 20)).collect();
        drop(waiting);
        Ok(())
    });
}
