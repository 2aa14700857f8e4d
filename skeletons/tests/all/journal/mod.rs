//! Skeletons with journals: what is computed again, and what is refused.
//!
//! | file | what |
//! |---|---|
//! | `mod` | maps |
//! | `search` | searches |
//! | `divide` | divide and conquer |

mod divide;
mod search;

use crate::common::job;
use futures_util::future::join;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use ultramarine::Result;
use ultramarine::prelude::*;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure, inspect};
use ultramarine_runtime::executor::Portable;
use ultramarine_runtime::wire::{decode, encode};
use ultramarine_testkit::racks;

/// How often each test's function was called. The PEs are threads of this process.
static CALLS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// The number of calls since the last question.
fn calls(test: usize) -> u64 {
    CALLS[test].swap(0, SeqCst)
}

/// How many tasks have ended since the first question.
async fn ended(cx: &Context) -> std::result::Result<u64, TaskError> {
    Ok(cx.statistics().await?.ended.values().sum())
}

/// A journal for one test, in a folder that is removed in the end.
fn journal() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("squares.journal");
    (folder, path)
}

/// Opens a journal, and reads what the records hold, by the first positions.
fn open<V: Portable>(path: &Path, identity: &Identity) -> (Journal, Vec<(u64, V)>) {
    let mut records = Vec::new();
    let builds = Builds::default();
    let opened = Journal::open(path, identity, builds, OnFailure::Warn, |positions, bytes| {
        records.push((positions.start, decode(bytes.expect("no build drops any"))?));
        Ok(())
    });
    (opened.expect("no other has it").0, records)
}

/// What the records of a journal hold, by their first positions.
fn records<V: Portable>(path: &Path) -> Vec<(u64, V)> {
    open(path, &inspect(path).expect("it is a journal").identity).1
}

/// Begins a journal anew with those of its records that have one of these positions. Then it does
/// not say which build has computed them.
fn keep_only<V: Portable>(path: &Path, positions: impl Fn(u64) -> bool) {
    let identity = inspect(path).expect("it is a journal").identity;
    let (_, records) = open::<V>(path, &identity);
    std::fs::remove_file(path).expect("it is there");
    let (journal, _) = open::<V>(path, &identity);
    for (first, value) in records.iter().filter(|(first, _)| positions(*first)) {
        journal.append(*first..first + 1, &encode(value).expect("it was decoded"));
    }
}

/// A call is refused because of its journal, with this text.
#[track_caller]
fn refused<T: Debug>(result: Result<T, JournalError>, told: &str) {
    let text = result.expect_err(told).to_string();
    assert!(text.contains(told), "`{told}` is not in {text}");
}

#[test]
fn what_is_in_the_journal_is_not_computed_again() {
    job(racks(&[2, 1], 1), async |cx| {
        let square = |n: u64| {
            CALLS[0].fetch_add(1, SeqCst);
            n * n
        };
        let expected: Vec<u64> = (0..1000).map(|n| n * n).collect();
        let (_folder, path) = journal();
        let squares = || map(square, 0..1000);
        assert_eq!(squares().chunks(7).journal(&path).run(&cx).await?, expected);
        assert_eq!(calls(0), 1000);
        // How the items are spread makes no difference.
        assert_eq!(squares().push().journal(&path).run(&cx.supervised()).await?, expected);
        assert_eq!(squares().slices(3).journal(&path).required().run(&cx).await?, expected);
        assert_eq!(calls(0), 0);
        // The end of a crash: the last record is torn, and one of 7 items is lost with it.
        let bytes = std::fs::read(&path)?;
        std::fs::write(&path, &bytes[..bytes.len() - 3])?;
        assert_eq!(squares().chunks(2).journal(&path).run(&cx).await?, expected);
        assert!((1..=7).contains(&calls(0)));
        // A byte in the middle: its record's items are computed again.
        let mut bytes = std::fs::read(&path)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes)?;
        assert_eq!(squares().journal(&path).run(&cx).await?, expected);
        assert!((1..=7).contains(&calls(0)));
        Ok(())
    });
}

