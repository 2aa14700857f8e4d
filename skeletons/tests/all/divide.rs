//! Divide and conquer, and map and reduce, in whole jobs of threads: for any hierarchy and any PEs
//! the results are those of a plain recursion; the number of tasks, and how far they go.

use crate::common::{here, job, on_all_hierarchies, stands_still, words};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::{push_divide_and_conquer, push_map_reduce_range_thresh};
use ultramarine_testkit::{eventually, racks};

/// `F(n)` by the book.
fn fibonacci() -> impl Algorithm<Problem = u64, Solution = u64> {
    DivideAndConquer::new(
        |n: &u64| *n < 2,
        |n| n,
        |n| [n - 1, n - 2],
        |_, [one_less, two_less]| {
            assert!(one_less >= two_less, "in order");
            one_less + two_less
        },
    )
}

#[test]
fn all_skeletons_solve_it() {
    on_all_hierarchies(async |cx| {
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
        let expected = fork_divide_and_conquer(words::<0>(), (String::new(), 6));
        assert!(expected.is_sorted() && expected.len() > 20, "{expected:?}");
        let everywhere = |_: &(String, usize)| Distance::ONE;
        let stolen =
            par_divide_and_conquer(&cx, everywhere, words::<0>(), (String::new(), 6)).await;
        assert_eq!(stolen.as_ref(), Ok(&expected));
        let pushed =
            push_divide_and_conquer(&cx, everywhere, words::<0>(), (String::new(), 6)).await;
        assert_eq!(pushed, Ok(expected));
        Ok(())
    });
}

/// The PEs that solve the leaves of a tree of this height.
fn who() -> impl Algorithm<Context, Problem = u32, Solution = Vec<u32>> {
    DivideAndConquer::with_context(
        |_, height: &u32| *height == 0,
        |cx, _| {
            assert_eq!(cx.pe(), Pe::new(here()));
            vec![cx.pe().number()]
        },
        |_, height| [height - 1; 2],
        |_, _, parts| parts.concat(),
    )
}

#[test]
fn parts_stay_within_their_radius() {
    job(racks(&[2, 2], 1), async |cx| {
        let rack = cx.topology().ball(cx.pe(), Distance::ONE.half());
        let near = |_: &u32| Distance::ONE.half();
        let both = |pes: &[u32]| pes.contains(&0) && pes.contains(&1);
        let stolen = par_divide_and_conquer(&cx, near, who(), 10).await?;
        assert!(stolen.iter().all(|pe| rack.contains(Pe::new(*pe))) && both(&stolen), "{stolen:?}");
        let pushed = push_divide_and_conquer(&cx, near, who(), 6).await?;
        assert!(pushed.iter().all(|pe| rack.contains(Pe::new(*pe))) && both(&pushed), "{pushed:?}");
        let nowhere = par_divide_and_conquer(&cx, |_| Distance::ZERO, who(), 6).await?;
        assert_eq!(nowhere, [0; 64]);
        // The last to be placed are of height 5, and have 32 leaves.
        let placed_first = |height: &u32| if *height > 4 { Distance::ONE } else { Distance::ZERO };
        let subtrees = push_divide_and_conquer(&cx, placed_first, who(), 10).await?;
        assert!(subtrees.chunks(32).all(|leaves| leaves.iter().all(|pe| *pe == leaves[0])));
        assert!((0..4).all(|pe| subtrees.contains(&pe)), "{subtrees:?}");
        let placed_far = |height: &u32| far_if_large(*height);
        let subtrees = push_divide_and_conquer(&cx, placed_far, who(), 10).await?;
        assert!(are_each_in_one_rack(&subtrees), "{subtrees:?}");
        assert!((0..4).all(|pe| subtrees.contains(&pe)), "{subtrees:?}");
        Ok(())
    });
}

/// Parts with fewer than 32 leaves stay in their rack.
fn far_if_large(height: u32) -> Distance {
    if height > 4 { Distance::ONE } else { Distance::ONE.half() }
}

/// Whether the leaves of each part of 32 were solved in one rack of two PEs.
fn are_each_in_one_rack(leaves: &[u32]) -> bool {
    leaves.chunks(32).all(|part| part.iter().all(|pe| pe / 2 == part[0] / 2))
}

