//! `queens` as its user sees it. The values are those of OEIS A000170.

use crate::common::{DIVISIONS, QUEENS};
use std::time::{Duration, Instant};
use ultramarine_testkit::{behind, run};

#[test]
fn every_skeleton_on_every_lane_gives_the_number() {
    for lane in ["memory", "tcp"] {
        for skeleton in DIVISIONS {
            for more in ["", "--supervised", "--threshold 2"] {
                let flags = format!("--board 8 --pes 3 --threads 1 --lane {lane} {more}");
                let report = QUEENS.report(&format!("{flags} --skeleton {skeleton}"));
                assert_eq!(report["result"], 92, "{flags} {skeleton}");
                assert_eq!(report["skeleton"], skeleton);
                assert_eq!(report["supervised"], more == "--supervised");
            }
        }
    }
}

#[test]
fn boards_of_every_size_and_threshold_are_right() {
    for (board, expected) in [(1, 1), (2, 0), (3, 0), (4, 2), (8, 92)] {
        for threshold in [0, 1, 3, 4_000_000_000_u32] {
            for skeleton in DIVISIONS {
                let flags = format!("--board {board} --threshold {threshold} --pes 2 --threads 1");
                let report = QUEENS.report(&format!("{flags} --skeleton {skeleton}"));
                assert_eq!(report["result"], expected, "{board}, {skeleton} down to {threshold}");
            }
        }
    }
}

#[test]
fn the_board_of_the_paper_has_its_number() {
    for flags in ["", "--supervised", "--skeleton push-divide-and-conquer --supervised"] {
        let report = QUEENS.report(&format!("--board 14 --pes 2 {flags}"));
        assert_eq!(report["result"], 365_596, "{report}");
        assert_eq!(report["replicas"], 0);
    }
}

#[test]
fn without_division_nothing_leaves_the_root() {
    for skeleton in ["par-divide-and-conquer", "push-divide-and-conquer"] {
        let flags = format!("--board 9 --threshold 0 --pes 3 --threads 1 --skeleton {skeleton}");
        let report = QUEENS.report(&flags);
        assert_eq!((&report["result"], &report["tasks"]), (&352.into(), &1.into()), "{report}");
    }
}

#[test]
fn only_the_first_rows_are_placed() {
    let flags = "--board 10 --pes 3 --threads 1 --skeleton push-divide-and-conquer";
    let report = QUEENS.report(flags);
    assert_eq!(report["result"], 724);
    // Of the 10 + 72 boards with one or two queens, those that were drawn for another PE.
    let tasks = report["tasks"].as_u64().expect("a number of tasks");
    assert!((1..=82).contains(&tasks), "{report}");
    assert_eq!(report["steals"], serde_json::json!({}));
}

#[test]
fn words_and_hierarchy_are_shown() {
    let flags = "--board 8 --pes 2 --threads 1 --show-topology --progress --supervised";
    QUEENS.shows(flags, &["PE 1: rank 1", "queens (par-divide-and-conquer): 92"]);
}

#[test]
fn flags_that_cannot_be_are_refused() {
    QUEENS.refuses(&[
        ("--board 0", "invalid value '0' for '--board <N>': 0 is not in 1..=20"),
        ("--board 21", "invalid value '21' for '--board <N>': 21 is not in 1..=20"),
        ("--board -8", "'--board <N>': -8 is not in 1..=20"),
        ("--threshold -1", "'--threshold <T>': -1 is not in 0..=4294967295"),
        ("--threshold 4294967296", "'--threshold <T>': 4294967296 is not in 0..=4294967295"),
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--pes 0", "'--pes <P>'"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_gives_the_number() {
    QUEENS.on_ranks(3, "--board 10 --supervised", |report| assert_eq!(report["result"], 724));
}

/// The root waited a minute at the end for PEs that had never started, and did not say why.
#[test]
fn a_pe_that_cannot_start_is_not_waited_for() {
    let mut said = String::new();
    // In kilobytes: from too little for any worker thread to enough for all.
    for memory in (60..140).step_by(10).map(|megabytes| 1000 * megabytes) {
        let limited = format!("ulimit -v {memory} && exec \"$@\"");
        let queens = QUEENS.command("--board 8 --pes 3 --threads 1");
        let start = Instant::now();
        let ended = run(&mut behind(["sh", "-c", &limited, "sh"], &queens));
        let took = start.elapsed();
        assert!(took < Duration::from_secs(30), "{memory} kB: {took:?}: {}", ended.err);
        said += &ended.err;
    }
    assert!(said.contains("the worker threads of PE "), "{said}");
}

mod boards {
    use ultramarine_examples::programs::queens::{Board, with_rayon};

    /// OEIS A000170.
    #[test]
    fn every_threshold_gives_the_known_numbers() {
        for (size, expected) in (1..).zip([1, 0, 0, 2, 10, 4, 40, 92, 352, 724]) {
            for threshold in 0..size + 2 {
                assert_eq!(with_rayon(Board::empty(size, threshold)), expected, "{size}");
            }
        }
    }

    #[test]
    fn a_board_of_14_has_the_problems_of_the_paper() {
        let mut boards = vec![Board::empty(14, 5)];
        let mut problems = 0;
        while !boards.is_empty() {
            problems += boards.len();
            boards.retain(|board| !board.is_trivial());
            boards = boards.into_iter().flat_map(Board::placements).collect();
        }
        assert_eq!(problems, 65_235);
    }
}
