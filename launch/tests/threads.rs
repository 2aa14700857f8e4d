//! Whole jobs whose PEs are threads of this process.

mod common;

use common::{LANES, bounded, eventually, pes, racks};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::{Error, JobError, LaneKind, Options, Result, StartError, Topology};

/// Runs `main` on both lanes, with so many PEs.
fn on_both_lanes<F, T>(count: u32, main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    for lane in LANES {
        let main = main.clone();
        bounded(move || pes(count, lane).run(main)).unwrap_or_else(|e| panic!("{lane:?}: {e}"));
    }
}

/// Keeps a worker busy for a while.
fn toil(micros: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

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
    fn fibonacci_boxed(
        cx: Context,
        n: u64,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<u64, TaskError>> + Send>> {
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
fn a_panic_reaches_whoever_awaits_the_task() {
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
fn what_is_longer_than_a_message_is_refused_by_name() {
    for lane in LANES {
        let job = pes(2, lane).set("message_bytes_max", 4096);
        let main = async |cx: Context| {
            let there = Pe::new(1);
            let argument = cx.spawn_at(there, async |_, text: String| text.len(), "x".repeat(5000));
            let error = argument.await.expect_err("too long");
            assert!(matches!(&error, TaskError::TooLarge { what, .. } if what == "argument"));
            assert!(error.to_string().contains("raise `message_bytes_max`"), "{error}");

            let result = cx.spawn_at(there, async |_, n: usize| "y".repeat(n), 5000);
            let error = result.await.expect_err("too long");
            assert!(matches!(&error, TaskError::TooLarge { what, .. } if what == "result"));

            // What just fits travels, and so does a result that never leaves the PE.
            let fits = cx.spawn_at(there, async |_, text: String| text, "z".repeat(3900));
            assert_eq!(fits.await?.len(), 3900);
            let stays = cx.spawn_fn(Distance::ZERO, |n: usize| "y".repeat(n), 5000);
            assert_eq!(stays.await?.len(), 5000);
            Ok(())
        };
        bounded(move || job.run(main)).unwrap();
    }
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
fn what_does_not_decode_or_encode_ends_the_future_with_the_reason() {
    fn is_codec<R: std::fmt::Debug>(result: Result<R, TaskError>, what_: &str, why: &str) {
        match result {
            Err(TaskError::Codec { what, reason }) if what == what_ => {
                assert!(reason.contains(why), "{reason}");
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
        let start = Instant::now();
        while RAN.load(Ordering::SeqCst) < 200 {
            assert!(start.elapsed() < common::PATIENCE, "dropping a future stops no task");
            cx.sleep(Duration::from_millis(1)).await;
        }
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
        drop(cx.sleep(Duration::MAX / 4_000_000_000));
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
    for lane in LANES {
        let job = Options::default().places(racks(1)).threads(1).lane(lane);
        let main = async |cx: Context| {
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
        };
        bounded(move || job.run(main)).unwrap();
    }
}

#[test]
fn plain_rayon_works_inside_tasks() {
    for lane in LANES {
        let job = Options::default().pes(2).threads(2).lane(lane);
        let main = async |cx: Context| {
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
            let own =
                |name: &Option<String>| name.as_deref().is_some_and(|n| n.starts_with("pe0-"));
            assert!(names.iter().all(own), "{names:?}");
            Ok(())
        };
        bounded(move || job.run(main)).unwrap();
    }
}

#[test]
fn a_hundred_thousand_small_tasks() {
    on_both_lanes(4, async |cx| {
        let results = par_map(&cx, |n: u64| n + 1, 0..100_000).await?;
        assert_eq!(results, (1..=100_000).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn tasks_that_still_wait_at_the_end_are_dropped() {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    STARTED.store(0, Ordering::SeqCst);
    on_both_lanes(3, async |cx| {
        let slow = |()| {
            STARTED.fetch_add(1, Ordering::SeqCst);
            toil(500);
        };
        for _ in 0..20_000 {
            drop(cx.spawn_fn(Distance::ONE, slow, ()));
        }
        for n in 0..3 {
            let sleeper = async |cx: Context, ()| cx.sleep(Duration::from_hours(1)).await;
            drop(cx.spawn_at(Pe::new(n), sleeper, ()));
            let waiter = async |cx: Context, ()| {
                cx.spawn_at(Pe::new(0), async |_, ()| std::future::pending::<()>().await, ()).await
            };
            drop(cx.spawn_at(Pe::new(n), waiter, ()));
        }
        Ok(())
    });
    assert!(STARTED.load(Ordering::SeqCst) < 40_000, "they would take ten seconds each time");
}

#[test]
fn a_main_task_that_panics_ends_the_job_with_its_message() {
    for (lane, late) in [(LANES[0], false), (LANES[1], false), (LANES[0], true), (LANES[1], true)] {
        let main = async move |cx: Context| {
            drop(cx.spawn_at(Pe::new(1), async |_, ()| std::future::pending::<()>().await, ()));
            if late {
                cx.sleep(Duration::from_millis(5)).await;
            }
            panic!("main is out of {}", "ideas")
        };
        let error = bounded(move || pes(3, lane).run(main)).expect_err("it panicked");
        assert!(
            matches!(&error, Error::Job(JobError::MainPanicked(text)) if text == "main is out of ideas"),
            "{error}"
        );
        assert_eq!(error.to_string(), "the main task panicked: main is out of ideas");
    }
}

#[test]
fn an_error_of_the_main_task_is_the_jobs() {
    for lane in LANES {
        let error = bounded(move || pes(3, lane).run(async |_| Err(Error::other("no luck"))));
        assert_eq!(error.expect_err("no luck").to_string(), "no luck");
        let main = async |cx: Context| Ok(cx.spawn_at(Pe::new(9), async |_, ()| (), ()).await?);
        let error = bounded(move || pes(3, lane).run(main)).expect_err("no such PE");
        assert!(matches!(error, Error::Task(TaskError::NoSuchPe { .. })), "{error}");
    }
}

async fn oversleep(cx: Context, (): ()) {
    cx.sleep(Duration::from_hours(1)).await;
}

/// Waits for a task there.
async fn wait_for(cx: Context, n: Pe) -> Result<(), TaskError> {
    cx.spawn_at(n, oversleep, ()).await
}

/// Runs many jobs on both lanes and checks that they leave neither threads nor files behind.
fn nothing_is_left_of<F, T>(main: F)
where
    F: Fn(Context) -> T + Clone + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let count = |folder: &str| std::fs::read_dir(folder).expect("on Linux").count();
    let (tasks, files) = ("/proc/self/task", "/proc/self/fd");
    // What is made once for the whole process.
    on_both_lanes(3, main.clone());
    let (tasks_before, files_before) = (count(tasks), count(files));
    for _ in 0..15 {
        on_both_lanes(3, main.clone());
    }
    // A thread that has done its work may take a moment to go.
    eventually("the threads end", || count(tasks) <= tasks_before);
    eventually("the files are closed", || count(files) <= files_before);
}

#[test]
fn many_jobs_one_after_the_other_leave_nothing_behind() {
    nothing_is_left_of(async |cx| {
        assert_eq!(par_map(&cx, |n: u32| n, 0..50).await?.len(), 50);
        // Tasks that are still waiting at the end, for a time or for a task elsewhere.
        for n in (0..3).map(Pe::new) {
            drop(cx.spawn_at(n, oversleep, ()));
            drop(cx.spawn_at(Pe::new((n.number() + 1) % 3), wait_for, n));
        }
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}

#[test]
fn a_task_that_waits_for_one_of_its_own_pe_is_let_go() {
    nothing_is_left_of(async |cx| {
        drop(cx.spawn_at(Pe::new(2), wait_for, Pe::new(2)));
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}

#[test]
fn a_task_that_waits_for_nothing_is_let_go() {
    nothing_is_left_of(async |cx| {
        drop(cx.spawn_at(Pe::new(1), async |_, ()| std::future::pending::<()>().await, ()));
        cx.sleep(Duration::from_millis(2)).await;
        Ok(())
    });
}

#[test]
fn several_jobs_at_a_time_do_not_disturb_each_other() {
    let jobs: Vec<_> = (1..6u64)
        .map(|factor| {
            std::thread::spawn(move || {
                let main = async move |cx: Context| {
                    let items = (0..500).map(move |n| (n, factor));
                    let products = par_map(&cx, |(n, factor)| n * factor, items).await?;
                    assert_eq!(products, (0..500).map(|n| n * factor).collect::<Vec<_>>());
                    Ok(())
                };
                bounded(move || pes(2, LANES[factor as usize % 2]).run(main)).unwrap();
            })
        })
        .collect();
    jobs.into_iter().for_each(|job| job.join().expect("no job fails"));
}

fn refusal(options: Options) -> String {
    let result = bounded(move || options.run(async |_| panic!("the job must not start")));
    match result {
        Err(Error::Start(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let with = |name, value| refusal(Options::default().pes(2).threads(1).set(name, value));
    assert!(with("max_hop", "3").contains("max_hop is not a setting"));
    assert!(with("max_hops", "many").contains("max_hops = `many`"));
    assert!(with("spin", "7").contains("50us"));
    assert!(with("schedule_tasks_max", "0").contains("at least one task"));
    assert!(with("window_frames", "0").contains("window_frames"));
    assert!(with("threads", "3").contains("--threads"));
    assert!(with("threads", "0").contains("at least one worker thread"));
    let zero = refusal(Options::default().pes(2).threads(0));
    assert!(zero.contains("at least one worker thread"), "{zero}");
    let none = refusal(Options::default().pes(0));
    assert!(none.contains("at least one PE"), "{none}");
    let mpi = refusal(Options::default().pes(2).lane(LaneKind::Mpi));
    assert!(mpi.contains("needs a launcher"), "{mpi}");
}

#[test]
fn a_topology_file_that_cannot_be_read_is_refused_by_name() {
    use clap::Parser;
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        options: Options,
    }
    let flags = ["test", "--pes", "2", "--topology", "/nowhere/topology.toml"];
    let text = refusal(Flags::parse_from(flags).options);
    assert!(text.contains("cannot read the topology file /nowhere/topology.toml"), "{text}");
}

#[test]
fn the_hierarchy_is_the_one_given() {
    let job = Options::default().places(racks(2)).threads(1);
    let main = async |cx: Context| {
        let expected = Topology::new(&racks(2), &[1; 8]).expect("consistent");
        assert_eq!(cx.topology().to_string(), expected.to_string());
        let there = async |cx: Context, ()| cx.equidistant_basis(Distance::ONE);
        let basis = cx.spawn_at(Pe::new(5), there, ()).await?;
        assert_eq!(basis[0], (Pe::new(5), 4));
        assert_eq!(basis.len(), 2);
        Ok(())
    };
    bounded(move || job.run(main)).unwrap();
}

#[test]
fn the_error_type_tells_start_from_job() {
    let error = Error::from(StartError::SaidElsewhere);
    assert_eq!(format!("{error:?}"), "the job did not start: see what rank 0 says");
}
