//! Tasks that wait in rayon's `join` while there is other work on their PE.

use super::{alone, until};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use ultramarine_runtime::executor::{Context, Future};
use ultramarine_testkit::eventually;
use ultramarine_topology::Distance;

const STRANGERS: u32 = 20;

/// Longer than an idle worker looks for work: then it sleeps inside rayon.
const WORKERS_SLEEP: Duration = Duration::from_millis(20);

thread_local! {
    /// Whether the thread is inside a `join`.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Counts tasks.
struct Count {
    run: AtomicU32,
    /// Of these, inside of another task's `join`.
    nested: AtomicU32,
}

impl Count {
    const fn new() -> Self {
        Count { run: AtomicU32::new(0), nested: AtomicU32::new(0) }
    }

    fn one(&self) {
        self.nested.fetch_add(u32::from(IS_INSIDE.get()), SeqCst);
        self.run.fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(2));
    }

    fn are_all_run(&self) -> bool {
        self.run.load(SeqCst) == STRANGERS
    }
}

/// A `join` of which another thread does `other`, while this one waits for it.
fn join_with_another<R: Send>(other: impl FnOnce() -> R + Send) -> R {
    let has_begun = AtomicBool::new(false);
    let was_inside = IS_INSIDE.replace(true);
    let wait = || eventually("another thread begins", || has_begun.load(SeqCst));
    let begin = || {
        has_begun.store(true, SeqCst);
        other()
    };
    let ((), result) = rayon::join(wait, begin);
    IS_INSIDE.set(was_inside);
    result
}

/// Spawns tasks, and gives the other threads time to look at them.
fn spawn_strangers<F>(cx: &Context, stranger: F) -> Vec<Future<()>>
where
    F: Fn(u32) + ultramarine_runtime::code::Stateless,
{
    let futures = (0..STRANGERS).map(|n| cx.spawn_fn(Distance::ZERO, stranger, n)).collect();
    thread::sleep(Duration::from_millis(100));
    futures
}

#[test]
fn a_waiting_join_starts_no_other_task() {
    static COUNT: Count = Count::new();
    let task = async |cx: Context, of_a_helper: bool| {
        thread::sleep(WORKERS_SLEEP);
        let spawn = || join_with_another(|| spawn_strangers(&cx, |_: u32| COUNT.one()));
        if of_a_helper {
            // The other thread comes from its sleep inside rayon, and waits for this one in turn.
            join_with_another(spawn);
        } else {
            spawn();
        }
    };
    for of_a_helper in [false, true] {
        COUNT.run.store(0, SeqCst);
        alone(2, async move |cx| {
            assert_eq!(cx.spawn(Distance::ZERO, task, of_a_helper).await, Ok(()));
            until(&cx, || COUNT.are_all_run()).await;
            assert_eq!(COUNT.nested.load(SeqCst), 0, "of a helper: {of_a_helper}");
        });
    }
}

#[test]
fn an_idle_worker_runs_what_waiting_ones_decline() {
    static COUNT: Count = Count::new();
    for _ in 0..5 {
        COUNT.run.store(0, SeqCst);
        alone(3, async |cx| {
            let task = async |cx: Context, ()| {
                thread::sleep(WORKERS_SLEEP);
                join_with_another(|| {
                    let strangers = spawn_strangers(&cx, |_: u32| COUNT.one());
                    eventually("the third worker runs them", || COUNT.are_all_run());
                    strangers
                });
            };
            assert_eq!(cx.spawn(Distance::ZERO, task, ()).await, Ok(()));
            assert_eq!(COUNT.nested.load(SeqCst), 0);
        });
    }
}

#[test]
fn a_waiting_join_resumes_a_task_that_can_go_on() {
    static IS_RESUMED: AtomicBool = AtomicBool::new(false);
    alone(2, async |cx| {
        let task = async |_: Context, ()| {
            join_with_another(|| eventually("main goes on", || IS_RESUMED.load(SeqCst)));
        };
        let joined = cx.spawn(Distance::ZERO, task, ());
        // Both workers are inside the join by then.
        cx.sleep(Duration::from_millis(30)).await;
        IS_RESUMED.store(true, SeqCst);
        assert_eq!(joined.await, Ok(()));
    });
}
