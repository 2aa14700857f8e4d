//! Divide and conquer with a memo in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run_restartable};
use crate::common::launcher::{is_well_over_each_lane, over_each_lane};
use futures_util::future::try_join;
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{Table, TableError, table};

const SIDE: u64 = 14;

type Corner = (u64, u64);

/// The number of ways along a grid. Each corner takes a while.
async fn ways(cx: &Context, known: &Table<Corner, u64>, to: Corner) -> Result<u64, TableError> {
    let ways = DivideAndConquer::new(
        |(x, y): &Corner| *x == 0 || *y == 0,
        |_| 1,
        |(x, y)| [(x - 1, *y), (*x, y - 1)],
        |_, [left, below]: [u64; 2]| {
            std::thread::sleep(Duration::from_millis(2));
            left + below
        },
    );
    let problem = divide_and_conquer(|_: &Corner| Distance::ONE, ways, to);
    problem.memo(known, |corner| Some(*corner)).run(&cx.supervised()).await
}

/// C(2n, n).
fn all_ways(side: u64) -> u64 {
    (1..=side).fold(1, |ways, n| ways * (side + n) / n)
}

#[test]
fn what_the_dead_were_solving_is_solved_again() {
    is_well_over_each_lane(5, async |cx| {
        let known = table(&cx, "ways").open()?;
        let die = async {
            for pe in [3, 1, 4].map(Pe::new) {
                cx.sleep(Duration::from_millis(40)).await;
                kill(&cx, pe).await;
            }
            Ok(())
        };
        let (found, ()) = try_join(ways(&cx, &known, (SIDE, SIDE)), die).await?;
        assert_eq!((found, cx.dead()), (all_ways(SIDE), 3));
        assert_eq!(known.len().await?, SIDE * SIDE);
        Ok(())
    });
}

/// What was solved before the root died is looked up by the next one.
#[test]
fn a_memo_outlives_the_root() {
    let main = async |cx: Context| {
        let known = table(&cx, "ways").open()?;
        if cx.attempt() == 1 {
            ways(&cx, &known, (SIDE - 1, SIDE)).await?;
            die();
        }
        assert_eq!(known.len().await?, SIDE * (SIDE - 1));
        assert_eq!(ways(&cx, &known, (SIDE, SIDE)).await?, all_ways(SIDE));
        Ok(())
    };
    over_each_lane(3, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}
