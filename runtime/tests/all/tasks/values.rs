//! Values that stay in a process, and their handles.

use super::{among, until};
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Remote, Shared};
use ultramarine_testkit::eventually;
use ultramarine_topology::{Distance, Pe};

const PES: u32 = 4;

/// The number of times that a value was decoded, and the number of living values.
struct Count {
    decoded: AtomicU32,
    alive: AtomicU32,
}

impl Count {
    const fn new() -> Self {
        Count { decoded: AtomicU32::new(0), alive: AtomicU32::new(0) }
    }
}

/// A value that is counted.
macro_rules! counted {
    ($name:ident, $count:ident) => {
        static $count: Count = Count::new();

        #[derive(Serialize)]
        struct $name(u64);

        impl $name {
            fn new(n: u64) -> Self {
                $count.alive.fetch_add(1, SeqCst);
                $name(n)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $count.decoded.fetch_add(1, SeqCst);
                u64::deserialize(from).map($name::new)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                $count.alive.fetch_sub(1, SeqCst);
            }
        }
    };
}

#[test]
fn a_shared_value_goes_once_to_each_process_and_leaves_with_its_last_handle() {
    counted!(Table, COUNT);
    among(PES, 2, async |cx: Context| {
        let table = cx.share(Table::new(7));
        let add = async |cx: Context, (table, n): (Shared<Table>, u64)| (cx.pe(), table.0 + n);
        let placed = (0..100).map(|n| {
            let pe = Pe::new(n as u32 % PES);
            cx.spawn_at(pe, add, (table.clone(), n))
        });
        let placed: Vec<_> = placed.collect();
        for (future, n) in placed.into_iter().zip(0..) {
            assert_eq!(future.await, Ok((Pe::new(n as u32 % PES), 7 + n)));
        }
        assert_eq!(COUNT.decoded.load(SeqCst), PES - 1);
        assert_eq!(COUNT.alive.load(SeqCst), PES, "they stay for tasks to come");
        drop(table);
        eventually("all copies go", || COUNT.alive.load(SeqCst) == 0);
    });
}

#[test]
fn a_shared_vector_is_not_copied_within_a_process() {
    among(PES, 1, async |cx: Context| {
        let table = cx.share(vec![0.5_f64; 100_000]);
        for pe in 0..PES {
            let there = async |_, table: Shared<Vec<f64>>| table.as_ptr().addr();
            let seen = cx.spawn_at(Pe::new(pe), there, table.clone()).await;
            assert_eq!(seen, Ok(table.as_ptr().addr()));
        }
        // Kinds that are encoded.
        let text = cx.share("long".repeat(10_000));
        let length = async |_, text: Shared<String>| text.len() as u64;
        assert_eq!(cx.spawn_at(Pe::new(1), length, text).await, Ok(40_000));
    });
}

#[test]
fn a_handle_may_be_passed_on() {
    counted!(Table, COUNT);
    among(PES, 1, async |cx: Context| {
        let pass_on = async |cx: Context, table: Shared<Table>| {
            let next = Pe::new(cx.pe().number() + 1);
            let read = async |_, table: Shared<Table>| table.0;
            // Home may have dropped its own.
            cx.spawn_at(next, read, table).await
        };
        let table = cx.share(Table::new(7));
        let passed_on = cx.spawn_at(Pe::new(1), pass_on, table);
        assert_eq!(passed_on.await, Ok(Ok(7)));
        eventually("all copies go", || COUNT.alive.load(SeqCst) == 0);
    });
}

#[test]
fn arrays_travel_beside_handles() {
    among(2, 1, async |cx: Context| {
        let table = cx.share(vec![0.5; 10]);
        let sums = async |_, (table, one, two): (Shared<Vec<f64>>, Vec<u64>, Vec<u64>)| {
            (table.len(), one.iter().sum::<u64>(), two.iter().sum::<u64>())
        };
        for (one, two) in
            [(3, 3), (4000, 0), (0, 5000), (4000, 5000), (100_000, 0), (100_000, 4000)]
        {
            let argument = (table.clone(), vec![1; one], vec![1; two]);
            let found = cx.spawn_at(Pe::new(1), sums, argument).await;
            assert_eq!(found, Ok((10, one as u64, two as u64)));
        }
    });
}

