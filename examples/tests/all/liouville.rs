//! `liouville` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass). The values are those of OEIS A002819.

use crate::common::{LIOUVILLE, SKELETONS, SKELETONS_OF_ROOT};

const LONG: &str = "--upto 1000000 --tasks 60 --threads 1 --pes 3";

#[test]
fn known_values_come_out() {
    for (upto, value) in
        [(1, 1), (2, 0), (10, 0), (100, -2), (1000, -14), (10_000, -94), (1_000_000, -530)]
    {
        let flags = format!("--upto {upto} --tasks 7 --pes 2 --threads 1");
        assert_eq!(LIOUVILLE.result(&flags), value, "L({upto})");
    }
}

#[test]
fn the_default_is_the_sum_up_to_a_hundred_million() {
    let report = LIOUVILLE.report("--skeleton rayon");
    assert_eq!((&report["program"], &report["result"]), (&"liouville".into(), &(-3884).into()));
}

#[test]
fn every_skeleton_on_every_lane_gives_the_sum() {
    for lane in ["memory", "tcp"] {
        for skeleton in SKELETONS.into_iter().chain(SKELETONS_OF_ROOT) {
            for more in ["", "--supervised"] {
                let flags = format!("{LONG} --lane {lane} --skeleton {skeleton} {more}");
                let report = LIOUVILLE.report(&flags);
                assert_eq!(report["result"], -530, "{flags}");
                assert_eq!(report["skeleton"], skeleton);
                let said = (&report["supervised"], &report["replicas"]);
                assert_eq!(said, (&(!more.is_empty()).into(), &0.into()), "{report}");
            }
        }
    }
}

#[test]
fn words_and_hierarchy_are_shown() {
    let flags = "--upto 1000 --pes 2 --threads 1 --show-topology --progress --supervised";
    let texts = ["PE 1: rank 1", "liouville (par-map): -14", "tasks: 100 run"];
    LIOUVILLE.shows(flags, &texts);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    LIOUVILLE.refuses(&[
        ("--upto 0", "'--upto <N>': 0 is not in 1..=1000000000000"),
        ("--upto -5", "'--upto <N>': -5 is not in 1..=1000000000000"),
        ("--upto 1000000000001", "'--upto <N>'"),
        ("--tasks 0", "'--tasks <K>': 0 is not in 1..=10000000"),
        ("--tasks -1", "'--tasks <K>': -1 is not in 1..=10000000"),
        ("--tasks 10000001", "'--tasks <K>': 10000001 is not in 1..=10000000"),
        ("--upto 1000000000000 --tasks 4294967295", "4294967295 is not in 1..=10000000"),
        ("--skeleton fast", "'--skeleton <SKELETON>'"),
        ("--pes 0", "'--pes <P>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_gives_the_sum_on_either_lane() {
    let flags = "--upto 1000000 --tasks 40";
    LIOUVILLE.on_ranks(4, flags, |report| assert_eq!(report["result"], -530));
}

mod sums {
    use ultramarine_examples::programs::liouville::{BLOCK, UPTO_MAX, sum_liouville};

    /// By trial division.
    fn liouville(mut n: u64) -> i64 {
        let (mut sign, mut divisor) = (1, 2);
        while n > 1 {
            if n.is_multiple_of(divisor) {
                n /= divisor;
                sign = -sign;
            } else {
                divisor += 1;
            }
        }
        sign
    }

    #[test]
    fn it_agrees_with_trial_division() {
        let mut sum = 0;
        for n in 1..2000 {
            assert_eq!(sum_liouville(n..n + 1), liouville(n), "{n}");
            sum += liouville(n);
            assert_eq!(sum_liouville(1..n + 1), sum, "{n}");
        }
    }

    #[test]
    fn blocks_join_correctly() {
        let block = BLOCK as u64;
        let whole = sum_liouville(1..3 * block + 7);
        let cut = [1..block - 1, block - 1..2 * block + 1, 2 * block + 1..3 * block + 7];
        assert_eq!(whole, cut.into_iter().map(sum_liouville).sum::<i64>());
    }

    #[test]
    fn the_largest_numbers_are_sieved_correctly() {
        // 999999999989 is the largest prime below 10^12.
        assert_eq!(sum_liouville(999_999_999_989..999_999_999_990), -1);
        assert_eq!(sum_liouville(UPTO_MAX..UPTO_MAX + 1), 1);
        let square = 999_983_u64.pow(2);
        assert_eq!(sum_liouville(square..square + 1), 1);
    }
}
