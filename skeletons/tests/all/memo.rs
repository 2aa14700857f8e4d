//! Divide and conquer with a memo in whole jobs.

use crate::common::{job_with_workers, on_all_hierarchies};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ultramarine::Place;
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{TableRef, table};

const SIDE: u64 = 12;

/// The number of problems that were combined, for each test that counts them.
static COMBINED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// A corner of a grid.
type Corner = (u64, u64);

/// The number of ways along a grid from one corner to the other, with no step back.
fn ways<const TEST: usize>() -> impl Algorithm<(), Problem = Corner, Solution = u64> {
    DivideAndConquer::new(
        |(x, y): &Corner| *x == 0 || *y == 0,
        |_| 1,
        |(x, y)| [(x - 1, *y), (*x, y - 1)],
        |_, [left, below]| {
            COMBINED[TEST].fetch_add(1, Relaxed);
            left + below
        },
    )
}

/// C(2n, n).
fn all_ways(side: u64) -> u64 {
    (1..=side).fold(1, |ways, n| ways * (side + n) / n)
}

#[test]
fn each_problem_is_solved_once() {
    on_all_hierarchies(async |cx: Context| {
        COMBINED[0].store(0, Relaxed);
        let known = table(&cx, "ways").open()?;
        let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<0>(), (SIDE, SIDE));
        let solution = problem.memo(&known, |corner| Some(*corner)).run(&cx).await?;
        assert_eq!(solution, all_ways(SIDE));
        assert_eq!(COMBINED[0].load(Relaxed), SIDE * SIDE);
        assert_eq!(known.len().await?, SIDE * SIDE);
        // What is known is not solved again.
        let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<0>(), (SIDE, SIDE - 1));
        let solution = problem.memo(&known, |corner| Some(*corner)).run(&cx).await?;
        assert_eq!((solution, COMBINED[0].load(Relaxed)), (all_ways(SIDE) / 2, SIDE * SIDE));
        Ok(())
    });
}

#[test]
fn problems_without_a_key_are_solved_without_the_table() {
    for is_pushed in [false, true] {
        job_with_workers(2, vec![Place::default(); 3], async move |cx: Context| {
            let known = table(&cx, "ways").open()?;
            let key = |(x, y): &Corner| (x + y > 12).then_some((*x, *y));
            let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<2>(), (12, 12));
            let problem = if is_pushed { problem.push() } else { problem };
            assert_eq!(problem.memo(&known, key).run(&cx).await?, all_ways(12));
            let keyed = (1..=12).flat_map(|x| (1..=12).map(move |y| x + y));
            assert_eq!(known.len().await?, keyed.filter(|sum| *sum > 12).count() as u64);
            let small = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<2>(), (6, 6));
            assert_eq!(small.memo(&known, key).run(&cx).await?, all_ways(6));
            assert_eq!(known.get((6, 6)).await?, None);
            Ok(())
        });
    }
}

#[test]
fn a_full_table_keeps_no_more() {
    job_with_workers(1, vec![Place::default(); 2], async |cx: Context| {
        let known = table(&cx, "ways").copies(0).memory_max(500).open()?;
        let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<2>(), (8, 8));
        let solution = problem.memo(&known, |corner| Some(*corner)).run(&cx).await?;
        assert_eq!(solution, all_ways(8));
        assert!((1..8 * 8).contains(&known.len().await?));
        Ok(())
    });
}

/// Several PEs ask for the same at once.
#[test]
fn many_that_ask_at_once_get_the_same() {
    on_all_hierarchies(async |cx: Context| {
        COMBINED[1].store(0, Relaxed);
        let known = table(&cx, "ways").open()?;
        let ask = async |cx: Context, known: TableRef<Corner, u64>| {
            let known = known.on(&cx)?;
            let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways::<1>(), (9, 9));
            problem.memo(&known, |corner| Some(*corner)).run(&cx).await
        };
        let tasks = (0..cx.pes()).map(|pe| cx.spawn_at(Pe::new(pe), ask, known.reference()));
        for task in tasks.collect::<Vec<_>>() {
            assert_eq!(task.await??, all_ways(9));
        }
        assert_eq!(COMBINED[1].load(Relaxed), 81);
        Ok(())
    });
}

#[test]
fn a_panic_ends_all_that_wait() {
    job_with_workers(1, vec![Place::default(); 3], async |cx: Context| {
        let known = table(&cx, "ways").open()?;
        let broken = DivideAndConquer::new(
            |n: &u64| *n == 0,
            |_| 1_u64,
            |n| [n - 1, n - 1],
            |n, [one, other]| if n == 5 { panic!("five is broken") } else { one + other },
        );
        let problem = divide_and_conquer(|_: &u64| Distance::ONE, broken, 9);
        let error = problem.memo(&known, |n| Some(*n)).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("five is broken"), "{error}");
        Ok(())
    });
}
