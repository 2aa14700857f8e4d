//! Distributed tables in jobs whose processes are killed.
#![cfg(feature = "mpi")]

use crate::common::job::{die, kill, run, run_restartable};
use crate::common::launcher::{is_well_over_each_lane, over_each_lane};
use futures_util::future::{join_all, try_join};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use ultramarine::prelude::*;
use ultramarine::skeletons::table::{TableError, TableRef, table};

const KEYS: u64 = 500;

/// How many rounds of updates this process has seen done.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

/// Kills the process of a PE once so many rounds are done.
async fn kill_at(cx: &Context, round: u64, pe: Pe) -> Result<(), TableError> {
    while ROUNDS.load(Relaxed) < round {
        cx.sleep(Duration::from_millis(1)).await;
    }
    kill(cx, pe).await;
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "keys may be of any type")]
fn add(_: &u64, sum: &mut Option<u64>, more: u64) -> u64 {
    *sum.insert(sum.unwrap_or(0) + more)
}

/// Adds to each key in each of some rounds; what is done twice, or not at all, shows at once.
async fn count(cx: &Context, copies: usize, rounds: u64) -> Result<(), TableError> {
    let sums = table::<u64, u64>(cx, "sums").copies(copies).open()?;
    for round in 1..=rounds {
        let got = sums.update_all(add, (0..KEYS).map(|key| (key, key))).await?;
        assert!(got.into_iter().eq((0..KEYS).map(|key| round * key)), "round {round}");
        let new = sums.insert_all_if_absent((0..2 * KEYS).map(|key| (key, key))).await?;
        assert!(new.into_iter().eq((0..2 * KEYS).map(|key| round == 1 && key >= KEYS)));
        ROUNDS.store(round, Relaxed);
    }
    assert_eq!(sums.len().await?, 2 * KEYS);
    Ok(())
}

#[test]
fn owners_and_copies_die_one_after_another() {
    is_well_over_each_lane(5, async |cx| {
        let die = async {
            for (round, pe) in [(50, 3), (100, 1), (150, 4)] {
                kill_at(&cx, round, Pe::new(pe)).await?;
            }
            Ok(())
        };
        try_join(count(&cx, 1, 200), die).await?;
        assert_eq!(cx.dead(), 3);
        Ok(())
    });
}

#[test]
fn owners_and_copies_die_at_once() {
    is_well_over_each_lane(5, async |cx| {
        let die = async {
            let all = [1, 2, 4].map(|pe| kill_at(&cx, 50, Pe::new(pe)));
            futures_util::future::try_join_all(all).await
        };
        try_join(count(&cx, 3, 100), die).await?;
        Ok(())
    });
}

#[test]
fn what_is_lost_is_an_error_that_names_the_table() {
    let main = async |cx: Context| {
        let die = async {
            let both = [1, 2].map(|pe| kill_at(&cx, 20, Pe::new(pe)));
            futures_util::future::try_join_all(both).await
        };
        let error = try_join(count(&cx, 0, u64::MAX), die).await.unwrap_err();
        let TableError::Lost { table, dead, holders: 1 } = &error else { panic!("{error}") };
        assert!(table == "sums" && (1..=2).contains(dead), "{error}");
        Ok(())
    };
    over_each_lane(3, || run(main)).for_each(|(_, ended)| ended.is_well());
}

/// Kills the processes of PEs at one moment. None of them does anything any more once the first has
/// died.
async fn kill_at_once(cx: &Context, pes: &[Pe]) {
    let die_at = async |_: Context, at: SystemTime| {
        std::thread::sleep(at.duration_since(SystemTime::now()).unwrap_or_default());
        die();
    };
    let at = SystemTime::now() + Duration::from_millis(300);
    let killed = pes.iter().map(|pe| cx.spawn_at(*pe, die_at, at));
    for (pe, killed) in pes.iter().zip(join_all(killed).await) {
        assert_eq!(killed, Err(TaskError::Lost { pe: *pe }));
    }
}