#[test]
fn parts_are_stolen_from_as_far_as_their_radius_says() {
    static ARRIVED: AtomicBool = AtomicBool::new(false);
    job(racks(&[2, 2], 1), async |cx| {
        // The first rack waits until a part has come to the second.
        let who = DivideAndConquer::new(
            |height: &u32| *height == 0,
            |_| {
                match here() {
                    0 | 1 => eventually("a part leaves its rack", || ARRIVED.load(Relaxed)),
                    _ => ARRIVED.store(true, Relaxed),
                }
                vec![here()]
            },
            |height| [height - 1; 2],
            |_, parts| parts.concat(),
        );
        let radius = |height: &u32| far_if_large(*height);
        let stolen = par_divide_and_conquer(&cx, radius, who, 10).await?;
        assert!(are_each_in_one_rack(&stolen), "{stolen:?}");
        assert!(stolen.iter().any(|pe| *pe > 1), "{stolen:?}");
        Ok(())
    });
}

#[test]
fn only_a_part_that_may_be_stolen_is_a_task() {
    let large = |height: &u32| if *height > 4 { Distance::ONE } else { Distance::ZERO };
    job(racks(&[1, 1], 1), async move |cx| {
        par_divide_and_conquer(&cx, large, who(), 10).await?;
        // The whole, and every second one of the heights 9 to 5; but for those that thieves found
        // taken back.
        let tasks = cx.statistics().await?.tasks;
        assert!((2..=1 + 1 + 2 + 4 + 8 + 16).contains(&tasks), "{tasks} tasks");
        Ok(())
    });
    job(racks(&[1], 1), async move |cx| {
        par_divide_and_conquer(&cx, large, who(), 10).await?;
        assert_eq!(cx.statistics().await?.tasks, 1, "there is no PE to offer any to");
        push_divide_and_conquer(&cx, large, who(), 10).await?;
        assert_eq!(cx.statistics().await?.tasks, 2, "nor to place any at");
        Ok(())
    });
}

