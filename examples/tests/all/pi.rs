//! `pi` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names (without
//! it those tests say so and pass).

use crate::common::PI;
use std::f64::consts::PI as EXACT;

#[test]
fn the_result_is_the_same_bits_on_any_number_of_pes() {
    for (intervals, ranks) in [(1, 8), (10, 8), (1000, 3), (1_000_000, 8)] {
        let flags = format!("--intervals {intervals} --ranks {ranks} --threads 1");
        let expected = PI.result(&format!("{flags} --pes 1"));
        for pes in 2..=4 {
            assert_eq!(PI.result(&format!("{flags} --pes {pes}")), expected, "{flags} {pes}");
        }
        let far = |pi: serde_json::Value| (pi.as_f64().unwrap() - EXACT).abs();
        let bound = 0.1 / f64::from(intervals).powi(2) + 1e-12;
        assert!(far(expected) < bound, "{flags}");
        assert!(far(PI.result(&format!("{flags} --skeleton sequential"))) < bound, "{flags}");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    PI.refuses(&[
        ("--intervals 0", "'--intervals <N>': 0 is not in 1..=1000000000000"),
        ("--ranks 0", "'--ranks <P>': 0 is not in 1..=100000"),
        ("--checkpoint-every 0", "'--checkpoint-every <K>': 0 is not in 1..=1000000000"),
        ("--skeleton bands", "'--skeleton <SKELETON>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn it_survives_deaths_with_the_same_bits() {
    let flags = "--intervals 200000000";
    let expected = PI.result(&format!("{flags} --pes 1 --threads 2"));
    for (lane, moments) in [("mpi", "0.05"), ("tcp", "0.05,0.06")] {
        PI.survives(moments, &format!("{flags} --restartable --lane {lane}"), |report| {
            assert_eq!(report["result"], expected, "{lane} {moments}");
        });
    }
}

#[cfg(feature = "mpi")]
#[test]
fn plain_mpi_comes_to_the_same_bits_with_as_many_ranks() {
    for ranks in 1..=2 {
        let twin = env!("CARGO_BIN_EXE_pi_mpi");
        let Some(mut twin) = crate::common::launched(twin, ranks, "--intervals 1000") else {
            return;
        };
        let result = ultramarine_testkit::run(&mut twin).report()["result"].clone();
        assert_eq!(result, PI.result(&format!("--intervals 1000 --ranks {ranks}")), "{ranks}");
    }
}