#[test]
fn a_handle_travels_only_with_a_task() {
    among(2, 1, async |cx: Context| {
        let table = cx.share(7_u64);
        let make = async |cx: Context, ()| cx.share(7_u64);
        let refused = cx.spawn_at(Pe::new(1), make, ()).await.map(|_| ());
        assert!(matches!(refused, Err(TaskError::Codec { .. })), "{refused:?}");
        let told = cx.tell(Pe::new(1), async |_, _: Shared<u64>| {}, table.clone());
        assert!(matches!(told, Err(TaskError::Codec { .. })), "{told:?}");
        let read = async |_, table: Shared<u64>| *table;
        assert_eq!(cx.spawn_at(Pe::new(1), read, table.clone()).await, Ok(7));
        assert!(ultramarine_runtime::wire::encode(&table).is_err(), "no task would keep it alive");
    });
}

#[test]
fn a_value_that_cannot_be_decoded_ends_the_task() {
    #[derive(Serialize)]
    struct Broken;
    impl<'de> Deserialize<'de> for Broken {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("broken")
        }
    }
    among(2, 1, async |cx: Context| {
        let broken = cx.share(Broken);
        for _ in 0..2 {
            let read = async |_, _: Shared<Broken>| 7;
            let refused = cx.spawn_at(Pe::new(1), read, broken.clone()).await;
            assert!(matches!(refused, Err(TaskError::Codec { .. })), "{refused:?}");
        }
    });
}

async fn add(_: Context, (a, b): (Remote<Vec<u64>>, Remote<Vec<u64>>)) -> Vec<u64> {
    let (a, b) = (a.get().await.expect("it is made"), b.get().await.expect("it is made"));
    a.iter().zip(&*b).map(|(a, b)| a + b).collect()
}

#[test]
fn remote_values_are_made_from_each_other() {
    among(PES, 1, async |cx: Context| {
        for place in 0..PES {
            let [one, other] = [1, 2]
                .map(|pe| cx.remote(Pe::new(pe), async |_, n: u64| vec![n; 1000], u64::from(pe)));
            // All of them are spawned before the first is there.
            let sum = cx.remote(Pe::new(place), add, (one.clone(), other));
            let more = cx.remote(Distance::ONE, add, (sum.clone(), one));
            assert_eq!(more.get().await, Ok(Arc::new(vec![4; 1000])));
            assert_eq!(sum.get().await, Ok(Arc::new(vec![3; 1000])));
        }
    });
}

#[test]
fn remote_values_leave_with_their_last_handle() {
    counted!(Value, COUNT);
    among(PES, 1, async |cx: Context| {
        let make = async |_, n: u64| Value::new(n);
        let read = async |_, value: Remote<Value>| value.get().await.map(|value| value.0);
        for pe in 0..PES {
            let value = cx.remote(Pe::new(pe), make, 7);
            let read = (0..PES).map(|pe| cx.spawn_at(Pe::new(pe), read, value.clone()));
            for read in read.collect::<Vec<_>>() {
                assert_eq!(read.await, Ok(Ok(7)));
            }
            drop(value);
            eventually("all copies go", || COUNT.alive.load(SeqCst) == 0);
            // Its value is not waited for.
            drop(cx.remote(Pe::new(pe), make, 7));
            cx.spawn_at(Pe::new(pe), async |_, ()| {}, ()).await.expect("it does nothing");
            eventually("it goes", || COUNT.alive.load(SeqCst) == 0);
        }
    });
}

#[test]
fn who_takes_a_value_has_it_alone() {
    type Value = Remote<Vec<u64>>;
    async fn make(_: Context, n: u64) -> Vec<u64> {
        vec![n; 3]
    }
    async fn take(_: Context, value: Value) -> Result<Option<Vec<u64>>, TaskError> {
        value.take().await.map(|value| Arc::try_unwrap(value).ok())
    }
    among(3, 1, async |cx: Context| {
        let [root, maker, other] = [0, 1, 2].map(Pe::new);
        let alone = Ok(Ok(Some(vec![7; 3])));
        for _ in 0..200 {
            assert_eq!(cx.spawn_at(root, take, cx.remote(root, make, 7)).await, alone);
        }
        let value = cx.remote(maker, make, 7);
        assert_eq!(cx.spawn_at(maker, take, value.clone()).await, alone);
        let lost = TaskError::ValueLost { pe: maker };
        assert_eq!(cx.spawn_at(maker, take, value).await, Err(lost));
        // What another has fetched stays there.
        let value = cx.remote(maker, make, 7);
        let fetch = async |_, value: Value| value.get().await.map(|value| value.len());
        assert_eq!(cx.spawn_at(other, fetch, value.clone()).await, Ok(Ok(3)));
        assert_eq!(cx.spawn_at(maker, take, value.clone()).await, alone);
        assert_eq!(cx.spawn_at(maker, take, value).await, alone);
        assert!(cx.shared_count() < 100, "of 200 values");
        let left = async |cx: Context, ()| cx.shared_count();
        for pe in [maker, other] {
            while cx.spawn_at(pe, left, ()).await != Ok(0) {
                cx.sleep(Duration::from_millis(1)).await;
            }
        }
    });
}

