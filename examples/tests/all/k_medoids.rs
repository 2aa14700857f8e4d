//! `k_medoids` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).

use crate::common::K_MEDOIDS;
use serde_json::{Value, json};
use std::fs;
use ultramarine_testkit::run;

/// Less points than ranks, clusters of one point each, and ones of several dimensions.
const PROBLEMS: [&str; 4] = [
    "--random 3 --k 2",
    "--random 30 --k 30",
    "--random 500 --k 7 --dimensions 3 --seed 2",
    "--random 1000 --k 20",
];

/// The clustering without parallelism.
fn sequential(problem: &str) -> [Value; 3] {
    clustering(&K_MEDOIDS.report(&format!("{problem} --skeleton sequential --pes 1 --threads 1")))
}

fn clustering(report: &Value) -> [Value; 3] {
    ["result", "medoids", "rounds"].map(|field| report[field].clone())
}

#[test]
fn ranks_come_to_the_same_bits_as_one_loop() {
    for problem in PROBLEMS {
        let expected = sequential(problem);
        for (pes, ranks) in [(1, 8), (2, 8), (3, 5), (4, 8), (2, 1)] {
            let flags = format!("{problem} --pes {pes} --ranks {ranks} --threads 1");
            assert_eq!(clustering(&K_MEDOIDS.report(&flags)), expected, "{flags}");
        }
    }
    let flags = "--random 500 --k 7 --pes 3 --lane tcp --threads 1 --checkpoint-every 1";
    assert_eq!(clustering(&K_MEDOIDS.report(flags)), sequential("--random 500 --k 7"));
    // Each point is a medoid.
    assert_eq!(sequential(PROBLEMS[1])[0], 0.0);
}

#[test]
fn points_of_files_are_divided_into_clusters() {
    let scratch = tempfile::tempdir().expect("there is room");
    let path = scratch.path().join("points.csv");
    let divide = |text: &[u8], flags: &str| {
        fs::write(&path, text).unwrap();
        K_MEDOIDS.command(&format!("{} --pes 2 --threads 1 {flags}", path.display()))
    };
    let two = b"0,0\n 1, 0\n0,1\r\n1e1,10\n10,11\n11,10";
    // Where it ends depends on where it begins.
    let is_best = |seed: &u32| {
        let report = run(&mut divide(two, &format!("--k 2 --seed {seed} --json"))).report();
        let mut medoids = report["medoids"].as_array().unwrap().clone();
        medoids.sort_by_key(Value::as_u64);
        assert_eq!(report["result"] == 4.0, medoids == [json!(0), json!(3)], "{report}");
        report["result"] == 4.0
    };
    assert!((1..5).filter(is_best).count() > 0);
    // Empty clusters keep their medoids.
    let report = run(&mut divide(b"5\n5\n5\n7\n", "--k 3 --json")).report();
    assert_eq!(report["medoids"].as_array().unwrap().len(), 3, "{report}");
    for (text, said) in [
        (&b""[..], "points.csv: there are no points"),
        (b"1,2\n3\n", "points.csv, line 2: 1 columns, but 2 before"),
        (b"1,2\n\n3,4\n", "points.csv, line 2, column 1: `` is not a number"),
        (b"1,2\n3,4,5\n", "points.csv, line 2: 3 columns, but 2 before"),
        (b"1,2\n3,NaN\n", "points.csv, line 2, column 2: `NaN` is not a number"),
        (b"1,2\n3,inf\n", "points.csv, line 2, column 2: `inf` is not a number"),
        (b"x,y\n", "points.csv, line 1, column 1: `x` is not a number"),
        (b"\xff\x00", "points.csv, line 1, column 1: "),
        (b"1,2\n3,4\n5,6\n", "--k 4: there are only 3 points"),
    ] {
        run(&mut divide(text, "--k 4")).fails_with(said);
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    K_MEDOIDS.refuses(&[
        ("--k 2", "<FILE|--random <N>>"),
        ("--random 5", "--k <K>"),
        ("points.csv --random 5 --k 2", "cannot be used with"),
        ("--random 5 --k 0", "'--k <K>': 0 is not in 1..=1000000"),
        ("--random 5 --k 6", "--k 6: there are only 5 points"),
        ("--random 0 --k 1", "'--random <N>': 0 is not in"),
        ("nowhere.csv --k 2", "cannot read the points nowhere.csv: No such file"),
        ("/dev/zero --k 2", "cannot read the points /dev/zero: it is not a regular file"),
        ("--random 5 --k 2 --checkpoint-every 0", "0 is not in 1..=1000000000"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn it_survives_deaths_with_the_same_bits() {
    // It takes long enough for all to die in it.
    let problem = "--random 6000 --k 8 --seed 3";
    let expected = sequential(problem);
    let flags = format!("{problem} --checkpoint-every 4 --restartable");
    for (lane, moments) in [("mpi", "0.1"), ("mpi", "0.1,0.2"), ("tcp", "0.05,0.06,0.2")] {
        K_MEDOIDS.survives(moments, &format!("{flags} --lane {lane}"), |report| {
            assert_eq!(clustering(report), expected, "{lane} {moments}");
        });
    }
}

#[cfg(feature = "mpi")]
#[test]
fn plain_mpi_comes_to_the_same_bits() {
    for (ranks, problem) in [(1, PROBLEMS[2]), (2, PROBLEMS[3]), (4, PROBLEMS[0])] {
        let twin = env!("CARGO_BIN_EXE_k_medoids_mpi");
        let Some(mut twin) = crate::common::launched(twin, ranks, problem) else { return };
        assert_eq!(run(&mut twin).report()["result"], sequential(problem)[0], "{problem}");
    }
}
