//! Tasks whose supervisor has died end, and with them the tasks that they spawned.

use super::{PATIENCE, jobs, run_root, until};
use crate::Silent;
use futures_util::StreamExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::detector::FailureEvent;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, DetectorSetup, EventHandler, FailureDetector, serve};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

pub(crate) const SUPERVISOR: Pe = Pe::new(1);
pub(crate) const WORKER: Pe = Pe::new(2);
const TICK: Duration = Duration::from_millis(1);

type EventHandlers = Arc<Mutex<Vec<(Pe, EventHandler)>>>;

/// Runs `main` on the root of three PEs. Its argument tells the others that PE 1 is dead.
pub(crate) fn among_three<T>(
    main: impl FnOnce(Context, Box<dyn Fn() + Send + Sync>) -> T + Send + 'static,
) where
    T: Future<Output = ()> + Send + 'static,
{
    let reports = EventHandlers::default();
    let watch = |me| {
        let reports = reports.clone();
        let begin = move |report| {
            reports.lock().unwrap().push((me, report));
            Ok(Box::new(Silent) as Box<dyn FailureDetector>)
        };
        Some(DetectorSetup { fallback: None, start: Box::new(begin) })
    };
    let mut jobs = jobs(3, 1, watch).into_iter();
    let root = jobs.next().unwrap();
    jobs.for_each(|job| drop(thread::spawn(move || drop(serve(job)))));
    let mark_dead = move || {
        for (pe, report) in &*reports.lock().unwrap() {
            let is_dead = *pe == SUPERVISOR;
            let dead = FailureEvent::Dead(vec![SUPERVISOR]);
            report(if is_dead { FailureEvent::Expelled } else { dead });
        }
    };
    run_root(root, move |cx| main(cx, Box::new(mark_dead)));
}

/// PE 1 spawns a task on PE 2, and is declared dead once `has_begun` returns true.
async fn orphan<F, T>(
    cx: &Context,
    mark_dead: &(dyn Fn() + Send + Sync),
    f: F,
    has_begun: fn() -> bool,
) where
    F: Fn(Context, ()) -> T + ultramarine_runtime::code::Stateless,
    T: Future<Output = ()> + Send + 'static,
{
    let supervise = move |cx: Context, ()| async move {
        drop(cx.supervised().spawn_at(WORKER, f, ()).await);
    };
    let lost = cx.spawn_at(SUPERVISOR, supervise, ());
    eventually("the task has begun", has_begun);
    mark_dead();
    assert_eq!(lost.await, Err(TaskError::Lost { pe: SUPERVISOR }));
}

/// Waits until the living have counted this many orphans.
async fn are_counted(cx: &Context, orphans: u64) {
    let start = Instant::now();
    while cx.statistics().await.expect("no other PE dies").orphans < orphans {
        assert!(start.elapsed() < PATIENCE, "there are fewer orphans");
        cx.sleep(TICK).await;
    }
}

#[test]
fn an_orphan_is_stopped_where_it_awaits() {
    static TICKS: AtomicU32 = AtomicU32::new(0);
    among_three(async |cx, mark_dead| {
        let task = async |cx: Context, ()| loop {
            TICKS.fetch_add(1, SeqCst);
            cx.sleep(TICK).await;
        };
        orphan(&cx, &*mark_dead, task, || TICKS.load(SeqCst) > 5).await;
        are_counted(&cx, 1).await;
        let ticks = TICKS.load(SeqCst);
        cx.sleep(TICK * 50).await;
        assert_eq!(TICKS.load(SeqCst), ticks);
    });
}

#[test]
fn a_task_that_only_an_orphan_waits_for_ends_with_it() {
    static TICKS: AtomicU32 = AtomicU32::new(0);
    static STARTED: AtomicU32 = AtomicU32::new(0);
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    among_three(async |cx, mark_dead| {
        let task = async |cx: Context, ()| {
            // A child that spawns, which the orphan waits for; behind it many that are not started.
            let child = async |cx: Context, ()| {
                let tick = async |_: Context, ()| TICKS.fetch_add(1, SeqCst);
                while cx.spawn(Distance::ZERO, tick, ()).await.is_ok() {
                    cx.sleep(TICK).await;
                }
            };
            let first = cx.spawn(Distance::ZERO, child, ());
            until(&cx, || TICKS.load(SeqCst) >= 5).await;
            let count = async |cx: Context, ()| {
                STARTED.fetch_add(1, SeqCst);
                until(&cx, || IS_OPEN.load(SeqCst)).await;
                TICKS.fetch_add(1, SeqCst);
            };
            let others: Vec<_> = (0..5).map(|_| cx.spawn(Distance::ZERO, count, ())).collect();
            first.await.expect("it never ends");
            drop(others);
        };
        orphan(&cx, &*mark_dead, task, || STARTED.load(SeqCst) == 5).await;
        // With the orphan went its first child and the five others.
        are_counted(&cx, 1).await;
        let ticks = TICKS.load(SeqCst);
        IS_OPEN.store(true, SeqCst);
        cx.sleep(TICK * 50).await;
        assert_eq!(TICKS.load(SeqCst), ticks);
    });
}

