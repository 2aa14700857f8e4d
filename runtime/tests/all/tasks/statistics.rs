//! The statistics of all PEs, when one of them dies.

use super::orphans::{SUPERVISOR as MIDDLE, WORKER as LAST, among_three};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::Context;
use ultramarine_testkit::eventually;

#[test]
fn the_others_are_asked_when_the_one_that_counts_for_them_dies() {
    static BUSY: AtomicU32 = AtomicU32::new(0);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    among_three(async |cx, mark_dead| {
        cx.spawn_at(LAST, async |_, ()| {}, ()).await.expect("all are well");
        // PE 1 has one worker, and a thread that stands in for it: so it does not answer.
        let block = async |_: Context, ()| {
            BUSY.fetch_add(1, SeqCst);
            eventually("PE 1 is marked_dead", || IS_OVER.load(SeqCst));
        };
        let blocked = cx.spawn_at(MIDDLE, block, ());
        eventually("its worker is busy", || BUSY.load(SeqCst) == 1);
        cx.tell(MIDDLE, block, ()).expect("it goes");
        eventually("the other thread is busy", || BUSY.load(SeqCst) == 2);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            mark_dead();
        });
        let statistics = cx.statistics().await.expect("the others answer");
        assert_eq!(statistics.tasks, 1, "that of PE 2");
        IS_OVER.store(true, SeqCst);
        blocked.await.expect_err("PE 1 is dead");
    });
}
