//! Whole jobs whose PEs are threads of this process.

use crate::common::job::until;
use crate::common::{on_both_lanes, on_both_lanes_with, pes, toil};
use futures_util::future::BoxFuture;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Options, Result, Shared};
use ultramarine_testkit::{bounded, racks};

#[test]
fn tasks_return_their_values_in_any_radius() {
    on_both_lanes(4, async |cx| {
        for radius in [Distance::ZERO, Distance::ONE.half(), Distance::ONE] {
            let squares: Vec<_> = (0..200u64).map(|n| cx.spawn_fn(radius, |n| n * n, n)).collect();
            for (n, square) in (0..).zip(squares) {
                assert_eq!(square.await?, n * n);
            }
        }
        Ok(())
    });
}

#[test]
fn tasks_spawn_tasks() {
    async fn fibonacci(cx: Context, n: u64) -> Result<u64, TaskError> {
        if n < 2 {
            return Ok(n);
        }
        let one = cx.spawn(Distance::ONE, fibonacci_boxed, n - 1);
        let two = cx.spawn(Distance::ZERO, fibonacci_boxed, n - 2);
        Ok(one.await?? + two.await??)
    }
    // The type of a recursive async function would contain itself.
    fn fibonacci_boxed(cx: Context, n: u64) -> BoxFuture<'static, Result<u64, TaskError>> {
        Box::pin(fibonacci(cx, n))
    }
    on_both_lanes(3, async |cx| {
        assert_eq!(cx.spawn(Distance::ONE, fibonacci_boxed, 15).await??, 610);
        Ok(())
    });
}

#[test]
fn a_placed_task_runs_where_it_was_placed() {
    on_both_lanes(5, async |cx| {
        assert_eq!((cx.pe(), cx.pes(), cx.threads()), (Pe::ROOT, 5, 1));
        for n in (0..cx.pes()).chain((0..cx.pes()).rev()) {
            let there = cx.spawn_at(Pe::new(n), async |cx: Context, n: u32| (cx.pe(), n), n);
            assert_eq!(there.await?, (Pe::new(n), n));
        }
        Ok(())
    });
}

#[test]
fn a_task_for_a_pe_that_does_not_exist_ends_with_an_error() {
    on_both_lanes(2, async |cx| {
        let wrong = cx.spawn_at(Pe::new(2), async |_, ()| (), ());
        assert!(wrong.is_ready());
        assert_eq!(wrong.await, Err(TaskError::NoSuchPe { pe: Pe::new(2), pes: 2 }));
        // And when another PE asks for it.
        let elsewhere = cx.spawn_at(
            Pe::new(1),
            async |cx: Context, ()| cx.spawn_at(Pe::new(u32::MAX), async |_, ()| (), ()).await,
            (),
        );
        let error = elsewhere.await?.expect_err("no such PE");
        assert!(error.to_string().contains("does not exist: the job has 2 PEs"), "{error}");
        Ok(())
    });
}

#[test]
fn a_panic_reaches_the_task_that_awaits() {
    on_both_lanes(2, async |cx| {
        for n in 0..2 {
            let panicked = |message: &str| {
                Err::<(), _>(TaskError::Panicked { pe: Pe::new(n), message: message.to_owned() })
            };
            let early = |_: Context, n: u32| -> std::future::Ready<()> { panic!("early {n}") };
            assert_eq!(cx.spawn_at(Pe::new(n), early, n).await, panicked(&format!("early {n}")));
            let late = async |cx: Context, ()| {
                cx.sleep(Duration::from_millis(1)).await;
                panic!("late")
            };
            assert_eq!(cx.spawn_at(Pe::new(n), late, ()).await, panicked("late"));
            let odd = async |_: Context, ()| std::panic::panic_any(7);
            let odd = cx.spawn_at(Pe::new(n), odd, ()).await;
            assert_eq!(odd, panicked("(its payload is not a text)"));
        }
        let plain = cx.spawn_fn(Distance::ZERO, |n: usize| [1, 2][n], 2).await;
        let error = plain.expect_err("out of bounds").to_string();
        assert!(error.contains("panicked on PE 0") && error.contains("out of bounds"), "{error}");
        // The workers live on.
        assert_eq!(cx.spawn_at(Pe::new(1), async |_, ()| 5, ()).await, Ok(5));
        Ok(())
    });
}