#[test]
fn what_is_in_the_journal_counts_as_ended() {
    job(racks(&[2, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let squares = || map(|n: u64| n * n, 0..60).journal(&path);
        let expected = squares().run(&cx).await?;
        keep_only::<Vec<u64>>(&path, |first| first < 40);
        let before = ended(&cx).await?;
        assert_eq!(squares().run(&cx).await?, expected);
        assert_eq!(ended(&cx).await? - before, 60);
        Ok(())
    });
}

#[test]
fn a_window_limits_the_tasks_however_their_results_are_taken() {
    static RUNNING: AtomicU64 = AtomicU64::new(0);
    static MOST: AtomicU64 = AtomicU64::new(0);
    job(racks(&[2, 1], 1), async |cx| {
        let nap = async |cx: Context, n: u64| {
            MOST.fetch_max(RUNNING.fetch_add(1, SeqCst) + 1, SeqCst);
            cx.sleep(Duration::from_millis(2)).await;
            RUNNING.fetch_sub(1, SeqCst);
            n
        };
        let naps = || map_async(nap, 0..50).window(4);
        let all: Vec<u64> = (0..50).collect();
        let (_folder, path) = journal();
        assert_eq!(naps().journal(&path).run(&cx).await?, all);
        assert_eq!(naps().chunks(3).run(&cx).await?, all);
        assert_eq!(naps().two_level(Distance::ONE).run(&cx).await?, all);
        assert_eq!(naps().slices(9).reduce(|| 0, |a, b| a + b, &cx).await?, 49 * 25);
        let most = MOST.swap(0, SeqCst);
        assert!((2..=4).contains(&most), "{most} at a time");
        // Without one they are all begun.
        assert_eq!(map_async(nap, 0..50).run(&cx).await?, all);
        assert!(MOST.load(SeqCst) > 4);
        Ok(())
    });
}

#[test]
fn what_came_before_a_failure_is_kept() {
    job(racks(&[1, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let fragile = |n: u64| {
            let call = CALLS[1].fetch_add(1, SeqCst);
            assert!(call != 60, "the sixty-first call fails");
            n + 1
        };
        let numbers = || map(fragile, 0..100).journal(&path).run(&cx);
        let error = numbers().await.expect_err("one call fails");
        assert!(matches!(error, JournalError::Task(TaskError::Panicked { .. })), "{error}");
        assert!(calls(1) > 60);
        assert_eq!(numbers().await?, (1..=100).collect::<Vec<u64>>());
        let again = calls(1);
        assert!(again < 60, "{again} of 100 were computed again");
        Ok(())
    });
}

#[test]
fn parts_of_a_sum_are_kept() {
    job(racks(&[2, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let cube = |table: &Vec<u64>, n: usize| {
            CALLS[2].fetch_add(1, SeqCst);
            table[n] * n as u64
        };
        let table: Vec<u64> = (0..500).map(|n| n * n).collect();
        let expected: u64 = (0..500).map(|n| n * n * n).sum();
        let sum = async |table: Vec<u64>| {
            let cubes = map_with(table, cube, 0..500).chunks(10).journal(&path);
            cubes.reduce(|| 0, |a, b| a + b, &cx).await
        };
        assert_eq!(sum(table.clone()).await?, expected);
        assert_eq!((calls(2), sum(table.clone()).await?, calls(2)), (500, expected, 0));
        // The largest cube is no part of this journal.
        let products = map_with(table.clone(), cube, 0..500).journal(&path);
        refused(products.reduce(|| 0, u64::max, &cx).await, "its function is");
        refused(sum([&table[1..], &[7]].concat()).await, "its input differs");
        assert_eq!(calls(2), 0);
        Ok(())
    });
}

#[test]
fn a_journal_of_another_map_is_refused_and_stays_as_it_is() {
    job(racks(&[1], 1), async |cx| {
        let (folder, path) = journal();
        let square = |n: u64| n * n;
        map(square, 0..10).journal(&path).run(&cx).await?;
        let before = std::fs::read(&path)?;
        for (error, told) in [
            (map(square, 0..11).journal(&path).run(&cx).await, "it is for 10 items, and not 11"),
            (map(square, 1..11).journal(&path).run(&cx).await, "its input differs"),
            (map(|n: u64| n, 0..10).journal(&path).run(&cx).await, "its function is"),
        ] {
            refused(error, told);
        }
        assert_eq!(std::fs::read(&path)?, before);
        let nowhere = folder.path().join("missing/squares.journal");
        refused(map(square, 0..10).journal(nowhere).run(&cx).await, "there is no folder");
        Ok(())
    });
}

#[test]
fn a_journal_that_cannot_be_written_ends_only_who_requires_it() {
    job(racks(&[1, 1], 1), async |cx| {
        let (folder, _) = journal();
        // No file system takes such a name.
        let path = folder.path().join("j".repeat(300));
        let squares = || map(|n: u64| n * n, 0..100).journal(&path);
        let error = squares().required().run(&cx).await.expect_err("it cannot be made");
        assert!(matches!(error, JournalError::Open(_)), "{error}");
        let expected: Vec<u64> = (0..100).map(|n| n * n).collect();
        assert_eq!(squares().run(&cx).await?, expected);
        Ok(())
    });
}

/// Though no result comes any more.
#[test]
fn a_journal_that_is_moved_away_ends_only_who_requires_it() {
    job(racks(&[1, 1], 1), async |cx| {
        let (folder, path) = journal();
        let moved = folder.path().join("moved");
        let wait = async |cx: Context, n: u64| {
            let is_over = || CALLS[5].load(SeqCst) > 0;
            while n >= 5 && !is_over() {
                cx.sleep(Duration::from_millis(5)).await;
            }
            n
        };
        let move_away = async || {
            let has_some = || inspect(&path).is_ok_and(|found| found.report.done.count() == 5);
            while !has_some() {
                cx.sleep(Duration::from_millis(5)).await;
            }
            std::fs::rename(&path, &moved)
        };
        let numbers = || map_async(wait, 0..10).journal(&path);
        let (ended, renamed) = join(numbers().required().run(&cx), move_away()).await;
        renamed?;
        refused(ended, "was moved away by another program");

        let first = async || {
            move_away().await?;
            CALLS[5].store(1, SeqCst);
            std::io::Result::Ok(())
        };
        let (ended, renamed) = join(numbers().run(&cx), first()).await;
        renamed?;
        assert_eq!(ended?, (0..10).collect::<Vec<u64>>());
        Ok(())
    });
}

#[test]
fn results_of_another_build_are_kept_refused_or_computed_anew() {
    job(racks(&[1, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let square = |n: u64| {
            CALLS[4].fetch_add(1, SeqCst);
            n * n
        };
        let squares = |others| map(square, 0..100).journal(&path).other_builds(others).run(&cx);
        let expected: Vec<u64> = (0..100).map(|n| n * n).collect();
        squares(OtherBuilds::Refuse).await?;
        assert_eq!((squares(OtherBuilds::Refuse).await?, calls(4)), (expected.clone(), 100));
        // Now it is not known which build has computed these 30 results.
        keep_only::<Vec<u64>>(&path, |n| n < 30);
        refused(squares(OtherBuilds::Refuse).await, "of 30 items from another build");
        assert_eq!((squares(OtherBuilds::Keep).await?, calls(4)), (expected.clone(), 70));
        assert_eq!((squares(OtherBuilds::Keep).await?, calls(4)), (expected.clone(), 0));
        assert_eq!((squares(OtherBuilds::Anew).await?, calls(4)), (expected.clone(), 30));
        assert_eq!((squares(OtherBuilds::Refuse).await?, calls(4)), (expected, 0));
        Ok(())
    });
}

#[test]
fn two_maps_share_no_journal() {
    job(racks(&[1, 1], 1), async |cx| {
        let (_folder, path) = journal();
        let slow = async |cx: Context, n: u64| {
            CALLS[3].fetch_add(1, SeqCst);
            cx.sleep(Duration::from_millis(20)).await;
            n
        };
        let numbers = || map_async(slow, 0..4).journal(&path).run(&cx);
        let (one, other): (Result<_, JournalError>, Result<_, JournalError>) =
            join(numbers(), numbers()).await;
        let (found, error) = match (one, other) {
            (Ok(found), Err(error)) | (Err(error), Ok(found)) => (found, error),
            both => panic!("one of them holds it: {both:?}"),
        };
        assert_eq!(found, [0, 1, 2, 3]);
        assert!(error.to_string().contains("is in use"), "{error}");
        assert_eq!(calls(3), 4);
        Ok(())
    });
}
