//! `merge_sort` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it that test says so and passes).

use crate::common::{MERGE_SORT, SKELETONS, SKELETONS_OF_ROOT};
#[cfg(feature = "mpi")]
use ultramarine_testkit::run;

/// What a sort of the first 200,000 numbers comes to, however many tasks there are.
const DIGEST: i64 = -8_329_805_337_914_376_081;

#[test]
fn every_skeleton_on_every_lane_sorts() {
    for lane in ["memory", "tcp"] {
        for skeleton in SKELETONS.into_iter().chain(SKELETONS_OF_ROOT) {
            let flags = "--numbers 200000 --tasks 7 --threads 1 --pes 3 --supervised";
            let flags = format!("{flags} --lane {lane} --skeleton {skeleton}");
            assert_eq!(MERGE_SORT.result(&flags), DIGEST, "{lane} {skeleton}");
        }
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    MERGE_SORT.refuses(&[
        ("--numbers 0", "'--numbers <N>': 0 is not in 1..=1000000000"),
        ("--numbers -5", "'--numbers <N>'"),
        ("--tasks 0", "'--tasks <K>': 0 is not in 1..=10000000"),
        ("--set single_copy=perhaps", "true or false"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn ranks_sort_whether_they_copy_from_each_other_or_not() {
    for lane in ["mpi", "tcp"] {
        for single_copy in ["true", "false"] {
            let flags = format!(
                "--numbers 200000 --tasks 7 --threads 1 --lane {lane} --json \
                 --set single_copy={single_copy}"
            );
            let Some(mut command) = MERGE_SORT.launched(3, &flags) else { return };
            assert_eq!(run(&mut command).report()["result"], DIGEST, "{lane} {single_copy}");
        }
    }
}

mod runs {
    use ultramarine_examples::programs::merge_sort::{SortedRun, merge};
    use ultramarine_examples::random;

    #[test]
    fn merging_is_sorting() {
        let mut random = random(7);
        let parts: Vec<Vec<u64>> =
            (0..9).map(|n| (0..n * 10).map(|_| random()).collect()).collect();
        let mut all = parts.concat();
        all.sort_unstable();
        let runs: Vec<SortedRun> = parts.into_iter().map(SortedRun::of).collect();
        assert!(merge(&runs).eq(all));
    }

    #[test]
    fn a_change_is_seen() {
        let mut run = SortedRun::of((0..1000).rev().collect());
        assert!(run.is_whole());
        run.numbers[500] += 1;
        assert!(!run.is_whole());
    }
}