/// Each task offers the parts of its first levels, and others only when those are gone.
#[test]
fn most_parts_are_never_tasks() {
    let sum = DivideAndConquer::new(
        |height: &u32| *height == 0,
        |_| 1_u64,
        |height| [height - 1; 2],
        |_, [left, right]| left + right,
    );
    job(racks(&[1, 1], 1), async move |cx| {
        let leaves = par_divide_and_conquer(&cx, |_| Distance::ONE, sum, 16).await?;
        let tasks = cx.statistics().await?.tasks;
        assert!(leaves == 1 << 16 && (9..1 << 14).contains(&tasks), "{tasks} tasks");
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
    job(racks(&[1], 1), async |cx| {
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
fn a_division_that_is_dropped_ends_everywhere() {
    static DIVIDED: AtomicU64 = AtomicU64::new(0);
    let divide = |n: &u64| {
        DIVIDED.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_micros(100));
        [n.wrapping_add(1), n.wrapping_add(2)]
    };
    let endless = DivideAndConquer::new(|_| false, |n| n, divide, |n, _| n);
    job(racks(&[2, 1], 1), async move |cx| {
        for cx in [cx.unsupervised(), cx.supervised()] {
            let stolen = par_divide_and_conquer(&cx, |_| Distance::ONE, endless, 0);
            assert!(cx.timeout(Duration::from_millis(50), stolen).await.is_err());
            stands_still(&cx, &DIVIDED).await;
            let placed = push_divide_and_conquer(&cx, |_| Distance::ONE, endless, 0);
            assert!(cx.timeout(Duration::from_millis(50), placed).await.is_err());
            stands_still(&cx, &DIVIDED).await;
        }
        Ok(())
    });
}

#[test]
fn a_panic_in_a_part_ends_it_all() {
    job(racks(&[2, 1], 1), async |cx| {
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
fn dividing_lets_other_tasks_run() {
    // One thread: other tasks run only in its pauses.
    job(racks(&[1], 1), async |cx| {
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
    on_all_hierarchies(async |cx| {
        let say = |gap: &char, n: u64| format!("{n}{gap}");
        let show_each = |n: u64| format!("{n} ");
        let add = |a: String, b: String| a + &b;
        for range in [0..0, 7..8, 5..105] {
            let range: Range<u64> = range;
            let expected: String = range.clone().map(show_each).collect();
            for threshold in [0, 1, 9, 1000] {
                let (ours, none) = (|| range.clone(), String::new);
                let safe = cx.supervised();
                let all = [
                    par_map_reduce_range_thresh(&cx, threshold, ours(), ' ', none, say, add).await,
                    push_map_reduce_range_thresh(&cx, threshold, ours(), ' ', none, say, add).await,
                    push_map_reduce_range_thresh(&safe, threshold, ours(), ' ', none, say, add)
                        .await,
                    par_map_reduce(&cx, threshold as usize, ours(), none, show_each, add).await,
                ];
                assert!(all.iter().all(|one| one.as_ref() == Ok(&expected)), "{all:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn ranges_are_halved_down_to_the_threshold() {
    static LEAVES: AtomicU32 = AtomicU32::new(0);
    job(racks(&[1, 1], 1), async |cx| {
        for (threshold, leaves) in [(0, 1024), (1, 1024), (100, 16), (1023, 2), (1024, 1)] {
            let none = || u64::from(LEAVES.fetch_add(1, Relaxed) == u32::MAX);
            let (one, sum) = (|(): &(), _| 1, |a: u64, b: u64| a + b);
            par_map_reduce_range_thresh(&cx, threshold, 5..1029, (), none, one, sum).await?;
            assert_eq!(LEAVES.swap(0, Relaxed), leaves, "threshold {threshold}");
        }
        Ok(())
    });
}

#[test]
fn pushed_ranges_are_halved_down_to_the_threshold_or_to_one_pe() {
    job(racks(&[2, 2], 1), async |cx| {
        let mut tasks = 0;
        for (threshold, leaves) in [(0, 4), (1, 4), (16, 4), (31, 4), (32, 2), (63, 2), (64, 1)] {
            let (none, one) = (|| 0, |(): &(), _| 1);
            let sum = |a: u64, b: u64| a + b;
            push_map_reduce_range_thresh(&cx, threshold, 5..69, (), none, one, sum).await?;
            tasks += leaves;
            assert_eq!(cx.statistics().await?.tasks, tasks, "threshold {threshold}");
        }
        Ok(())
    });
}

#[test]
fn items_are_reduced_by_tasks_of_the_size_asked_for() {
    job(racks(&[1, 1], 1), async |cx| {
        let mut tasks = 0;
        for (size, parts) in [(0, 100), (1, 100), (7, 15), (10, 10), (99, 2), (100, 1), (1000, 1)] {
            let sum = |a: u64, b: u64| a + b;
            assert_eq!(par_map_reduce(&cx, size, 0..100, || 0, |n| n, sum).await?, 4950);
            tasks += parts;
            assert_eq!(cx.statistics().await?.tasks, tasks, "size {size}");
        }
        Ok(())
    });
}

#[test]
fn ranges_are_stolen_from_any_distance() {
    static STOLEN: AtomicBool = AtomicBool::new(false);
    job(racks(&[1, 1], 1), async |cx| {
        // The caller waits until the other rack has a part.
        let who = |(): &(), _| {
            match here() {
                0 => eventually("a part of the range is stolen", || STOLEN.load(Relaxed)),
                _ => STOLEN.store(true, Relaxed),
            }
            vec![here()]
        };
        let join = |a: Vec<u32>, b: Vec<u32>| [a, b].concat();
        let ran = par_map_reduce_range_thresh(&cx, 4, 0..64, (), Vec::new, who, join).await?;
        assert!(ran.len() == 64 && ran.contains(&1), "{ran:?}");
        assert!(ran.chunks(4).all(|part| part.iter().all(|pe| *pe == part[0])), "{ran:?}");
        Ok(())
    });
}

#[test]
fn pushed_ranges_are_spread_evenly_and_stay_together() {
    for hosts in [vec![2, 2], vec![2, 1], vec![2, 3]] {
        job(racks(&hosts, 1), async |cx| {
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

/// Problems that have begun, and are not solved.
static OPEN: AtomicU32 = AtomicU32::new(0);
static MOST_OPEN: AtomicU32 = AtomicU32::new(0);

/// `F(n)`, counted.
fn counted() -> impl Algorithm<Problem = u64, Solution = u64> {
    let close = |solution| {
        OPEN.fetch_sub(1, Relaxed);
        solution
    };
    DivideAndConquer::new(
        |n: &u64| *n < 2,
        close,
        |n| {
            MOST_OPEN.fetch_max(OPEN.fetch_add(2, Relaxed), Relaxed);
            [n - 1, n - 2]
        },
        move |_, [one_less, two_less]| close(one_less + two_less),
    )
}

#[test]
fn waiting_tasks_do_not_grow_with_the_problem() {
    /// Each PE has 250 on others, and as many as it places between two turns at the engine; each of
    /// these has begun with parts of parts. (3,000 were open, and 10,000 when other programs took
    /// the cores, so that turns came late; without a limit 23,000.)
    const OPEN_MAX: u32 = 16_000;
    job(racks(&[2, 2], 1), async |cx| {
        assert_eq!(cx.pes(), 4);
        OPEN.store(1, Relaxed);
        let solution = push_divide_and_conquer(&cx, |_| Distance::ONE, counted(), 27).await?;
        assert_eq!((solution, OPEN.load(Relaxed)), (196_418, 0));
        let most = MOST_OPEN.load(Relaxed);
        assert!(most <= OPEN_MAX, "{most} of 635,621 problems were open");
        Ok(())
    });
}