#[test]
fn values_longer_than_a_message_are_refused_by_name() {
    let options = |lane| pes(2, lane).set("message_bytes_max", 4096);
    on_both_lanes_with(options, async |cx| {
        let there = Pe::new(1);
        let argument = cx.spawn_at(there, async |_, text: String| text.len(), "x".repeat(5000));
        let error = argument.await.expect_err("too long");
        assert!(matches!(&error, TaskError::TooLarge { .. }), "{error}");
        let said = error.to_string();
        assert!(said.starts_with("the argument of the task `jobs::threads::"), "{said}");
        assert!(said.contains(", of type `alloc::string::String`, is 5016 bytes"), "{said}");
        assert!(said.contains("raise `message_bytes_max`"), "{said}");

        let result = cx.spawn_at(there, async |_, n: usize| "y".repeat(n), 5000);
        let error = result.await.expect_err("too long");
        let said = error.to_string();
        assert!(said.starts_with("the result of the task `jobs::threads::"), "{said}");

        let shared = (cx.share(vec![7_u64; 1000]), cx.share("x".repeat(5000)));
        let numbers = cx.spawn_at(there, async |_, all: Shared<Vec<u64>>| all[0], shared.0);
        let said = numbers.await.expect_err("too long").to_string();
        assert!(said.contains("value of type `alloc::vec::Vec<u64>` is 8000"), "{said}");
        let text = cx.spawn_at(there, async |_, text: Shared<String>| text.len(), shared.1);
        let said = text.await.expect_err("too long").to_string();
        assert!(said.contains("value of type `alloc::string::String` is"), "{said}");

        // What just fits travels, and so does a result that never leaves the PE.
        let fits = cx.spawn_at(there, async |_, text: String| text, "z".repeat(3900));
        assert_eq!(fits.await?.len(), 3900);
        let stays = cx.spawn_fn(Distance::ZERO, |n: usize| "y".repeat(n), 5000);
        assert_eq!(stays.await?.len(), 5000);
        Ok(())
    });
}

/// Encodes as a number and decodes only if that is even.
#[derive(Debug, PartialEq)]
struct Even(u32);

impl serde::Serialize for Even {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if number % 2 == 0 {
            Ok(Even(number))
        } else {
            Err(serde::de::Error::custom("an odd number is not even"))
        }
    }
}

/// Never encodes.
#[derive(Debug, PartialEq, serde::Deserialize)]
struct Unspeakable;

impl serde::Serialize for Unspeakable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("there are no words for it"))
    }
}

