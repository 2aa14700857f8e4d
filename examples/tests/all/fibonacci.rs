//! `fibonacci` as its user sees it.

use crate::common::DIVISIONS;
use std::process::Command;
use ultramarine_testkit::{alone, run};

/// `fibonacci` with these flags, in an environment without launchers and settings.
fn fibonacci(flags: &str) -> Command {
    alone(env!("CARGO_BIN_EXE_fibonacci"), flags)
}

#[test]
fn every_skeleton_on_every_lane_gives_the_number() {
    for lane in ["memory", "tcp"] {
        for skeleton in DIVISIONS {
            for more in ["", "--supervised", "--threshold 10"] {
                let flags = format!("--n 22 --pes 3 --threads 1 --json --lane {lane} {more}");
                let report = run(fibonacci(&flags).args(["--skeleton", skeleton])).report();
                assert_eq!(report["result"], 17_711, "{flags} {skeleton}");
                assert_eq!(report["skeleton"], skeleton);
                assert_eq!(report["supervised"], more == "--supervised");
            }
        }
    }
}

#[test]
fn small_numbers_and_great_thresholds_are_right() {
    for (n, expected) in [(1, 1), (2, 1), (3, 2), (4, 3), (7, 13)] {
        for threshold in [0, 1, 3, 93] {
            for skeleton in DIVISIONS {
                let flags = format!("--n {n} --threshold {threshold} --pes 2 --threads 2 --json");
                let report = run(fibonacci(&flags).args(["--skeleton", skeleton])).report();
                assert_eq!(report["result"], expected, "F({n}), {skeleton} down to {threshold}");
            }
        }
    }
}

#[test]
fn parts_are_stolen_and_placed() {
    let flags = "--n 40 --threshold 20 --pes 3 --threads 1 --json --skeleton";
    let stolen = run(fibonacci(flags).arg("par-divide-and-conquer")).report();
    assert_eq!(stolen["result"], 102_334_155);
    let steals = stolen["steals"].as_object().expect("steals by distance");
    assert!(steals.values().any(|steals| steals.as_u64() > Some(0)), "{stolen}");
    let placed = run(fibonacci(flags).arg("push-divide-and-conquer")).report();
    assert_eq!(placed["result"], 102_334_155);
    // Each of 2⁵ - 1 parts is placed unless it was drawn for where it is already.
    let tasks = placed["tasks"].as_u64().expect("a number of tasks");
    assert!((1..=31).contains(&tasks), "{placed}");
    assert_eq!(placed["steals"], serde_json::json!({}));
}

#[test]
fn words_and_hierarchy_are_shown() {
    let flags = "--n 20 --pes 2 --threads 1 --show-topology --progress --supervised";
    let ended = run(&mut fibonacci(flags));
    assert!(ended.is_success, "{}", ended.err);
    assert!(ended.out.contains("PE 1: rank 1"), "{}", ended.out);
    assert!(ended.out.contains("fibonacci (par-divide-and-conquer): 6765"), "{}", ended.out);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    for (flags, text) in [
        ("--n 94", "invalid value '94' for '--n <N>': 94 is not in 1..=93"),
        ("--n 0", "invalid value '0' for '--n <N>': 0 is not in 1..=93"),
        ("--n -1", "invalid value '-1' for '--n <N>': -1 is not in 1..=93"),
        ("--n many", "invalid value 'many' for '--n <N>'"),
        ("--threshold -1", "'--threshold <T>': -1 is not in 0..=93"),
        ("--threshold 94", "'--threshold <T>': 94 is not in 0..=93"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--pes 0", "'--pes <P>'"),
    ] {
        run(&mut fibonacci(flags)).fails_with(text);
    }
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_gives_the_number() {
    for ranks in 1..=3 {
        let flags = "--n 22 --supervised --json --skeleton push-divide-and-conquer";
        let program = env!("CARGO_BIN_EXE_fibonacci");
        let Some(mut command) = crate::common::launched(program, ranks, flags) else { return };
        let report = run(&mut command).report();
        assert_eq!((&report["result"], &report["pes"]), (&17_711.into(), &ranks.into()));
    }
}
