//! `uts` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names (without
//! it those tests say so and pass). The counts are those published with the reference program.

use crate::common::UTS;
use serde_json::{Value, json};

/// A tree of each law and shape, a few thousand nodes or less.
const SMALL: [&str; 8] = [
    "-t0 -b30 -q0.12 -m8 -r3",
    "-t1 -a0 -d8 -b4 -r5",
    "-t1 -a1 -d15 -b4 -r29",
    "-t1 -a2 -d3 -b3 -r4",
    "-t1 -a3 -d6 -b3 -r1",
    "-t2 -d8 -b5 -r1",
    "-t3 -d5 -b6",
    "-t bin -b 0",
];

const SPLITTINGS: [&str; 5] = ["steal-driven", "depth:0", "depth:3", "budget:1", "budget:100"];

/// What is counted.
fn counts(report: &Value) -> [&Value; 3] {
    [&report["result"], &report["depth"], &report["leaves"]]
}

#[test]
fn published_trees_come_out() {
    for (tree, nodes, depth, leaves) in [
        ("-t 1 -a 3 -d 10 -b 4 -r 19", 4_130_071, 10, 3_305_118),
        ("-t 1 -a 2 -d 16 -b 6 -r 502", 4_117_769, 81, 2_342_762),
        ("-t 0 -b 2000 -q 0.124875 -m 8 -r 42", 4_112_897, 1572, 3_599_034),
        ("-t 2 -a 0 -d 16 -b 6 -r 1 -q 0.234375 -m 4", 4_132_453, 134, 3_108_986),
        ("-t 1 -a 0 -d 20 -b 4 -r 34", 4_147_582, 20, 2_181_318),
    ] {
        let report = UTS.report(&format!("{tree} --pes 2 --threads 1"));
        assert_eq!(counts(&report), [&json!(nodes), &json!(depth), &json!(leaves)], "{tree}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn published_large_trees_come_out() {
    for (tree, nodes, depth, leaves) in [
        ("-t 1 -a 3 -d 13 -b 4 -r 29", 102_181_082, 13, 81_746_377),
        // With slightly more than one child on average.
        ("-t 0 -b 2000 -q 0.200014 -m 5 -r 7", 111_345_631, 17844, 89_076_904),
    ] {
        let report = UTS.report(&format!("{tree} --pes 2 --threads 1"));
        assert_eq!(counts(&report), [&json!(nodes), &json!(depth), &json!(leaves)], "{tree}");
    }
}

#[test]
fn the_other_skeletons_count_the_same() {
    for skeleton in ["sequential", "rayon"] {
        let report = UTS.report(&format!("-t1 -a3 -d10 -b4 -r19 --skeleton {skeleton}"));
        let said = (&report["program"], &report["skeleton"]);
        assert_eq!(said, (&json!("uts"), &json!(skeleton)));
        assert_eq!(counts(&report), [&json!(4_130_071), &json!(10), &json!(3_305_118)]);
    }
}

#[test]
fn a_balanced_tree_has_the_nodes_that_it_must() {
    let report = UTS.report("-t balanced -b 3.9 -d 7");
    assert_eq!(counts(&report), [&json!((3_u64.pow(8) - 1) / 2), &json!(7), &json!(3_u64.pow(7))]);
    let report = UTS.report("-t bin -b 250 -q 0");
    assert_eq!(counts(&report), [&json!(251), &json!(1), &json!(250)], "the root may have more");
}

#[test]
fn however_the_work_is_split_nothing_is_lost() {
    for (first, tree) in SMALL.into_iter().enumerate() {
        let expected = UTS.report(&format!("{tree} --skeleton sequential"));
        let lanes = ["memory", "tcp"].into_iter().cycle().skip(first);
        for (splitting, lane) in SPLITTINGS.into_iter().zip(lanes) {
            let flags = format!("{tree} --pes 3 --threads 1 --lane {lane} --splitting {splitting}");
            let report = UTS.report(&flags);
            assert_eq!(counts(&report), counts(&expected), "{tree} {lane} {splitting}");
            let report = UTS.report(&format!("{flags} --supervised"));
            assert_eq!(counts(&report), counts(&expected), "{tree} {lane} {splitting} supervised");
            assert_eq!(report["supervised"], true);
        }
    }
}

#[test]
fn words_and_hierarchy_are_shown() {
    UTS.shows(
        "-t3 -d3 -b2 -g3 --pes 2 --threads 1 --show-topology --progress",
        &["PE 1: rank 1", "uts (par-enumerate): 15\n", "depth: 3\n", "leaves: 8\n"],
    );
}

#[test]
fn flags_that_cannot_be_are_refused() {
    UTS.refuses(&[
        ("-t 4", "'-t <KIND>'"),
        ("-a round", "'-a <SHAPE>'"),
        ("-b -1", "'-1' for '-b <CHILDREN>': not from 0 to 1000000000"),
        ("-b=-1", "not from 0 to 1000000000"),
        ("-d -1", "'-d <DEPTH>': -1 is not in 1..=100000000"),
        ("-f -0.5", "'-0.5' for '-f <PART>': not from 0 to 1"),
        ("-r -1", "'-r <SEED>': -1 is not in 0..=4294967295"),
        ("-q -1", "'-1' for '-q <PROBABILITY>': not from 0 to 1"),
        ("-m -1", "'-m <CHILDREN>': -1 is not in 0..=100"),
        ("-g -1", "'-g <TIMES>': -1 is not in 1..=4294967295"),
        ("-b nan", "not from 0 to 1000000000"),
        ("-b many", "invalid float"),
        ("-d 0", "'-d <DEPTH>'"),
        ("-f 2", "not from 0 to 1"),
        ("-q 1.5", "not from 0 to 1"),
        ("-m 101", "'-m <CHILDREN>'"),
        ("-g 0", "'-g <TIMES>'"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--splitting budget:0", "a task visits one node at least"),
        ("--splitting quickly", "`ordered`, `steal-driven`, `depth:N` or `budget:N` is expected"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_counts_the_same_on_either_lane() {
    let tree = "-t1 -a3 -d8 -b4 -r19";
    let expected = UTS.report(&format!("{tree} --skeleton sequential"));
    UTS.on_ranks(4, tree, |report| assert_eq!(counts(report), counts(&expected)));
}
