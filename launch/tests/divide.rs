//! Divide and conquer, and map and reduce, in whole jobs of threads: the results of a plain recursion,
//! whatever the hierarchy, whoever does what.

mod common;

use common::hierarchies::{here, hierarchies, job, racks};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::prelude::*;

/// `F(n)` by the book.
fn fibonacci() -> impl Algorithm<Problem = u64, Solution = u64> {
    DivideAndConquer::new(
        |n: &u64| *n < 2,
        |n| n,
        |n| [n - 1, n - 2],
        |_, [one_less, two_less]| one_less + two_less,
    )
}

/// The words over `a` and `b` up to this length, in order: which shows the order of the parts, of
/// which there are 0 to 3.
fn words() -> impl Algorithm<Problem = (String, usize), Solution = Vec<String>> {
    DivideAndConquer::new(
        |(_, length): &(String, usize)| *length == 0,
        |(word, _)| vec![word],
        |(word, length)| {
            let longer = |letter| (format!("{word}{letter}"), length - 1);
            let all = [(word.clone(), 0), longer('a'), longer('b')];
            all.into_iter().take(if word.ends_with("bb") { 0 } else { 3 }).collect::<Vec<_>>()
        },
        |_, parts| parts.concat(),
    )
}

#[test]
fn all_skeletons_solve_it() {
    for places in hierarchies() {
        job(places, async |cx| {
            let ones = |_: &u64| Distance::ONE;
            let halves = |n: &u64| if *n > 10 { Distance::ONE } else { Distance::ONE.half() };
            let near = |n: &u64| if *n > 10 { Distance::ONE } else { Distance::ZERO };
            for n in [0, 1, 2, 15] {
                let expected = fork_divide_and_conquer(fibonacci(), n);
                for result in [
                    par_divide_and_conquer(&cx, ones, fibonacci(), n).await,
                    par_divide_and_conquer(&cx, halves, fibonacci(), n).await,
                    par_divide_and_conquer(&cx.supervised(), near, fibonacci(), n).await,
                    push_divide_and_conquer(&cx, ones, fibonacci(), n).await,
                    push_divide_and_conquer(&cx, halves, fibonacci(), n).await,
                    push_divide_and_conquer(&cx.supervised(), near, fibonacci(), n).await,
                ] {
                    assert_eq!(result, Ok(expected), "F({n})");
                }
            }
            assert_eq!(fork_divide_and_conquer(fibonacci(), 15), 610);
            let expected = fork_divide_and_conquer(words(), (String::new(), 6));
            assert!(expected.is_sorted() && expected.len() > 20, "{expected:?}");
            let everywhere = |_: &(String, usize)| Distance::ONE;
            let stolen = par_divide_and_conquer(&cx, everywhere, words(), (String::new(), 6)).await;
            assert_eq!(stolen.as_ref(), Ok(&expected));
            let pushed =
                push_divide_and_conquer(&cx, everywhere, words(), (String::new(), 6)).await;
            assert_eq!(pushed, Ok(expected));
            Ok(())
        });
    }
}

/// The PEs that solve the leaves of a tree of this height.
fn who() -> impl Algorithm<Problem = u32, Solution = Vec<u32>> {
    DivideAndConquer::new(
        |height: &u32| *height == 0,
        |_| vec![here()],
        |height| [height - 1; 2],
        |_, parts| parts.concat(),
    )
}

#[test]
fn parts_stay_within_their_radius() {
    job(racks(&[2, 2]), async |cx| {
        let rack = cx.topology().ball(cx.pe(), Distance::ONE.half());
        let near = |_: &u32| Distance::ONE.half();
        let both = |pes: &[u32]| pes.contains(&0) && pes.contains(&1);
        let stolen = par_divide_and_conquer(&cx, near, who(), 10).await?;
        assert!(stolen.iter().all(|pe| rack.contains(Pe::new(*pe))) && both(&stolen), "{stolen:?}");
        let pushed = push_divide_and_conquer(&cx, near, who(), 6).await?;
        assert!(pushed.iter().all(|pe| rack.contains(Pe::new(*pe))) && both(&pushed), "{pushed:?}");
        let nowhere = par_divide_and_conquer(&cx, |_| Distance::ZERO, who(), 6).await?;
        assert_eq!(nowhere, [0; 64]);
        let placed_first = |height: &u32| if *height > 4 { Distance::ONE } else { Distance::ZERO };
        let subtrees = push_divide_and_conquer(&cx, placed_first, who(), 8).await?;
        assert!(subtrees.chunks(16).all(|leaves| leaves.iter().all(|pe| *pe == leaves[0])));
        Ok(())
    });
}

fn failing() -> impl Algorithm<Problem = u64, Solution = u64> {
    DivideAndConquer::new(
        |n: &u64| *n < 2,
        |n| {
            assert!(n > 0, "there is no such problem");
            n
        },
        |n| [n - 1, n - 2],
        |_, [one_less, two_less]| one_less + two_less,
    )
}