#[test]
fn what_all_copies_are_lost_of_is_an_error_that_names_the_table() {
    let main = async |cx: Context| {
        let die = async {
            while ROUNDS.load(Relaxed) < 20 {
                cx.sleep(Duration::from_millis(1)).await;
            }
            kill_at_once(&cx, &[1, 2, 3].map(Pe::new)).await;
            Ok(())
        };
        let error = try_join(count(&cx, 1, u64::MAX), die).await.unwrap_err();
        let text = |dead| {
            format!(
                "the table `sums` has lost a part: {dead} PEs have died, and each entry was held \
                 by 2 (more `copies` outlive more)"
            )
        };
        assert!([2, 3].map(text).contains(&error.to_string()), "{error}");
        Ok(())
    };
    over_each_lane(4, || run(main)).for_each(|(_, ended)| ended.is_well());
}

/// What was inserted before the root died is there for the next one.
#[test]
fn a_table_outlives_the_root() {
    let main = async |cx: Context| {
        let words = table::<u64, u64>(&cx, "words").open()?;
        let insert = async |cx: Context, (words, from): (TableRef<u64, u64>, u64)| {
            let entries = (from..from + 1000).map(|n| (n, n + 1));
            words.on(&cx)?.insert_all_if_absent(entries).await.map(drop)
        };
        if cx.attempt() == 1 {
            for pe in 0..cx.pes() {
                let argument = (words.reference(), u64::from(pe) * 1000);
                cx.spawn_at(Pe::new(pe), insert, argument).await??;
            }
            die();
        }
        let all = u64::from(cx.pes()) * 1000;
        assert_eq!(words.len().await?, all);
        let got = words.get_all(0..all).await?;
        assert!(got.into_iter().eq((0..all).map(|n| Some(n + 1))));
        Ok(())
    };
    over_each_lane(3, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}

/// The next root may not open it with other types, copies or memory: that would be another table.
#[test]
fn the_next_root_is_told_what_a_table_was_opened_with() {
    let main = async |cx: Context| {
        if cx.attempt() == 1 {
            let words = table::<u64, u64>(&cx, "words").memory_max(1 << 20).open()?;
            // All PEs have parts of it once this is done.
            words.insert_all_if_absent((0..100).map(|n| (n, n))).await?;
            die();
        }
        let types = table::<u64, u32>(&cx, "words").memory_max(1 << 20).open().unwrap_err();
        let text = "the table `words` is open with (u64, u64), not with (u64, u32)";
        assert_eq!(types.to_string(), text);
        let options = table::<u64, u64>(&cx, "words").copies(0).open().unwrap_err();
        let text = "the table `words` is open with `copies` 1 and `memory_max` 1048576, not with \
                    `copies` 0 and no `memory_max`";
        assert_eq!(options.to_string(), text);
        let words = table::<u64, u64>(&cx, "words").memory_max(1 << 20).open()?;
        assert_eq!(words.len().await?, 100);
        Ok(())
    };
    over_each_lane(3, || run_restartable(main)).for_each(|(_, ended)| ended.is_well());
}

/// Tasks on all PEs insert and die; what they do again inserts nothing twice.
#[test]
fn tasks_that_are_done_again_insert_once() {
    is_well_over_each_lane(4, async |cx| {
        let found = table::<u64, u64>(&cx, "found").open()?;
        let insert = async |cx: Context, (found, from): (TableRef<u64, u64>, u64)| {
            std::thread::sleep(Duration::from_millis(2));
            let entries = (from..from + 20).map(|n| (n % 1000, n % 1000));
            found.on(&cx)?.insert_all_if_absent(entries).await.map(drop)
        };
        let die = async {
            cx.sleep(Duration::from_millis(100)).await;
            kill(&cx, Pe::new(2)).await;
            Ok(())
        };
        let tasks = async {
            let all = (0..400)
                .map(|n| cx.supervised().spawn(Distance::ONE, insert, (found.reference(), n * 10)));
            for task in all.collect::<Vec<_>>() {
                task.await??;
            }
            Ok::<(), TableError>(())
        };
        try_join(tasks, die).await?;
        let got = found.get_all(0..1000).await?;
        assert!(got.into_iter().eq((0..1000).map(Some)));
        assert_eq!(found.len().await?, 1000);
        Ok(())
    });
}
