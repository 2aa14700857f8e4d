//! `conjugate_gradient` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS`
//! names (without it those tests say so and pass).

use crate::common::CONJUGATE_GRADIENT;
use std::fs;
use ultramarine_testkit::run;

/// A small grid, with few rows for each rank.
const GRID: &str = "--laplacian 20";

#[test]
fn the_result_is_the_same_bits_on_any_number_of_pes() {
    let report =
        |flags: &str| run(&mut CONJUGATE_GRADIENT.command(&format!("{flags} --json"))).report();
    for ranks in [1, 5, 8] {
        let flags = |rest: &str| format!("{GRID} --ranks {ranks} --threads 1 {rest}");
        let first = report(&flags("--pes 1"));
        for rest in ["--pes 2", "--pes 3 --lane tcp", "--pes 8", "--pes 3 --checkpoint-every 2"] {
            assert_eq!(report(&flags(rest))["result"], first["result"], "{ranks} {rest}");
        }
        let sequential = report(&format!("{GRID} --skeleton sequential --pes 1"));
        for report in [first, sequential] {
            assert!(report["residual"].as_f64().unwrap() < 2e-8, "{report}");
            assert!(report["error"].as_f64().unwrap() < 1e-5, "{report}");
        }
    }
}

#[test]
fn matrices_of_files_are_solved_if_they_are_symmetric() {
    let scratch = tempfile::tempdir().expect("there is room");
    let solve = |name: &str, text: &str, flags: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).unwrap();
        let flags = format!("--matrix {} --pes 2 --threads 1 {flags}", path.display());
        CONJUGATE_GRADIENT.command(&flags)
    };
    let head = "%%MatrixMarket matrix coordinate real";
    let symmetric =
        format!("{head} symmetric\n% a comment\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n3 2 1\n3 3 2\n");
    let report = run(&mut solve("s.mtx", &symmetric, "--json --ranks 3")).report();
    assert!(report["iterations"].as_u64().unwrap() <= 4, "{report}");
    assert!(report["error"].as_f64().unwrap() < 1e-6, "{report}");
    let singular = format!("{head} symmetric\n2 2 3\n1 1 1\n2 1 -1\n2 2 1\n");
    for skeleton in ["ranks", "sequential"] {
        let flags = format!("--json --ranks 2 --skeleton {skeleton}");
        let report = run(&mut solve("0.mtx", &singular, &flags)).report();
        assert_eq!(report["residual"], 0.0, "b is 0: {report}");
        let indefinite = format!("{head} symmetric\n2 2 2\n1 1 1\n2 2 -3\n");
        run(&mut solve("i.mtx", &indefinite, &flags)).fails_with("not positive definite");
    }
    for (text, said) in [
        (format!("{head} general\n3 2 1\n1 1 4\n"), "the matrix has 3 rows and 2 columns"),
        (format!("{head} general\n2 2 2\n1 2 4\n2 1 3\n"), "not symmetric at row"),
        ("nothing of the kind".to_owned(), "wrong.mtx"),
    ] {
        run(&mut solve("wrong.mtx", &text, "")).fails_with(said);
    }
    run(&mut CONJUGATE_GRADIENT.command("--matrix nowhere.mtx")).fails_with("nowhere.mtx");
    run(&mut CONJUGATE_GRADIENT.command("--tolerance 0")).fails_with("more than 0 is expected");
    let refused =
        [("--laplacian 0", "0 is not in 1..=20000"), ("--checkpoint-every 0", "0 is not in")];
    CONJUGATE_GRADIENT.refuses(&refused);
}

#[cfg(feature = "mpi")]
#[test]
fn it_survives_deaths_with_the_same_bits() {
    // It takes long enough for all to die in it. A round has three supersteps: each of them begins
    // with a checkpoint at times.
    let flags = "--laplacian 150 --checkpoint-every 31";
    let expected = CONJUGATE_GRADIENT.result(&format!("{flags} --pes 1 --threads 1"));
    for (lane, moments) in [("mpi", "0.2"), ("mpi", "0.1,0.3"), ("tcp", "0.1,0.11,0.3")] {
        CONJUGATE_GRADIENT.survives(moments, &format!("{flags} --lane {lane}"), |report| {
            assert_eq!(report["result"], expected, "{lane} {moments}");
        });
    }
}

#[cfg(feature = "mpi")]
#[test]
fn plain_mpi_comes_to_as_many_iterations() {
    for ranks in 1..=3 {
        let twin = env!("CARGO_BIN_EXE_conjugate_gradient_mpi");
        let Some(mut twin) = crate::common::launched(twin, ranks, GRID) else { return };
        let report = run(&mut twin).report();
        assert!(report["residual"].as_f64().unwrap() < 2e-8, "{report}");
        let flags = format!("{GRID} --pes 2 --ranks {ranks} --json");
        let ours = run(&mut CONJUGATE_GRADIENT.command(&flags)).report();
        assert_eq!(ours["iterations"], report["iterations"], "{report}");
    }
}