#[test]
fn a_value_that_does_not_decode_or_encode_ends_the_future_with_the_reason() {
    fn is_codec<R: std::fmt::Debug>(result: Result<R, TaskError>, what_: &str, why: &str) {
        match result {
            Err(TaskError::Codec { what, reason }) if what.starts_with(what_) => {
                assert!(reason.contains(why), "{reason}");
                assert!(
                    what.contains("of the task `jobs::threads::a_value_that_does_not_decode"),
                    "{what}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    on_both_lanes(2, async |cx| {
        let there = Pe::new(1);
        let odd = "an odd number is not even";
        assert_eq!(cx.spawn_at(there, async |_, even: Even| even, Even(4)).await, Ok(Even(4)));
        is_codec(cx.spawn_at(there, async |_, _: Even| (), Even(3)).await, "argument", odd);
        is_codec(cx.spawn_at(there, async |_, n| Even(n), 3).await, "result", odd);
        let none = "there are no words for it";
        is_codec(cx.spawn_at(there, async |_, _| (), Unspeakable).await, "argument", none);
        is_codec(cx.spawn_at(there, async |_, ()| Unspeakable, ()).await, "result", none);
        assert_eq!(cx.spawn_fn(Distance::ZERO, Even, 3).await, Ok(Even(3)), "never encoded");
        Ok(())
    });
}

#[test]
fn a_future_can_be_asked_and_dropped() {
    static RAN: AtomicU64 = AtomicU64::new(0);
    on_both_lanes(2, async |cx| {
        RAN.store(0, Ordering::SeqCst);
        let slow = cx.spawn_at(
            Pe::new(1),
            async |cx: Context, ()| {
                cx.sleep(Duration::from_millis(30)).await;
                8
            },
            (),
        );
        assert!(!slow.is_ready(), "it has not even left");
        let mut slow = slow.try_get().expect_err("it comes back");
        let value = loop {
            match slow.try_get() {
                Ok(value) => break value,
                Err(again) => slow = again,
            }
            cx.sleep(Duration::from_millis(1)).await;
        };
        assert_eq!(value, Ok(8));

        for n in 0..100 {
            drop(cx.spawn_fn(Distance::ONE, |()| RAN.fetch_add(1, Ordering::SeqCst), ()));
            drop(cx.spawn_at(Pe::new(n % 2), async |_, ()| RAN.fetch_add(1, Ordering::SeqCst), ()));
        }
        // Dropping a future stops no task.
        until(&cx, || RAN.load(Ordering::SeqCst) == 200).await;
        Ok(())
    });
}

#[test]
fn sleeping_blocks_no_worker_and_wakes_in_order() {
    on_both_lanes(1, async |cx| {
        let start = Instant::now();
        let sleeper = async |cx: Context, millis: u64| {
            cx.sleep(Duration::from_millis(millis)).await;
            millis
        };
        // On the one worker there is, a thousand sleep at a time; one after the other they would
        // sleep for longer than the test may last.
        let sleepers: Vec<_> =
            (0..1000).map(|n| cx.spawn(Distance::ZERO, sleeper, 100 + n % 50)).collect();
        for (n, sleeper) in (0..).zip(sleepers) {
            assert_eq!(sleeper.await?, 100 + n % 50);
        }
        assert!(start.elapsed() >= Duration::from_millis(149));
        cx.sleep(Duration::ZERO).await;
        drop(cx.sleep(Duration::MAX));
        Ok(())
    });
}

#[test]
fn statistics_count_the_tasks_of_all_pes() {
    on_both_lanes(3, async |cx| {
        let before = cx.statistics().await?;
        assert_eq!(before.tasks, 0, "counting is not counted");
        push_map(&cx, |()| toil(1), [(); 30]).await?;
        let placed = cx.statistics().await?;
        assert_eq!(placed.tasks, 30);
        // On a busy machine a thief may sleep through a round.
        for round in 1..=100 {
            par_map(&cx, |()| toil(200), [(); 100]).await?;
            let after = cx.statistics().await?;
            assert_eq!(after.tasks, 30 + round * 100);
            let radii: Vec<_> = after.by_distance.iter().map(|row| row.distance).collect();
            assert_eq!(radii, cx.topology().radii());
            if after.by_distance.iter().any(|row| row.steals > 0) {
                assert!(after.steal_latency.count() > 0);
                return Ok(());
            }
        }
        panic!("nothing was ever stolen");
    });
}

/// Where a task was spawned, and where it ran.
type Way = (Pe, Pe);

async fn report(cx: Context, home: Pe) -> Way {
    toil(20);
    (home, cx.pe())
}

/// Spawns a task of the same radius from wherever it runs itself.
async fn pass_on(cx: Context, (home, radius): (Pe, Distance)) -> Result<[Way; 2], TaskError> {
    let own = (home, cx.pe());
    Ok([own, cx.spawn(radius, report, cx.pe()).await?])
}

async fn roam(cx: Context, radius: Distance) -> Result<Vec<Way>, TaskError> {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        once.push(cx.spawn(radius, report, cx.pe()));
        twice.push(cx.spawn(radius, pass_on, (cx.pe(), radius)));
    }
    let mut ways = Vec::new();
    for (once, twice) in once.into_iter().zip(twice) {
        ways.push(once.await?);
        ways.extend(twice.await??);
    }
    Ok(ways)
}

#[test]
fn radii_are_obeyed_by_thousands_of_tasks() {
    let options = |lane| Options::default().places(racks(&[2, 2], 1)).threads(1).lane(lane);
    on_both_lanes_with(options, async |cx| {
        let mut stolen = 0;
        for radius in cx.topology().radii().to_vec() {
            let parts: Vec<_> =
                (0..cx.pes()).map(|n| cx.spawn_at(Pe::new(n), roam, radius)).collect();
            let mut tasks = 0;
            for part in parts {
                for (home, ran) in part.await?? {
                    assert!(cx.distance(home, ran) <= radius, "{home} to {ran}, {radius}");
                    stolen += u32::from(home != ran);
                    tasks += 1;
                }
            }
            assert_eq!(tasks, cx.pes() * 600);
        }
        assert!(stolen > 0, "nothing was stolen, so nothing was tested");
        Ok(())
    });
}

#[test]
fn plain_rayon_works_inside_tasks() {
    let options = |lane| Options::default().pes(2).threads(2).lane(lane);
    on_both_lanes_with(options, async |cx| {
        let sum = |n: u64| (0..n).into_par_iter().map(|k| k * k).sum::<u64>();
        let expected = |n: u64| (0..n).map(|k| k * k).sum::<u64>();
        let bounds: Vec<u64> = (0..200).map(|n| n * 50).collect();
        let sums = par_map(&cx, sum, bounds.clone()).await?;
        assert_eq!(sums, bounds.into_iter().map(expected).collect::<Vec<_>>());
        let join = |n: u64| rayon::join(|| n + 1, || rayon::join(|| n + 2, || n + 3));
        let joined = push_map(&cx, join, 0..500).await?;
        for (n, joined) in (0..).zip(joined) {
            assert_eq!(joined, (n + 1, (n + 2, n + 3)));
        }
        // On the PE's own threads.
        let named = |()| {
            let name = |_: u32| std::thread::current().name().map(str::to_owned);
            (0..100).into_par_iter().map(name).collect::<Vec<_>>()
        };
        let names = cx.spawn_fn(Distance::ZERO, named, ()).await?;
        let own = |name: &Option<String>| name.as_deref().is_some_and(|n| n.starts_with("pe0-"));
        assert!(names.iter().all(own), "{names:?}");
        Ok(())
    });
}

#[test]
fn a_tasks_work_for_rayon_runs_although_other_tasks_always_wait() {
    let main = async |cx: Context| {
        let done = Arc::new(AtomicU64::new(0));
        let flag = done.clone();
        rayon::spawn(move || flag.store(1, Ordering::SeqCst));
        let mut rounds = 0u64;
        while done.load(Ordering::SeqCst) == 0 {
            rounds += cx.spawn_fn(Distance::ZERO, |n: u64| n, 1).await?;
            assert!(rounds < 10_000_000, "rayon's job waits for ever");
        }
        Ok(())
    };
    bounded(move || Options::default().pes(1).threads(1).run(main)).expect("it ends");
}

#[test]
fn a_hundred_thousand_small_tasks() {
    on_both_lanes(4, async |cx| {
        let results = par_map(&cx, |n: u64| n + 1, 0..100_000).await?;
        assert_eq!(results, (1..=100_000).collect::<Vec<_>>());
        Ok(())
    });
}
