//! Messages while large values are encoded and decoded.

use super::{PATIENCE, jobs, run_root};
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, lead, serve};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

const OTHER: Pe = Pe::new(1);

/// A long value, and after it one that takes a while to encode.
#[derive(Serialize, Deserialize)]
struct Long<T> {
    octets: (Vec<u8>, u8),
    last: T,
}

impl<T> Long<T> {
    fn new(last: T) -> Self {
        Long { octets: (vec![7; 1 << 16], 7), last }
    }

    fn is_whole(&self) -> bool {
        self.octets == (vec![7; 1 << 16], 7)
    }
}

fn waits_for(condition: &AtomicBool) -> bool {
    let start = Instant::now();
    while !condition.load(Ordering::SeqCst) && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    condition.load(Ordering::SeqCst)
}

/// Runs a main task beside one other PE, each with this many workers.
fn with_another<F, T>(threads: usize, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let mut jobs = jobs(2, threads, |_| None).into_iter();
    let (root, other) = (jobs.next().expect("two"), jobs.next().expect("two"));
    let other = thread::spawn(move || {
        let (result, parting) = serve(other);
        parting.goodbye();
        result.expect("the other PE is well");
    });
    run_root(root, main);
    other.join().expect("the other PE does not panic");
}

static IS_ENCODED: AtomicBool = AtomicBool::new(false);
static HAS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Is encoded once the other PE has answered something else.
#[derive(Deserialize)]
struct Encoded(u8);

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        IS_ENCODED.store(true, Ordering::SeqCst);
        assert!(waits_for(&HAS_ANSWERED), "messages wait until the argument is encoded");
        self.0.serialize(to)
    }
}

#[test]
fn messages_pass_while_a_stolen_argument_is_encoded() {
    with_another(1, async |cx| {
        // While the main task is on another thread, the worker would take the task itself.
        let busy = cx.spawn_at(Pe::ROOT, async |_, ()| waits_for(&IS_ENCODED), ());
        let is_whole = |long: Long<Encoded>| long.is_whole();
        let stolen = cx.spawn_fn(Distance::ONE, is_whole, Long::new(Encoded(0)));
        eventually("the task is stolen", || IS_ENCODED.load(Ordering::SeqCst));
        cx.spawn_at(OTHER, async |_, ()| (), ()).await.expect("it ends");
        HAS_ANSWERED.store(true, Ordering::SeqCst);
        assert!(stolen.await.expect("it ends"));
        assert!(busy.await.expect("it ends"));
    });
}

static HAS_COME: AtomicBool = AtomicBool::new(false);

/// Is decoded once something else has come from the other PE.
#[derive(Serialize)]
struct Decoded(u8);

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if !waits_for(&HAS_COME) {
            return Err(D::Error::custom("messages wait until the result is decoded"));
        }
        u8::deserialize(from).map(Decoded)
    }
}

#[test]
fn messages_pass_while_a_result_is_decoded() {
    /// Longer than a worker without work looks for some.
    const WHILE: Duration = Duration::from_millis(50);
    with_another(2, async |cx| {
        let result = cx.spawn_at(
            OTHER,
            async |cx, ()| {
                let later = async |cx: Context, ()| {
                    cx.sleep(2 * WHILE).await;
                    let come = async |_, ()| HAS_COME.store(true, Ordering::SeqCst);
                    cx.spawn_at(Pe::ROOT, come, ()).await.expect("it ends");
                };
                drop(cx.spawn_at(OTHER, later, ()));
                cx.sleep(WHILE).await;
                Long::new(Decoded(0))
            },
            (),
        );
        assert!(result.await.expect("it is decoded").is_whole());
    });
}

thread_local! {
    static IS_PLACING: Cell<bool> = const { Cell::new(false) };
}
static RAN_AMID_TASK: AtomicBool = AtomicBool::new(false);

/// Notes whether it is encoded by a thread that is placing tasks.
#[derive(Deserialize)]
struct Watched(u8);

impl Serialize for Watched {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        RAN_AMID_TASK.fetch_or(IS_PLACING.get(), Ordering::SeqCst);
        self.0.serialize(to)
    }
}

