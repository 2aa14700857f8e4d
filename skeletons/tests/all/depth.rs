//! Problems that are divided more often than a stack can hold. They are solved, and neither a panic
//! nor the job's end overflows the stack.

use crate::common::job;
use futures_util::FutureExt;
use futures_util::future::select;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::push_divide_and_conquer;
use ultramarine::{LaneKind, Options};
use ultramarine_testkit::{bounded, racks};

/// Divides a number as often as it says, the larger part first or last.
fn chain() -> impl Algorithm<Problem = (i64, bool), Solution = i64> {
    DivideAndConquer::new(
        |(n, _): &(i64, bool)| *n <= 0,
        |(n, _)| {
            assert!(n == 0, "there is no such problem");
            0
        },
        |(n, is_first)| {
            let parts = [(n - 1, *is_first), (0, *is_first)];
            if *is_first { parts } else { [parts[1], parts[0]] }
        },
        |_, [a, b]| a + b + 1,
    )
}

/// The same with one part, of which the last panics.
fn panicking_chain() -> impl Algorithm<Problem = i64, Solution = i64> {
    DivideAndConquer::new(
        |n: &i64| *n == 0,
        |_| panic!("there is no such problem"),
        |n| vec![n - 1],
        |_, below| below[0] + 1,
    )
}

#[test]
fn problems_may_be_divided_as_often_as_memory_allows() {
    let (everywhere, here) = (|_: &(i64, bool)| Distance::ONE, |_: &(i64, bool)| Distance::ZERO);
    for deep in [10_000, 100_000] {
        for is_first in [true, false] {
            job(racks(&[1, 1], 1), async move |cx| {
                let problem = (deep, is_first);
                let (cx, safe) = (&cx, &cx.supervised());
                assert_eq!(par_divide_and_conquer(cx, everywhere, chain(), problem).await?, deep);
                assert_eq!(par_divide_and_conquer(safe, here, chain(), problem).await?, deep);
                assert_eq!(push_divide_and_conquer(cx, here, chain(), problem).await?, deep);
                if deep < 100_000 {
                    let pushed = push_divide_and_conquer(cx, everywhere, chain(), problem).await;
                    assert_eq!(pushed?, deep);
                }
                let fork = |problem| fork_divide_and_conquer(chain(), problem);
                assert_eq!(cx.spawn_fn(Distance::ZERO, fork, problem).await?, deep);
                Ok(())
            });
            assert_eq!(fork_divide_and_conquer(chain(), (deep, is_first)), deep);
        }
    }
}

#[test]
fn a_panic_far_below_ends_it_all() {
    job(racks(&[1, 1], 1), async |cx| {
        for deep in [10_000, 100_000] {
            let is_told = |error: Result<_, TaskError>| {
                error.is_err_and(|error| error.to_string().contains("there is no such problem"))
            };
            let anywhere = |_: &i64| Distance::ONE;
            let chain = panicking_chain();
            assert!(is_told(par_divide_and_conquer(&cx, anywhere, chain, deep).await));
            assert!(is_told(push_divide_and_conquer(&cx, anywhere, chain, deep).await));
            let fork = |deep| fork_divide_and_conquer(panicking_chain(), deep);
            assert!(is_told(cx.spawn_fn(Distance::ZERO, fork, deep).await));
        }
        Ok(())
    });
}

#[test]
fn the_job_may_end_while_a_problem_is_divided() {
    for is_first in [true, false] {
        job(racks(&[1, 1], 1), async move |cx| {
            let anywhere = |_: &(i64, bool)| Distance::ONE;
            // Far more than is done when the job ends; the rest is dropped.
            let problem = (i64::MAX, is_first);
            let solution = push_divide_and_conquer(&cx, anywhere, chain(), problem);
            select(solution.boxed(), cx.sleep(Duration::from_millis(300)).boxed()).await;
            Ok(())
        });
    }
}

/// A tree of this height, whose leaves are counted.
fn endless() -> impl Algorithm<Problem = u32, Solution = ()> {
    DivideAndConquer::new(
        |height: &u32| *height == 0,
        |_| {
            LEAVES.fetch_add(1, Ordering::SeqCst);
        },
        |height| [height - 1; 2],
        |_, _: [(); 2]| (),
    )
}

static LEAVES: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_problem_that_is_being_divided_stops_when_the_job_ends() {
    for lane in [LaneKind::Memory, LaneKind::Tcp] {
        let main = async |cx: Context| {
            let before = LEAVES.load(Ordering::SeqCst);
            // It would take a million years.
            let solve = async |cx: Context, ()| {
                par_divide_and_conquer(&cx, |_: &u32| Distance::ZERO, endless(), 70).await
            };
            drop(cx.spawn_at(Pe::new(1), solve, ()));
            while LEAVES.load(Ordering::SeqCst) == before {
                cx.sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        };
        let options = Options::default().pes(2).threads(1).lane(lane);
        bounded(move || options.run(main)).unwrap_or_else(|e| panic!("{lane:?}: {e}"));
    }
    let solved = LEAVES.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(LEAVES.load(Ordering::SeqCst), solved, "nothing of the job is left");
}