#[test]
fn a_fork_that_is_dropped_is_not_run() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    job(racks(&[1]), async |cx| {
        let task = async |_: Context, n: u32| {
            RUN.fetch_add(n, Relaxed);
        };
        assert!(matches!(cx.fork(Distance::ONE, task, 1).take_back(), Ok(1)));
        drop(cx.fork(Distance::ONE, task, 10));
        // The only worker runs what waits before this.
        cx.sleep(Duration::from_millis(20)).await;
        assert_eq!(RUN.load(Relaxed), 0);
        Ok(())
    });
}

#[test]
fn a_panic_in_a_part_ends_it_all() {
    job(racks(&[2, 1]), async |cx| {
        // On the caller's own PE it is the caller that panics, as in any call.
        let place = async |cx: Context, ()| {
            par_divide_and_conquer(&cx, |_| Distance::ONE, failing(), 12).await
        };
        let result = cx.spawn_at(Pe::new(1), place, ()).await;
        let messages = [result.as_ref().err(), result.as_ref().ok().and_then(|r| r.as_ref().err())];
        let is_told = |error: &TaskError| error.to_string().contains("there is no such problem");
        assert!(messages.into_iter().flatten().any(is_told), "{result:?}");
        assert_eq!(cx.spawn_fn(Distance::ONE, |n: u64| n, 5).await?, 5);
        Ok(())
    });
}

#[test]
fn who_divides_gives_others_their_turns() {
    // One thread: whatever runs beside it runs in its pauses.
    job(racks(&[1]), async |cx| {
        let beside = async |solution: BoxFuture<'_, Result<u64, TaskError>>| {
            let is_solved = AtomicBool::new(false);
            let solve = async {
                assert_eq!(solution.await, Ok(1_346_269));
                is_solved.store(true, Relaxed);
            };
            let ask = async {
                // It has begun by then, and takes a hundred times as long.
                cx.sleep(Duration::from_millis(1)).await;
                for n in 0..100 {
                    let echo = cx.spawn_at(cx.pe(), async |_: Context, n: u32| n, n);
                    assert_eq!(echo.await, Ok(n));
                }
                assert!(!is_solved.load(Relaxed), "the others came last");
            };
            join(solve, ask).await;
        };
        let (anywhere, here) = (|_: &u64| Distance::ONE, |_: &u64| Distance::ZERO);
        let safe = cx.supervised();
        beside(par_divide_and_conquer(&safe, anywhere, fibonacci(), 31).boxed()).await;
        beside(push_divide_and_conquer(&cx, here, fibonacci(), 31).boxed()).await;
        Ok(())
    });
}

#[test]
fn ranges_are_reduced_in_order() {
    for places in hierarchies() {
        job(places, async |cx| {
            let show = |gap: &char, n: u64| format!("{n}{gap}");
            let show_each = |n: u64| format!("{n} ");
            let join = |a: String, b: String| a + &b;
            for range in [0..0, 7..8, 5..105] {
                let range: Range<u64> = range;
                let expected: String = range.clone().map(show_each).collect();
                for threshold in [0, 1, 9, 1000] {
                    let (ours, none) = (|| range.clone(), String::new);
                    let safe = cx.supervised();
                    let all = [
                        par_map_reduce_range_thresh(&cx, threshold, ours(), ' ', none, show, join)
                            .await,
                        push_map_reduce_range_thresh(&cx, threshold, ours(), ' ', none, show, join)
                            .await,
                        push_map_reduce_range_thresh(
                            &safe,
                            threshold,
                            ours(),
                            ' ',
                            none,
                            show,
                            join,
                        )
                        .await,
                        par_map_reduce(&cx, threshold as usize, ours(), none, show_each, join)
                            .await,
                    ];
                    assert!(all.iter().all(|one| one.as_ref() == Ok(&expected)), "{all:?}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn pushed_ranges_are_spread_evenly_and_stay_together() {
    for hosts in [vec![2, 2], vec![2, 1], vec![2, 3]] {
        job(racks(&hosts), async |cx| {
            let who = |(): &(), n: u64| vec![(n, here())];
            let join = |a: Vec<_>, b: Vec<_>| [a, b].concat();
            let numbers = 60;
            let ran =
                push_map_reduce_range_thresh(&cx, 1, 0..numbers, (), Vec::new, who, join).await?;
            let each = numbers / u64::from(cx.pes());
            let expected: Vec<_> = (0..numbers).map(|n| (n, (n / each) as u32)).collect();
            assert_eq!(ran, expected);
            Ok(())
        });
    }
}

#[test]
fn problems_may_be_divided_thousands_of_times() {
    job(racks(&[1, 1]), async |cx| {
        let chain = || {
            DivideAndConquer::new(
                |n: &u64| *n == 0,
                |n| n,
                |n| [n - 1, 0],
                |_, [below, _]| below + 1,
            )
        };
        let (deep, everywhere) = (5000, |_: &u64| Distance::ONE);
        assert_eq!(fork_divide_and_conquer(chain(), deep), deep);
        assert_eq!(par_divide_and_conquer(&cx, everywhere, chain(), deep).await?, deep);
        assert_eq!(push_divide_and_conquer(&cx, everywhere, chain(), deep).await?, deep);
        Ok(())
    });
}
