//! `cholesky_tiles` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS`
//! names (without it those tests say so and pass).

use serde_json::Value;
use std::process::Command;
use ultramarine_testkit::{alone, run};

const CHOLESKY: &str = env!("CARGO_BIN_EXE_cholesky_tiles");

/// Small matrices: of one tile, of the smallest tiles, and of some that are not so small.
const MATRICES: [&str; 4] = [
    "--size 8 --tile 8",
    "--size 40 --tile 4",
    "--size 120 --tile 20 --seed 2",
    "--size 512 --tile 64",
];

/// `cholesky_tiles` with these flags, in an environment without launchers and settings.
fn cholesky(flags: &str) -> Command {
    alone(CHOLESKY, flags)
}

/// What comes out without parallelism.
fn sequential(matrix: &str) -> Value {
    let flags = format!("{matrix} --skeleton sequential --pes 1 --threads 1 --json");
    run(&mut cholesky(&flags)).report()["result"].clone()
}

/// The factor has the same bits, and its product with itself is the matrix.
fn is_right(report: &Value, expected: &Value, flags: &str) {
    assert_eq!(report["result"], *expected, "{flags}");
    let residual = report["residual"].as_f64().expect("a number");
    assert!(residual < 1e-13, "{flags}: {residual}");
}

#[test]
fn tiles_on_every_lane_come_to_the_same_bits() {
    for matrix in MATRICES {
        let expected = sequential(matrix);
        for lane in ["memory", "tcp"] {
            for (pes, threads) in [(1, 1), (2, 1), (3, 2), (4, 1)] {
                let flags =
                    format!("{matrix} --pes {pes} --threads {threads} --lane {lane} --json");
                is_right(&run(&mut cholesky(&flags)).report(), &expected, &flags);
            }
        }
        let flags = format!("{matrix} --skeleton rayon --pes 1 --threads 2 --json");
        assert_eq!(run(&mut cholesky(&flags)).report()["result"], expected, "{matrix}");
    }
    assert_ne!(sequential(MATRICES[0]), sequential("--size 8 --tile 8 --seed 2"));
}

#[test]
fn flags_that_cannot_be_are_refused() {
    let multiple = "--size must be a multiple of --tile, and that of 4, not";
    for (flags, text) in [
        ("--size 0", "'--size <N>': 0 is not in 4..=30000".to_owned()),
        ("--size -4", "'--size <N>'".to_owned()),
        ("--tile 5000", "'--tile <N>': 5000 is not in 4..=4096".to_owned()),
        ("--size 100 --tile 10", format!("{multiple} 100 and 10")),
        ("--size 100 --tile 8", format!("{multiple} 100 and 8")),
        ("--size 8 --tile 16", format!("{multiple} 8 and 16")),
        ("--skeleton map", "'--skeleton <SKELETON>'".to_owned()),
    ] {
        run(&mut cholesky(flags)).fails_with(&text);
    }
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_comes_to_the_same_bits() {
    let matrix = MATRICES[3];
    let expected = sequential(matrix);
    for ranks in 1..=4 {
        for lane in ["mpi", "tcp"] {
            let flags = format!("{matrix} --lane {lane} --json");
            let Some(mut command) = crate::common::launched(CHOLESKY, ranks, &flags) else {
                return;
            };
            is_right(&run(&mut command).report(), &expected, &format!("{ranks} {flags}"));
        }
    }
}

#[cfg(feature = "mpi")]
#[test]
fn what_dies_with_a_pe_is_made_again() {
    // It takes long enough for all to die in it.
    let matrix = "--size 2048 --tile 128";
    let expected = sequential(matrix);
    for (lane, moments, deaths) in
        [("mpi", "0.1", 1), ("mpi", "0.1,0.3", 2), ("tcp", "0.05,0.06,0.4", 3)]
    {
        let flags = format!("{matrix} --lane {lane} --json --supervised --kill-at {moments}");
        let Some(mut command) = crate::common::launched(CHOLESKY, 4, &flags) else { return };
        let ended = run(&mut command);
        let report = ended.report();
        is_right(&report, &expected, &flags);
        assert_eq!(ended.err.matches("kills itself").count(), deaths, "{flags}: {}", ended.err);
        let rounds = report["rounds"].as_u64().expect("a number");
        // One if what died had made nothing that others needed.
        assert!((1..=1 + 2 * deaths as u64).contains(&rounds), "{flags}: {rounds}");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn a_death_ends_a_job_that_is_not_supervised() {
    // By then each PE has tiles, on a busy machine too.
    let flags = "--size 3072 --tile 128 --kill-at 0.5";
    let Some(mut command) = crate::common::launched(CHOLESKY, 3, flags) else { return };
    run(&mut command).fails_with("tiles were lost with a PE that died: --supervised");
}