/// The task may hold a lock that such code needs.
#[test]
fn a_thread_that_places_tasks_runs_no_code_of_others() {
    const TASKS: usize = 100_000;
    with_another(1, async |cx| {
        // While there is nothing to steal the other PE asks for it again and again.
        cx.sleep(Duration::from_millis(50)).await;
        IS_PLACING.set(true);
        let both = |_| {
            let stealable = cx.spawn_fn(Distance::ONE, |_: Watched| (), Watched(0));
            (stealable, cx.spawn_at(OTHER, async |_, ()| (), ()))
        };
        let (stealable, placed): (Vec<_>, Vec<_>) = (0..TASKS).map(both).unzip();
        IS_PLACING.set(false);
        for task in stealable.into_iter().chain(placed) {
            task.await.expect("it ends");
        }
        assert!(!RAN_AMID_TASK.load(Ordering::SeqCst));
    });
}

static IS_LONG_ENCODED: AtomicBool = AtomicBool::new(false);
static IS_OVER: AtomicBool = AtomicBool::new(false);
static IS_DROPPED: AtomicBool = AtomicBool::new(false);

/// Is encoded until the job is over.
#[derive(Deserialize)]
struct Outlasting(u8);

impl Serialize for Outlasting {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        IS_LONG_ENCODED.store(true, Ordering::SeqCst);
        waits_for(&IS_OVER);
        self.0.serialize(to)
    }
}

/// Says that it is dropped.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        IS_DROPPED.store(true, Ordering::SeqCst);
    }
}

#[test]
fn who_awaits_a_task_that_is_encoded_when_the_job_ends_is_dropped() {
    let mut jobs = jobs(2, 1, |_| None).into_iter();
    let (root, other) = (jobs.next().expect("two"), jobs.next().expect("two"));
    let other = thread::spawn(move || serve(other).1.goodbye());
    let (result, parting) = lead(root, async |cx: Context| {
        let _dropped = Dropped;
        let busy = cx.spawn_at(Pe::ROOT, async |_, ()| waits_for(&IS_LONG_ENCODED), ());
        let stolen = cx.spawn_fn(Distance::ONE, |_: Long<Outlasting>| (), Long::new(Outlasting(0)));
        assert!(busy.await.expect("it ends"), "the task is stolen");
        let end = async |_: Context, ()| panic!("as is meant to be");
        cx.tell(Pe::ROOT, end, ()).expect("it is sent");
        stolen.await
    });
    assert!(result.is_err(), "{result:?}");
    assert!(!IS_DROPPED.load(Ordering::SeqCst), "the task is still encoded");
    IS_OVER.store(true, Ordering::SeqCst);
    eventually("the main task is dropped", || IS_DROPPED.load(Ordering::SeqCst));
    parting.goodbye();
    other.join().expect("the other PE does not panic");
}

static IS_BEING_PACKED: AtomicBool = AtomicBool::new(false);
static IS_CANCELLED: AtomicBool = AtomicBool::new(false);
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Is encoded once its task is cancelled.
#[derive(Deserialize)]
struct Cancelled(u8);

impl Serialize for Cancelled {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        IS_BEING_PACKED.store(true, Ordering::SeqCst);
        assert!(waits_for(&IS_CANCELLED), "cancelling waits until the argument is encoded");
        self.0.serialize(to)
    }
}

#[test]
fn a_task_that_is_cancelled_while_it_is_packed_is_not_sent() {
    with_another(1, async |cx| {
        let busy = cx.spawn_at(Pe::ROOT, async |_, ()| waits_for(&IS_BEING_PACKED), ());
        let run = |long: Long<Cancelled>| HAS_RUN.store(long.is_whole(), Ordering::SeqCst);
        let stolen = cx.spawn_fn(Distance::ONE, run, Long::new(Cancelled(0)));
        eventually("the task is stolen", || IS_BEING_PACKED.load(Ordering::SeqCst));
        stolen.abort();
        IS_CANCELLED.store(true, Ordering::SeqCst);
        assert_eq!(stolen.await, Err(TaskError::Cancelled));
        assert!(busy.await.expect("it ends"));
        // The thief gets the next task instead, which is packed after the other.
        let next = cx.spawn_fn(Distance::ONE, |long: Long<u8>| long.is_whole(), Long::new(0));
        assert!(next.await.expect("it ends"));
        cx.spawn_at(OTHER, async |_, ()| (), ()).await.expect("it ends");
        assert!(!HAS_RUN.load(Ordering::SeqCst));
    });
}
