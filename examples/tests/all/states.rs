//! `puzzle`, `cube` and `orbit` as their users see them, alone and under the launcher that
//! `MPIEXEC_FOR_TESTS` names (without it that test says so and passes).

use crate::common::{CUBE, ORBIT, PUZZLE};
use tempfile::NamedTempFile;
use ultramarine_gap::{Permutation, Pool, Settings, Value};

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
    let report = CUBE.report("--skeleton sequential");
    assert_eq!((&report["result"], &report["depth"]), (&3_674_160.into(), &14.into()));
}

#[test]
fn a_table_finds_the_states_of_two_faces_of_the_cube() {
    for flags in ["--faces 2", "--faces 2 --half-turns"] {
        let by_one = CUBE.report(&format!("{flags} --skeleton sequential"));
        assert_eq!(by_one["result"], 29_160, "{flags}");
        for pes in ["--pes 1", "--pes 3 --copies 2"] {
            let report = CUBE.report(&format!("{flags} {pes} --threads 1"));
            assert_eq!(report["levels"], by_one["levels"], "{flags} {pes}");
        }
    }
}

#[test]
#[ignore = "takes a minute"]
fn a_table_finds_all_states_of_the_cube() {
    let by_table = "--pes 2 --threads 1";
    let by_one = "--half-turns --skeleton sequential";
    for (flags, depth) in [(by_table, 14), ("--half-turns --pes 2 --threads 1", 11), (by_one, 11)] {
        let report = CUBE.report(flags);
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

fn generators(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

/// Two groups, each as the lines of a file and as the images of its generators.
const GROUPS: [(&str, [&[u32]; 2]); 2] = [
    (
        "# The Mathieu group of degree 11\n(1,2,3,4,5,6,7,8,9,10,11)\n(3,7,11,8)(4,10,5,6)",
        [&[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1], &[1, 2, 7, 10, 6, 4, 11, 3, 9, 5, 8]],
    ),
    (" ( 1, 2 ) (3,4)\n\n()  # the identity", [&[2, 1, 4, 3], &[]]),
];

#[test]
fn an_orbit_is_as_long_as_gap_says() {
    let gap = Pool::new(Settings::default());
    for (text, images) in GROUPS {
        let file = generators(text);
        let permutations = images.map(|images| Permutation::new(images.to_vec()).unwrap());
        for tuple in ["1", "4,2", "1,2,3,4"] {
            let points: Vec<Value> =
                tuple.split(',').map(|point| point.parse::<u32>().unwrap().into()).collect();
            let group = Value::List(permutations.iter().cloned().map(Value::from).collect());
            let length = "{ group, tuple } -> OrbitLength(Group(group), tuple, OnTuples)";
            let length = gap.call_source(length, &[group, Value::List(points)]).unwrap();
            let flags = format!("--generators {} --tuple {tuple}", file.path().display());
            for flags in ["--skeleton sequential", "--pes 3 --threads 1"]
                .map(|f| f.to_owned() + " " + &flags)
            {
                let report = ORBIT.report(&flags);
                assert_eq!(Value::from(report["result"].as_u64().unwrap()), length, "{flags}");
            }
        }
    }
}

#[test]
fn permutations_that_are_none_are_refused_with_their_lines() {
    let bad = [
        ("(1,2)\n(1,2", ":2: cycles are expected"),
        ("(1,2)(2,3)", ":1: the point 2 is there twice"),
        ("(0,1)", ":1: `0` is no point"),
        ("(1,2,1)", ":1: the point 1 is there twice"),
        ("(1,x)", ":1: `x` is no point"),
    ];
    for (text, reason) in bad {
        let file = generators(text);
        let flags = format!("--generators {} --tuple 1", file.path().display());
        ORBIT.refuses(&[(&flags, &format!("{}{reason}", file.path().display()))]);
    }
    ORBIT.refuses(&[
        ("--generators /nowhere --tuple 1", "cannot read the permutations /nowhere"),
        ("--generators /nowhere --tuple 0", "0 is not in 1.."),
    ]);
}
