//! Maps as they are built, in whole jobs of threads: the arguments of functions, the results, and
//! that unwanted tasks are cancelled.

use crate::common::job;
use futures_util::StreamExt;
use futures_util::future::Either;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use ultramarine::Shared;
use ultramarine::prelude::*;
use ultramarine::skeletons::push_divide_and_conquer;
use ultramarine_testkit::{eventually, racks};

#[test]
fn a_function_may_have_a_table_or_the_context() {
    job(racks(&[2, 1], 1), async |cx| {
        let (one, half) = (Distance::ONE, Distance::ONE.half());
        let table: Vec<u64> = (0..1000).map(|n| n * n).collect();
        let looked_up = |table: &Vec<u64>, n: usize| table[n] + 1;
        let expected: Vec<u64> = table.iter().map(|square| square + 1).collect();
        let maps = || map_with(table.clone(), looked_up, 0..1000);
        assert_eq!(maps().run(&cx).await?, expected);
        assert_eq!(maps().chunks(7).within(half).run(&cx.supervised()).await?, expected);
        assert_eq!(maps().two_level(one).slices(9).run(&cx).await?, expected);
        assert_eq!(maps().two_level(one).relaxed().chunks(10).run(&cx).await?, expected);
        assert_eq!(maps().push().run(&cx).await?, expected);
        let deep = async |cx: Context, table: Shared<Vec<u64>>, n: usize| {
            let again = async |_, (table, n): (Shared<Vec<u64>>, usize)| table[n] + 1;
            cx.spawn(Distance::ONE, again, (table, n)).await
        };
        let results = map_async_with(table.clone(), deep, 0..1000).chunks(100).run(&cx).await?;
        assert_eq!(results.into_iter().collect::<Result<Vec<_>, _>>()?, expected);
        let places = map_async(async |cx: Context, _: u32| cx.pe(), 0..30).push().run(&cx).await?;
        assert_eq!(places.into_iter().collect::<HashSet<_>>().len(), 3);
        Ok(())
    });
}

#[test]
fn results_are_reduced_in_order() {
    job(racks(&[2, 1], 1), async |cx| {
        let (none, join) = (String::new, |a: String, b: String| a + &b);
        let digits: String = (0..100).map(|n: u32| n.to_string()).collect();
        let maps = || map(|n: u32| n.to_string(), 0..100);
        assert_eq!(maps().reduce(none, join, &cx).await?, digits);
        assert_eq!(maps().chunks(7).push().reduce(none, join, &cx).await?, digits);
        assert_eq!(
            maps().chunks(7).two_level(Distance::ONE).reduce(none, join, &cx).await?,
            digits
        );
        let sum = map(|n: u64| n, 0..100).slices(9).reduce(|| 0, |a, b| a + b, &cx).await?;
        assert_eq!(sum, 4950);
        let nothing = map(|n: u32| n.to_string(), 0..0).reduce(none, join, &cx).await?;
        assert_eq!(nothing, "");
        Ok(())
    });
}

#[test]
fn the_first_error_ends_a_map() {
    job(racks(&[2, 1], 1), async |cx| {
        static RUN: AtomicU32 = AtomicU32::new(0);
        fn check(n: u32) -> std::result::Result<u32, String> {
            if n < 1000 { Ok(n) } else { Err(format!("{n} is too much")) }
        }
        let right = map(check, 0..1000).chunks(30).try_run(&cx).await?;
        assert_eq!(right, Ok((0..1000).collect()));
        let slow = async |cx: Context, n: u32| {
            RUN.fetch_add(1, SeqCst);
            cx.sleep(Duration::from_millis(1)).await;
            check(n)
        };
        let wrong = map_async(slow, (990..50_000).rev()).try_run(&cx.supervised()).await?;
        assert!(wrong.expect_err("most are").ends_with("is too much"));
        let run = RUN.load(SeqCst);
        assert!(run < 40_000, "{run} were run though the first was wrong");
        Ok(())
    });
}

