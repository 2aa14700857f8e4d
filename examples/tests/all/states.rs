//! `puzzle` and `cube` as their users see them, alone and under the launcher that
//! `MPIEXEC_FOR_TESTS` names (without it that test says so and passes).

use crate::common::{CUBE, PUZZLE};

#[test]
fn the_puzzle_has_its_states_and_levels() {
    let by_one = PUZZLE.report("--skeleton sequential");
    assert_eq!((&by_one["result"], &by_one["depth"]), (&181_440.into(), &31.into()));
    for flags in ["--pes 1", "--pes 3 --copies 2", "--pes 4 --copies 0 --progress"] {
        let report = PUZZLE.report(&format!("{flags} --threads 1"));
        assert_eq!(report["levels"], by_one["levels"], "{flags}");
    }
}

#[test]
fn the_cube_has_its_states_and_levels() {
    for (flags, depth) in [("", 14), ("--half-turns", 11)] {
        let report = CUBE.report(&format!("{flags} --skeleton sequential"));
        let found = (&report["result"], &report["depth"]);
        assert_eq!(found, (&3_674_160.into(), &depth.into()), "{flags}");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    PUZZLE.refuses(&[
        ("--copies 101", "'--copies <K>': 101 is not in 0..=100"),
        ("--skeleton ranks", "'--skeleton <SKELETON>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn the_puzzle_survives_deaths() {
    for (lane, moments) in [("mpi", "0.05"), ("tcp", "0.05,0.1")] {
        let flags = format!("--copies 2 --restartable --lane {lane}");
        PUZZLE.survives(moments, &flags, |report| {
            assert_eq!((&report["result"], &report["depth"]), (&181_440.into(), &31.into()));
        });
    }
}
