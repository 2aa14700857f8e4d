//! A PE that is asked for what it owns has heard of the same deaths.

use super::*;
use crate::orbit::{Successors, reachable_batched};
use crate::table::job_of_two;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const STATES: u32 = 100;
const OTHER: Pe = Pe::new(1);

type States = Table<u32, Found<()>>;

/// Awaits what needs all entries, before this PE hears that the other is dead.
async fn with_late_news<T>(cx: &Context, table: &States, asked: impl IntoFuture<Output = T>) -> T {
    let tell = async {
        cx.sleep(Duration::from_millis(5)).await;
        table.take_for_dead(OTHER);
    };
    futures_util::future::join(asked.into_future(), tell).await.0
}

/// A table with states of two levels, of both PEs.
async fn states(cx: &Context) -> States {
    let table = table::<u32, Found<()>>(cx, "states").noting_new().open().unwrap();
    let entries = (0..STATES).map(|n| (n, Found { level: n % 2, origin: () }));
    table.insert_all_if_absent(entries).await.unwrap();
    table
}

#[test]
fn a_level_is_not_repeated_before_the_news() {
    job_of_two(async |cx| {
        let table = states(&cx).await;
        let none = Successors(|(): &(), _: &u32, _: &mut Vec<u32>| {});
        let (states, data) = (table.reference(), cx.share(()));
        let task = LevelTask { states, data, batch: 9, level: 1, from_table: Some(vec![OTHER]) };
        let count = with_late_news(&cx, &table, go_on_from_level(none, cx.clone(), task)).await;
        assert_eq!(count, Ok(50));
    });
}

#[test]
fn levels_are_not_counted_before_the_news() {
    job_of_two(async |cx| {
        let table = states(&cx).await;
        let count = count_levels(cx.clone(), (table.reference(), vec![OTHER]));
        assert_eq!(with_late_news(&cx, &table, count).await, Ok(vec![50, 50]));
    });
}

/// The number of functions that wait.
static WAITING: AtomicU32 = AtomicU32::new(0);

struct Waiting;

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_search_that_is_dropped_ends_its_tasks() {
    job_of_two(async |cx| {
        let wait = async |cx: Context, _: Shared<()>, states: Vec<u32>| {
            WAITING.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting;
            cx.sleep(Duration::from_hours(1)).await;
            drop(waiting);
            Ok(vec![Vec::new(); states.len()])
        };
        let is = async |number| {
            while WAITING.load(Ordering::Relaxed) != number {
                cx.sleep(Duration::from_millis(1)).await;
            }
        };
        let search = Box::pin(reachable_batched(wait, (), 0).run(&cx));
        // What it returns is the search, which is dropped as it is, and not as a task's.
        futures_util::future::select(search, pin!(is(1))).await;
        is(0).await;
    });
}