#[test]
fn who_waits_for_a_value_that_cannot_be_made_hears_why() {
    among(PES, 1, async |cx: Context| {
        for pe in 0..PES {
            let none = cx.remote(Pe::new(pe), async |_, ()| -> Vec<u64> { panic!("none") }, ());
            let why = none.get().await.expect_err("it cannot be made");
            assert!(matches!(why, TaskError::Panicked { .. }), "{why}");
            let use_it = async |_, none: Remote<Vec<u64>>| none.get().await.map(|_| ());
            for user in 0..PES {
                let used = cx.spawn_at(Pe::new(user), use_it, none.clone()).await;
                assert_eq!(used.and_then(|used| used), Err(why.clone()));
            }
        }
        for pe in (0..PES).map(Pe::new) {
            let left = cx.spawn_at(pe, async |cx: Context, ()| cx.shared_count(), ());
            assert_eq!(left.await, Ok(0), "{pe}");
        }
        let nowhere = cx.remote(Pe::new(PES), async |_, ()| 7, ()).get().await;
        assert!(matches!(nowhere, Err(TaskError::NoSuchPe { .. })), "{nowhere:?}");
    });
}

#[test]
fn tasks_that_wait_for_a_value_are_taken_by_others_when_it_is_there() {
    static RELEASE: AtomicBool = AtomicBool::new(false);
    static BEGUN: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    among(3, 1, async |cx| {
        let make = async |_, n: u64| {
            eventually("the thief has stolen", || RELEASE.load(SeqCst));
            vec![n]
        };
        let value = cx.remote(Pe::new(2), make, 7);
        // The maker and the root steal nothing meanwhile.
        let busy =
            cx.spawn_fn(Distance::ZERO, |()| eventually("release", || RELEASE.load(SeqCst)), ());
        cx.sleep(Duration::from_millis(20)).await;
        let task = async |cx: Context, value: Remote<Vec<u64>>| {
            BEGUN[cx.pe().index()].store(true, SeqCst);
            eventually("two PEs run them", || BEGUN.iter().filter(|b| b.load(SeqCst)).count() > 1);
            value.get().await.map(|value| value[0])
        };
        let tasks: Vec<_> = (0..4).map(|_| cx.spawn(Distance::ONE, task, value.clone())).collect();
        // The maker's task, and two of these.
        until(&cx, || cx.away() >= 3).await;
        cx.sleep(Duration::from_millis(50)).await;
        RELEASE.store(true, SeqCst);
        for task in tasks {
            assert_eq!(task.await.expect("it does not fail"), Ok(7));
        }
        busy.await.expect("it does not fail");
    });
}

#[test]
fn who_waits_for_a_value_leaves_tasks_to_those_that_have_it() {
    const TASKS: u32 = 2000;
    static STOLEN: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicU32 = AtomicU32::new(0);
    #[derive(Serialize)]
    struct Slow;
    impl<'de> Deserialize<'de> for Slow {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            eventually("the owner does most of them", || DONE.load(SeqCst) > TASKS * 3 / 4);
            <()>::deserialize(from).map(|()| Slow)
        }
    }
    // One worker waits, while the other goes on stealing.
    among(2, 2, async |cx| {
        let value = cx.share(Slow);
        let task = |_: Shared<Slow>| {
            std::thread::sleep(Duration::from_micros(50));
            DONE.fetch_add(1, SeqCst);
        };
        let tasks = (0..TASKS).map(|_| cx.spawn_fn(Distance::ONE, task, value.clone()));
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("it does not fail");
        }
        // After that it steals as before.
        let again = async |cx: Context, ()| {
            STOLEN.fetch_or(cx.pe() == Pe::new(1), SeqCst);
            eventually("the other PE steals again", || STOLEN.load(SeqCst));
        };
        let tasks = (0..8).map(|_| cx.spawn(Distance::ONE, again, ()));
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("it does not fail");
        }
    });
}