#[test]
fn what_an_orphan_spawns_is_deferred_until_a_task_awaits_it() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    static STARTED: AtomicU32 = AtomicU32::new(0);
    static KEPT: Mutex<Option<ultramarine_runtime::executor::Future<u32>>> = Mutex::new(None);
    among_three(async |cx, mark_dead| {
        let task = async |cx: Context, ()| {
            HAS_BEGUN.store(true, SeqCst);
            eventually("the supervisor is dead", || cx.is_dead(SUPERVISOR));
            let count = async |_: Context, ()| STARTED.fetch_add(1, SeqCst);
            for _ in 0..100 {
                drop(cx.spawn(Distance::ONE, count, ()));
                drop(cx.spawn_at(Pe::ROOT, count, ()));
                drop(cx.fork(Distance::ONE, count, ()).leave());
            }
            *KEPT.lock().unwrap() = Some(cx.spawn(Distance::ONE, count, ()));
            IS_DONE.store(true, SeqCst);
        };
        orphan(&cx, &*mark_dead, task, || HAS_BEGUN.load(SeqCst)).await;
        eventually("the orphan has ended", || IS_DONE.load(SeqCst));
        cx.sleep(TICK * 50).await;
        assert_eq!(STARTED.load(SeqCst), 0);
        // A task that is no orphan may share the future of a task that the orphan spawned.
        let ask = async |_: Context, ()| {
            let kept = KEPT.lock().unwrap().take();
            kept.expect("the orphan has left it").await
        };
        assert_eq!(cx.spawn_at(WORKER, ask, ()).await, Ok(Ok(0)));
    });
}

#[test]
fn a_task_that_others_wait_for_goes_on() {
    static IS_SPAWNED: AtomicBool = AtomicBool::new(false);
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicU32 = AtomicU32::new(0);
    among_three(async |cx, mark_dead| {
        let task = async |cx: Context, ()| {
            let wait = async |cx: Context, ()| {
                until(&cx, || IS_OPEN.load(SeqCst)).await;
                DONE.fetch_add(1, SeqCst);
            };
            // The program does not wait for this one at all.
            drop(cx.spawn(Distance::ZERO, wait, ()));
            IS_SPAWNED.store(true, SeqCst);
            wait(cx, ()).await;
        };
        orphan(&cx, &*mark_dead, task, || IS_SPAWNED.load(SeqCst)).await;
        are_counted(&cx, 1).await;
        IS_OPEN.store(true, SeqCst);
        until(&cx, || DONE.load(SeqCst) > 0).await;
        cx.sleep(TICK * 50).await;
        assert_eq!(DONE.load(SeqCst), 1, "the orphan itself is gone");
    });
}

#[test]
fn a_receiver_learns_that_its_sender_has_died() {
    among_three(async |cx, mark_dead| {
        let mut deaths = cx.deaths();
        let key = cx.new_key();
        let mail = cx.mailbox::<u32>(key);
        let send = async |cx: Context, key| cx.mailbox(key).send(Pe::ROOT, 7_u32);
        cx.spawn_at(SUPERVISOR, send, key).await.expect("it lives").expect("it is sent");
        mark_dead();
        assert_eq!(deaths.next().await, Some(SUPERVISOR));
        assert_eq!(mail.receive(SUPERVISOR).await, Ok(7), "it came before");
        assert_eq!(mail.receive(SUPERVISOR).await, Err(TaskError::Died { pe: SUPERVISOR }));
        assert_eq!(mail.receive_any().await, Err(TaskError::Died { pe: SUPERVISOR }));
        cx.mailbox(key).send(cx.pe(), 8_u32).expect("it goes");
        assert_eq!(mail.receive_any().await, Ok((cx.pe(), 8)), "a death is said once");
        // A later receiver learns of it, too.
        assert_eq!(cx.deaths().next().await, Some(SUPERVISOR));
        let late = cx.mailbox::<u32>(cx.new_key());
        assert_eq!(late.receive(SUPERVISOR).await, Err(TaskError::Died { pe: SUPERVISOR }));
    });
}