/// A task that begins and never ends by itself.
async fn wait_for_ever(_: Context, count: &'static AtomicU32) {
    struct Stopped(&'static AtomicU32);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    count.fetch_add(1, SeqCst);
    let _stopped = Stopped(count);
    std::future::pending::<()>().await;
}

#[test]
fn what_is_dropped_is_cancelled() {
    job(racks(&[2, 1], 1), async |cx| {
        static RUNNING: AtomicU32 = AtomicU32::new(0);
        let wait = async |cx: Context, _: u32| wait_for_ever(cx, &RUNNING).await;
        for supervised in [false, true] {
            let cx = if supervised { cx.supervised() } else { cx.clone() };
            {
                let mut stream = pin!(map_async(wait, 0..).window(30).stream(&cx));
                let none = cx.timeout(Duration::from_millis(50), stream.next()).await;
                assert!(none.is_err());
                eventually("they have begun", || RUNNING.load(SeqCst) > 0);
            }
            all_stopped(&cx, &RUNNING).await;
            let whole = map_async(wait, 0..30).push().run(&cx);
            assert!(cx.timeout(Duration::from_millis(50), whole).await.is_err());
            all_stopped(&cx, &RUNNING).await;
            let levels = map_async(wait, 0..30).two_level(Distance::ONE).run(&cx);
            let first = select(levels, cx.sleep(Duration::from_millis(50))).await;
            assert!(matches!(first, Either::Right(())));
            all_stopped(&cx, &RUNNING).await;
            let mut tasks = JoinSet::new().window(3);
            while !tasks.is_full() {
                tasks.spawn(&cx, Pe::new(tasks.len() as u32), wait, 0);
            }
            tasks.abort_all();
            while let Some(result) = tasks.next().await {
                assert_eq!(result, Err(TaskError::Cancelled));
            }
            all_stopped(&cx, &RUNNING).await;
        }
        Ok(())
    });
}

async fn all_stopped(cx: &Context, running: &'static AtomicU32) {
    let stopped = async {
        while running.load(SeqCst) > 0 {
            cx.sleep(Duration::from_millis(1)).await;
        }
    };
    cx.timeout(Duration::from_secs(30), stopped).await.expect("they are stopped");
}

#[test]
fn the_first_of_several_counts() {
    job(racks(&[1, 1], 1), async |cx| {
        let after = async |cx: Context, millis: u64| {
            cx.sleep(Duration::from_millis(millis)).await;
            millis
        };
        let first = race([60_000, 5, 70_000].map(|millis| cx.spawn_at(Pe::new(1), after, millis)));
        assert_eq!(first.await, Some(Ok(5)));
        assert_eq!(race(Vec::<std::future::Ready<()>>::new()).await, None);
        Ok(())
    });
}

/// The sum of what a table has from one place to another.
fn sum() -> impl Algorithm<Problem = (Shared<Vec<u64>>, usize, usize), Solution = u64> {
    DivideAndConquer::new(
        |(_, begin, end): &(_, usize, usize)| end - begin < 10,
        |(table, begin, end): (Shared<Vec<u64>>, _, _)| table[begin..end].iter().sum(),
        |(table, begin, end)| {
            let middle = begin.midpoint(*end);
            [(table.clone(), *begin, middle), (table.clone(), middle, *end)]
        },
        |_, [left, right]| left + right,
    )
}

#[test]
fn maps_may_share_a_value() {
    job(racks(&[2, 1], 1), async |cx| {
        let table = cx.share((0..100).map(|n| n * n).collect::<Vec<u64>>());
        for round in 0..3 {
            let entry = |table: &Vec<u64>, (n, plus): (usize, u64)| table[n] + plus;
            let squares = map_shared(&table, entry, (0..100).map(|n| (n, round))).chunks(7);
            let expected: Vec<_> = (0..100).map(|n| n * n + round).collect();
            assert_eq!(squares.run(&cx).await, Ok(expected));
        }
        Ok(())
    });
}

#[test]
fn parts_of_a_division_may_share_a_value() {
    job(racks(&[2, 1], 1), async |cx| {
        let all = (cx.share((0..1000).collect::<Vec<u64>>()), 0, 1000);
        assert_eq!(fork_divide_and_conquer(sum(), all.clone()), 499_500);
        let pushed = push_divide_and_conquer(&cx, |_| Distance::ONE, sum(), all.clone()).await;
        assert_eq!(pushed, Ok(499_500));
        let stolen = par_divide_and_conquer(&cx, |_| Distance::ONE, sum(), all).await;
        assert_eq!(stolen, Ok(499_500));
        Ok(())
    });
}
