//! How jobs whose PEs are threads of this process end, and how they do not begin.

use crate::common::{LANES, on_both_lanes, pes, toil};
use futures_util::FutureExt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::{Error, JobError, LaneKind, Options, StartError, Topology};
use ultramarine_testkit::{bounded, racks};

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
            matches!(
                &error,
                Error::Job(JobError::MainPanicked(text)) if text == "main is out of ideas"
            ),
            "{error}"
        );
        assert_eq!(error.to_string(), "the main task panicked: main is out of ideas");
    }
}

#[test]
fn a_main_task_that_panics_before_it_begins_ends_the_job_too() {
    for lane in LANES {
        let main = |cx: Context| {
            assert!(cx.pes() > 3, "main wants more than {} PEs", cx.pes());
            async { Ok(()) }
        };
        let error = bounded(move || pes(3, lane).run(main)).expect_err("it panicked");
        assert_eq!(error.to_string(), "the main task panicked: main wants more than 3 PEs");
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

/// Waits for a task that waits for a task, and so on; the last one oversleeps.
fn chain(cx: Context, links: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if links == 0 {
            return oversleep(cx, ()).await;
        }
        let next = cx.spawn(Distance::ZERO, chain, links - 1).await;
        assert_eq!(next, Err(TaskError::ShuttingDown));
    })
}

#[test]
fn a_long_chain_of_waiting_tasks_ends_without_a_deep_stack() {
    let main = async |cx: Context| {
        drop(cx.spawn(Distance::ZERO, chain, 100_000));
        cx.sleep(Duration::from_millis(500)).await;
        Ok(())
    };
    bounded(move || pes(1, LANES[0]).run(main)).expect("it ends");
}

#[test]
fn a_future_awaited_after_the_end_is_an_error() {
    fn hears<T: std::fmt::Debug>(waiting: impl Future<Output = std::result::Result<T, TaskError>>) {
        let heard = waiting.now_or_never().expect("no future waits for ever");
        assert!(matches!(heard, Err(TaskError::ShuttingDown)), "{heard:?}");
    }
    for count in [1, 3] {
        let kept = Arc::new(OnceLock::new());
        let keeper = kept.clone();
        let main = async move |cx: Context| {
            let elsewhere = cx.remote(Pe::new(count - 1), async |_, n: u64| vec![n], 7);
            let _ = keeper.set((cx.clone(), elsewhere, cx.new_key()));
            Ok(())
        };
        bounded(move || pes(count, LANES[0]).run(main)).expect("the job ends");
        let (cx, elsewhere, key) = kept.get().expect("main has put it there");
        hears(elsewhere.get());
        hears(cx.remote(cx.pe(), async |_, n: u64| n, 7).get());
        hears(cx.shared_async(*key, async || 7));
        hears(cx.mailbox::<u64>(*key).receive(cx.pe()));
        hears(cx.mailbox::<u64>(*key).receive_any());
        hears(cx.spawn(Distance::ONE, async |_, n: u64| n, 7));
    }
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
    assert!(with("max_hop", "3").contains("the settings are max_fish, "));
    assert!(with("message_bytes_max", "10").contains("from 4096 to 4294967295 bytes"));
    assert!(with("shutdown_grace", "500000000000years").contains("at most a day"));
    assert!(with("fish_deadline", "0s").contains("more than zero"));
    let zero = refusal(Options::default().pes(2).threads(0));
    assert!(zero.contains("at least one worker thread"), "{zero}");
    let many = refusal(Options::default().pes(2).threads(1_000_000));
    assert!(many.contains("at most 1024 worker threads"), "{many}");
    let many = refusal(Options::default().pes(5000));
    assert!(many.contains("at most 2048 PEs"), "{many}");
    let none = refusal(Options::default().pes(0));
    assert!(none.contains("at least one PE"), "{none}");
    let mpi = refusal(Options::default().pes(2).lane(LaneKind::Mpi));
    assert!(mpi.contains("needs a launcher"), "{mpi}");
}

#[test]
fn a_topology_file_or_interface_that_is_not_there_is_refused_by_name() {
    use clap::Parser;
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        options: Options,
    }
    let refusal =
        |flag, value| refusal(Flags::parse_from(["test", "--pes", "2", flag, value]).options);
    let text = refusal("--topology", "/nowhere/topology.toml");
    assert!(text.contains("cannot read the topology file /nowhere/topology.toml"), "{text}");
    let text = refusal("--interface", "nope");
    assert!(text.contains("no network interface of this host is `nope`"), "{text}");
}

#[test]
fn the_hierarchy_is_the_one_given() {
    let job = Options::default().places(racks(&[2, 2], 2)).threads(1);
    let main = async |cx: Context| {
        let expected = Topology::new(&racks(&[2, 2], 2), &[1; 8]).expect("consistent");
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
