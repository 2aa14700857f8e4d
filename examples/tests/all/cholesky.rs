//! `cholesky` as its user sees it: the factor is exact, and the same wherever it is computed.

use crate::common::CHOLESKY;
use serde_json::Value;

/// The residual of a matrix, computed on one PE.
fn expected(matrix: &str) -> Value {
    let expected = CHOLESKY.result(&format!("{matrix} --pes 1 --threads 1"));
    assert!(expected.as_f64().is_some_and(|residual| residual < 1e-13), "{matrix}: {expected}");
    expected
}

#[test]
fn the_factor_is_exact_and_has_the_same_bits_everywhere() {
    for matrix in ["--size 1 --tile 1", "--size 60 --tile 10", "--size 192 --tile 64 --seed 7"] {
        let expected = expected(matrix);
        for flags in [
            "--pes 3 --threads 1",
            "--pes 2 --threads 2",
            "--pes 4 --threads 1 --lane tcp",
            "--pes 3 --threads 1 --assignment levels",
            "--pes 4 --threads 1 --assignment cyclic",
            "--pes 3 --threads 1 --drop-used",
            "--pes 2 --threads 1 --memory 1",
            "--pes 1 --threads 1 --skeleton rayon",
            "--pes 1 --threads 2 --skeleton rayon",
        ] {
            assert_eq!(CHOLESKY.result(&format!("{matrix} {flags}")), expected, "{matrix} {flags}");
        }
    }
    let other = expected("--size 192 --tile 64 --seed 8");
    assert_ne!(other, expected("--size 192 --tile 64 --seed 7"));
}

/// The tiles take 1.8 MiB.
#[test]
fn a_memory_that_is_too_small_is_told_once_and_the_factor_is_the_same() {
    let matrix = "--size 640 --tile 64";
    let flags = format!("{matrix} --pes 1 --threads 1 --memory 1 --json");
    let ended = CHOLESKY.run(&flags);
    assert_eq!(ended.report()["result"], expected(matrix));
    let told = ended.err.matches("is too small for the graph on PE 0, by ").count();
    assert_eq!(told, 1, "{}", ended.err);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    CHOLESKY.refuses(&[
        ("--size 100 --tile 64", "--size 100 is no multiple of --tile 64"),
        ("--size 8 --tile 16", "--size 8 is no multiple of --tile 16"),
        ("--tile 0", "0 is not in 1..=4096"),
        ("--size 0", "0 is not in 1..=100000"),
        ("--size -4", "-4 is not in 1..=100000"),
        ("--memory 0", "0 is not in 1..=1073741824"),
        ("--skeleton map", "'--skeleton <SKELETON>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_comes_to_the_same_bits() {
    let matrix = "--size 512 --tile 64";
    let expected = expected(matrix);
    CHOLESKY.on_ranks(4, matrix, |report| assert_eq!(report["result"], expected, "{report}"));
}

#[cfg(feature = "mpi")]
#[test]
fn the_factor_has_the_same_bits_though_processes_die() {
    // It takes long enough for all to die in it.
    let matrix = "--size 2048 --tile 128";
    let expected = expected(matrix);
    for (lane, moments) in [("mpi", "0.1"), ("mpi", "0.1,0.3"), ("tcp", "0.05,0.06,0.4")] {
        CHOLESKY.survives(moments, &format!("{matrix} --lane {lane}"), |report| {
            assert_eq!(report["result"], expected, "{lane} {moments}");
        });
    }
}
