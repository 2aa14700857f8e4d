//! `fibonacci` as its user sees it.

use crate::common::{DIVISIONS, FIBONACCI};

#[test]
fn every_skeleton_on_every_lane_gives_the_number() {
    for lane in ["memory", "tcp"] {
        for skeleton in DIVISIONS {
            for more in ["", "--supervised", "--threshold 10"] {
                let flags = format!("--n 22 --pes 3 --threads 1 --lane {lane} {more}");
                let report = FIBONACCI.report(&format!("{flags} --skeleton {skeleton}"));
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
                let flags = format!("--n {n} --threshold {threshold} --pes 2 --threads 2");
                let report = FIBONACCI.report(&format!("{flags} --skeleton {skeleton}"));
                assert_eq!(report["result"], expected, "F({n}), {skeleton} down to {threshold}");
            }
        }
    }
}

#[test]
fn parts_are_stolen_and_placed() {
    let flags = "--n 40 --threshold 20 --pes 3 --threads 1 --skeleton";
    let stolen = FIBONACCI.report(&format!("{flags} par-divide-and-conquer"));
    assert_eq!(stolen["result"], 102_334_155);
    let steals = stolen["steals"].as_object().expect("steals by distance");
    assert!(steals.values().any(|steals| steals.as_u64() > Some(0)), "{stolen}");
    let placed = FIBONACCI.report(&format!("{flags} push-divide-and-conquer"));
    assert_eq!(placed["result"], 102_334_155);
    // Each of 2⁵ - 1 parts is placed unless it was drawn for where it is already.
    let tasks = placed["tasks"].as_u64().expect("a number of tasks");
    assert!((1..=31).contains(&tasks), "{placed}");
    assert_eq!(placed["steals"], serde_json::json!({}));
}

#[test]
fn words_and_hierarchy_are_shown() {
    let flags = "--n 20 --pes 2 --threads 1 --show-topology --progress --supervised";
    FIBONACCI.shows(flags, &["PE 1: rank 1", "fibonacci (par-divide-and-conquer): 6765"]);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    FIBONACCI.refuses(&[
        ("--n 94", "invalid value '94' for '--n <N>': 94 is not in 1..=93"),
        ("--n 0", "invalid value '0' for '--n <N>': 0 is not in 1..=93"),
        ("--n -1", "invalid value '-1' for '--n <N>': -1 is not in 1..=93"),
        ("--n many", "invalid value 'many' for '--n <N>'"),
        ("--threshold -1", "'--threshold <T>': -1 is not in 0..=93"),
        ("--threshold 94", "'--threshold <T>': 94 is not in 0..=93"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--pes 0", "'--pes <P>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_gives_the_number() {
    let flags = "--n 22 --supervised --skeleton push-divide-and-conquer";
    FIBONACCI.on_ranks(3, flags, |report| assert_eq!(report["result"], 17_711));
}
