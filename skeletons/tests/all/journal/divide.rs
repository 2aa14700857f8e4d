//! Divide and conquer with journals: which parts are solved again.

use super::{ended, journal, keep_only, records, refused};
use crate::common::{job, job_with_workers, on_all_hierarchies, solved, words};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use ultramarine::prelude::*;
use ultramarine_testkit::{eventually, racks};

fn far(_: &(String, usize)) -> Distance {
    Distance::ONE
}

#[test]
fn parts_in_the_journal_are_not_solved_again() {
    on_all_hierarchies(async |cx| {
        let problem = || (String::new(), 7);
        let division = || divide_and_conquer(far, words::<1>(), problem());
        let expected = fork_divide_and_conquer(words::<1>(), problem());
        let all = solved(1);
        assert!(expected.is_sorted() && all > 50, "{all} words: {expected:?}");
        assert_eq!(division().run(&cx).await?, expected);
        assert_eq!(division().push().run(&cx).await?, expected);
        assert_eq!(solved(1), 2 * all);
        // 1 record, some, and more than there are parts.
        for least in [1, 8, 1000] {
            let (_folder, path) = journal();
            let again = || division().journal(&path).records(least);
            assert_eq!(again().run(&cx).await?, expected);
            assert_eq!(solved(1), all);
            let parts = records::<Vec<String>>(&path);
            assert!(parts.len() >= least.min(all as usize), "{} records", parts.len());
            let before = ended(&cx).await?;
            assert_eq!(again().required().run(&cx.supervised()).await?, expected);
            assert_eq!((solved(1), ended(&cx).await? - before), (0, parts.len() as u64));
            // Every other record is lost.
            keep_only::<Vec<String>>(&path, |part| part % 2 == 0);
            assert_eq!(division().push().journal(&path).records(least).run(&cx).await?, expected);
            let lost = parts.iter().filter(|(part, _)| part % 2 == 1);
            assert_eq!(solved(1), lost.map(|(_, words)| words.len() as u64).sum::<u64>());
        }
        Ok(())
    });
}

#[test]
fn the_journal_of_another_problem_is_refused() {
    job(racks(&[1], 1), async |cx| {
        let (_folder, path) = journal();
        let division = |word: &str, length, records| {
            let words = divide_and_conquer(far, words::<2>(), (word.to_owned(), length));
            words.journal(&path).records(records).run(&cx)
        };
        let found = division("", 6, 8).await?;
        let before = std::fs::read(&path)?;
        for (ended, told) in [
            (division("", 7, 8).await, "its input differs"),
            (division("a", 6, 8).await, "its input differs"),
            (division("", 6, 1).await, "items, and not 1"),
        ] {
            refused(ended, told);
        }
        let other = divide_and_conquer(far, words::<1>(), (String::new(), 6)).journal(&path);
        refused(other.records(8).run(&cx).await, "its function is");
        assert_eq!(std::fs::read(&path)?, before);
        solved(2);
        assert_eq!((division("", 6, 8).await?, solved(2)), (found, 0));
        Ok(())
    });
}

#[test]
fn what_was_solved_before_a_failure_is_kept() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // One worker, which solves part after part.
    job(racks(&[1], 1), async |cx| {
        let (_folder, path) = journal();
        let leaves = DivideAndConquer::new(
            |height: &u32| *height == 0,
            |_| {
                let call = CALLS.fetch_add(1, SeqCst);
                assert!(call != 150, "the call fails");
                1
            },
            |height| [height - 1; 2],
            |_, [left, right]: [u64; 2]| left + right,
        );
        let leaves =
            || divide_and_conquer(|_| Distance::ONE, leaves, 8).journal(&path).records(64).run(&cx);
        let error = leaves().await.expect_err("one call fails");
        assert!(matches!(error, JournalError::Task(TaskError::Panicked { .. })), "{error}");
        CALLS.store(1000, SeqCst);
        assert_eq!(leaves().await?, 256);
        // The call failed in the 38th part of four leaves.
        assert_eq!(CALLS.load(SeqCst) - 1000, 256 - 37 * 4);
        Ok(())
    });
}

#[test]
fn what_has_ended_when_a_failure_is_heard_of_is_kept() {
    static SOLVED: AtomicU64 = AtomicU64::new(0);
    static HAS_FAILED: AtomicBool = AtomicBool::new(false);
    job_with_workers(3, racks(&[1], 1), async |cx| {
        let (_folder, path) = journal();
        let leaves = DivideAndConquer::new(
            |(height, _): &(u32, u32)| *height == 0,
            |(_, leaf)| {
                if leaf == 7 && !HAS_FAILED.load(SeqCst) {
                    eventually("six are solved", || SOLVED.load(SeqCst) == 6);
                    HAS_FAILED.store(true, SeqCst);
                    panic!("the last leaf fails");
                }
                SOLVED.fetch_add(1, SeqCst)
            },
            |(height, leaf)| [(height - 1, 2 * leaf), (height - 1, 2 * leaf + 1)],
            |_, [left, right]: [u64; 2]| left + right,
        );
        // The last leaf begins first. The caller begins the first one, and looks at what has ended,
        // when six have been solved and the last one has failed.
        let radius = |&(height, leaf): &(u32, u32)| {
            if (height, leaf) == (0, 0) {
                eventually("it has failed", || HAS_FAILED.load(SeqCst));
                std::thread::sleep(Duration::from_millis(50));
            }
            Distance::ZERO
        };
        let leaves =
            || divide_and_conquer(radius, leaves, (3, 0)).journal(&path).records(8).run(&cx);
        let error = leaves().await.expect_err("one leaf fails");
        assert!(matches!(error, JournalError::Task(TaskError::Panicked { .. })), "{error}");
        let before = SOLVED.load(SeqCst);
        leaves().await?;
        assert!(SOLVED.load(SeqCst) - before <= 2, "the first leaf and the last one");
        Ok(())
    });
}
