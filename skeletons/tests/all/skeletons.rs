//! Every map skeleton, in whole jobs of threads: the results of the sequential map, in its order,
//! for any size, number of PEs and hierarchy; the number of tasks, and the PEs that run them.

use crate::common::{here, job, on_all_hierarchies};
use futures_util::StreamExt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use ultramarine::prelude::*;
use ultramarine::skeletons::{
    par_map_2level_scheme, par_map_chunked, par_map_sliced, push_map_chunked, push_map_sliced,
    shares,
};
use ultramarine::{Result, Topology};
use ultramarine_testkit::{eventually, racks};

fn collatz(n: u64) -> (u64, u32) {
    let step = |m: &u64| Some(if m.is_multiple_of(2) { m / 2 } else { 3 * m + 1 });
    let steps = std::iter::successors(Some(n + 1), step).take_while(|m| *m != 1).count();
    (n, steps as u32)
}

/// The results of a stream, in order.
async fn streamed<A, R>(
    cx: &Context,
    f: impl Fn(A) -> R + ultramarine::Stateless,
    items: Vec<A>,
) -> Result<Vec<R>, TaskError>
where
    A: ultramarine::Portable,
    R: ultramarine::Portable,
{
    let mut results = Vec::new();
    let mut stream = pin!(par_map_stream(&cx.supervised(), 5, f, items));
    while let Some(result) = stream.next().await {
        results.push(result?);
    }
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The results of all skeletons for these items.
async fn by_all<A, R>(
    cx: &Context,
    f: impl Fn(A) -> R + ultramarine::Stateless,
    items: Vec<A>,
) -> Vec<Result<Vec<R>, TaskError>>
where
    A: ultramarine::Portable + Clone,
    R: ultramarine::Portable,
{
    let (half, one) = (Distance::ONE.half(), Distance::ONE);
    vec![
        par_map(cx, f, items.clone()).await,
        push_map(cx, f, items.clone()).await,
        par_map_local(cx, Distance::ZERO, f, items.clone()).await,
        par_map_local(cx, half, f, items.clone()).await,
        par_map_2level(cx, one, f, items.clone()).await,
        par_map_2level(cx, half, f, items.clone()).await,
        par_map_2level_relaxed(cx, one, f, items.clone()).await,
        par_map_2level_relaxed(cx, Distance::ZERO, f, items.clone()).await,
        par_map_2level_scheme(cx, one, Distance::ZERO, f, items.clone()).await,
        par_map_chunked(cx, 7, f, items.clone()).await,
        par_map_chunked(&cx.supervised(), 0, f, items.clone()).await,
        par_map_sliced(cx, 4, f, items.clone()).await,
        par_map_sliced(&cx.supervised(), 0, f, items.clone()).await,
        push_map_chunked(&cx.supervised(), 10_000, f, items.clone()).await,
        push_map_sliced(&cx.supervised(), 10_000, f, items.clone()).await,
        par_map(&cx.supervised(), f, items.clone()).await,
        streamed(cx, f, items).await,
    ]
}

#[test]
fn the_results_are_those_of_the_sequential_map() {
    on_all_hierarchies(async |cx| {
        for size in [0, 1, 7, 1000] {
            let expected: Vec<_> = (0..size).map(collatz).collect();
            for (n, result) in by_all(&cx, collatz, (0..size).collect()).await.iter().enumerate() {
                assert_eq!(result.as_ref(), Ok(&expected), "skeleton {n}, size {size}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_stream_takes_as_many_items_as_fit_its_window() {
    job(racks(&[1, 1], 1), async |cx| {
        for window in [0, 1, 8] {
            let taken = AtomicUsize::new(0);
            let items = (0..u64::MAX).inspect(|_| {
                taken.fetch_add(1, Relaxed);
            });
            let mut stream = pin!(par_map_stream(&cx, window, |n: u64| n + 1, items));
            for given in 0..100 {
                let (number, result) = stream.next().await.expect("there are more")?;
                assert_eq!(result, number as u64 + 1);
                assert_eq!(taken.load(Relaxed), given + window.max(1), "{given} given before");
            }
        }
        Ok(())
    });
}

#[test]
fn a_fork_map_may_capture() {
    job(racks(&[1], 1), async |_| {
        let more = [3, 4];
        assert_eq!(fork_map(|n: usize| n + more[n], vec![0, 1]), [3, 5]);
        assert_eq!(fork_map(|n: usize| n, Vec::new()), [0; 0]);
        Ok(())
    });
}

#[test]
fn skeletons_nest_and_may_be_called_from_any_pe() {
    job(racks(&[2, 2], 1), async |cx| {
        let inner =
            async |cx: Context, n: u64| par_map_2level(&cx, Distance::ONE, collatz, 0..n).await;
        for n in 0..cx.pes() {
            let result = cx.spawn_at(Pe::new(n), inner, 100).await??;
            assert_eq!(result, (0..100).map(collatz).collect::<Vec<_>>());
        }
        Ok(())
    });
}

#[test]
fn the_first_error_is_returned() {
    on_all_hierarchies(async |cx| {
        let fails = |n: u64| assert!(n != 5 && n != 23, "item {n} is no good");
        for (n, result) in by_all(&cx, fails, (0..40).collect()).await.into_iter().enumerate() {
            let Err(TaskError::Panicked { message, .. }) = result else {
                panic!("skeleton {n}: {result:?}");
            };
            let messages = ["item 5 is no good", "item 23 is no good"];
            assert!(messages.contains(&message.as_str()), "skeleton {n}: {message}");
            // Without parts, the first is that of the first item.
            assert!(n >= 4 || message == messages[0], "skeleton {n}: {message}");
        }
        // The PEs still work.
        assert_eq!(par_map(&cx, |n: u64| n, 0..9).await?.len(), 9);
        Ok(())
    });
}

/// How many tasks a skeleton starts, and how many of them it places on other PEs.
async fn made<T>(
    cx: &Context,
    skeleton: impl Future<Output = Result<T, TaskError>>,
) -> Result<(u64, u64), TaskError> {
    let before = cx.statistics().await?;
    skeleton.await?;
    let after = cx.statistics().await?;
    Ok((after.tasks - before.tasks, after.placed - before.placed))
}

#[test]
fn each_skeleton_makes_as_many_tasks_as_it_says() {
    job(racks(&[2, 1], 1), async |cx| {
        let (one, half, items) = (Distance::ONE, Distance::ONE.half(), || 0..100);
        let same = |n: u32| n;
        for (skeleton, made, expected) in [
            ("par_map", made(&cx, par_map(&cx, same, items())).await?, (100, 0)),
            ("stream", made(&cx, streamed(&cx, same, items().collect())).await?, (100, 0)),
            ("local", made(&cx, par_map_local(&cx, half, same, items())).await?, (100, 0)),
            // A task more for each part's coordinator.
            ("2level", made(&cx, par_map_2level(&cx, one, same, items())).await?, (102, 1)),
            ("2level near", made(&cx, par_map_2level(&cx, half, same, items())).await?, (102, 1)),
            (
                "2level relaxed",
                made(&cx, par_map_2level_relaxed(&cx, one, same, items())).await?,
                (102, 1),
            ),
            ("chunked", made(&cx, par_map_chunked(&cx, 7, same, items())).await?, (15, 0)),
            ("chunked 0", made(&cx, par_map_chunked(&cx, 0, same, items())).await?, (100, 0)),
            ("sliced", made(&cx, par_map_sliced(&cx, 4, same, items())).await?, (4, 0)),
            ("sliced 0", made(&cx, par_map_sliced(&cx, 0, same, items())).await?, (1, 0)),
            // Every third of them stays.
            ("push_map", made(&cx, push_map(&cx, same, items())).await?, (100, 66)),
            ("push chunked", made(&cx, push_map_chunked(&cx, 7, same, items())).await?, (15, 10)),
            ("push sliced", made(&cx, push_map_sliced(&cx, 4, same, items())).await?, (4, 2)),
        ] {
            assert_eq!(made, expected, "tasks, and those placed elsewhere: {skeleton}");
        }
        Ok(())
    });
}

/// How many of the `items` each part of the machine ran.
fn ran_in_parts(cx: &Context, items: usize, result: &[u32]) -> Vec<(u64, usize)> {
    assert_eq!(result.len(), items);
    let topology = cx.topology();
    let mut parts = Vec::new();
    for (pe, power) in cx.equidistant_basis(Distance::ONE) {
        let part = topology.ball(pe, Distance::ONE.half());
        let ran = result.iter().filter(|ran| part.contains(Pe::new(**ran))).count();
        parts.push((power, ran));
    }
    parts
}

#[test]
fn with_two_levels_each_part_runs_its_share_and_nothing_else() {
    for hosts in [vec![2, 2], vec![1, 3], vec![3, 1], vec![1, 1, 3]] {
        job(racks(&hosts, 1), async |cx| {
            for items in [5, 400, 1003] {
                let power: u64 = (0..cx.pes()).map(|n| cx.topology().power(Pe::new(n))).sum();
                let result =
                    par_map_2level(&cx, Distance::ONE, |_: usize| here(), 0..items).await?;
                for (part, ran) in ran_in_parts(&cx, items, &result) {
                    let share = items as f64 * part as f64 / power as f64;
                    assert!((ran as f64 - share).abs() < 1.0, "{ran} of {items}, not {share}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_relaxed_part_steals_from_another() {
    static STOLEN: AtomicBool = AtomicBool::new(false);
    job(racks(&[1, 1], 1), async |cx| {
        // The even items are the caller's. It waits until the other PE has taken one.
        let who = |item: usize| {
            match (item % 2, here()) {
                (0, 0) => eventually("an item leaves its part", || STOLEN.load(Relaxed)),
                (0, _) => STOLEN.store(true, Relaxed),
                _ => {}
            }
            here()
        };
        assert_eq!(shares(100, &[1, 1])[0], (0..100).step_by(2).collect::<Vec<_>>());
        let result = par_map_2level_relaxed(&cx, Distance::ONE, who, 0..100).await?;
        assert!(result.iter().step_by(2).any(|ran| *ran == 1), "{result:?}");
        Ok(())
    });
}

#[test]
fn a_coordinator_shares_its_items_within_the_second_radius_only() {
    job(racks(&[2, 2], 1), async |cx| {
        let (one, half, zero) = (Distance::ONE, Distance::ONE.half(), Distance::ZERO);
        let who = |_: usize| here();
        let alone = par_map_2level_scheme(&cx, one, zero, who, 0..1000).await?;
        assert!(alone == [0, 2].repeat(500) || alone == [0, 3].repeat(500), "{alone:?}");
        let near = par_map_2level_scheme(&cx, half, zero, who, 0..1000).await?;
        assert_eq!(near, [0, 1].repeat(500));
        Ok(())
    });
}

#[test]
fn pushed_items_are_dealt_out_in_turn() {
    job(racks(&[2, 1], 1), async |cx| {
        let push = async |cx: Context, ()| {
            let who = |_: u32| here();
            let each = push_map(&cx, who, 0..300).await?;
            let chunked = push_map_chunked(&cx, 7, who, 0..300).await?;
            Ok::<_, TaskError>((each, chunked, push_map_sliced(&cx, 4, who, 0..300).await?))
        };
        for caller in 0..cx.pes() {
            let (each, chunked, sliced) = cx.spawn_at(Pe::new(caller), push, ()).await??;
            // By which of the tasks an item is in.
            let dealt = |task: fn(u32) -> u32| -> Vec<u32> {
                (0..300).map(|item| (caller + task(item)) % 3).collect()
            };
            assert_eq!(each, dealt(|item| item));
            assert_eq!(chunked, dealt(|item| item / 7));
            assert_eq!(sliced, dealt(|item| item % 4));
        }
        Ok(())
    });
}

#[test]
fn local_items_stay_within_their_radius() {
    job(racks(&[2, 2], 1), async |cx| {
        let topology: &Topology = cx.topology();
        for radius in topology.radii() {
            let ball = topology.ball(cx.pe(), *radius);
            let result = par_map_local(&cx, *radius, |_: u32| here(), 0..1000).await?;
            assert!(result.iter().all(|ran| ball.contains(Pe::new(*ran))), "{radius}: {result:?}");
        }
        Ok(())
    });
}
