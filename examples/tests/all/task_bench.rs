//! `task_bench` as its user sees it: each skeleton computes the same.

use crate::common::TASK_BENCH;
#[cfg(feature = "mpi")]
use ultramarine_testkit::run;

const PATTERNS: [&str; 5] = ["trivial", "stencil_1d", "fft", "tree", "random-nearest"];

#[test]
fn each_skeleton_computes_the_same() {
    for pattern in PATTERNS {
        for (width, steps) in [(1, 1), (2, 30), (13, 20)] {
            let result = |flags: &str| {
                let grid = format!("--pattern {pattern} --width {width} --steps {steps}");
                TASK_BENCH.result(&format!("{grid} --iterations 3 {flags}"))
            };
            let sequential = result("--skeleton sequential");
            for assignment in ["levels", "cyclic", "placed"] {
                let found = result(&format!("--pes 3 --threads 1 --assignment {assignment}"));
                assert_eq!(found, sequential, "{pattern} {width} {steps} {assignment}");
            }
            assert_eq!(result("--pes 2 --threads 2 --lane tcp"), sequential, "{pattern}");
            assert_eq!(result("--skeleton rayon"), sequential, "{pattern}");
            for skeleton in ["blocks", "stream"] {
                let flags = format!("--skeleton {skeleton} --pes 3 --threads 1 --block-steps 4");
                assert_eq!(result(&flags), sequential, "{skeleton} {pattern}");
            }
        }
    }
}

#[test]
fn a_grid_without_points_is_refused() {
    TASK_BENCH.refuses(&[
        ("--width 0", "0 is not in 1..=1000000"),
        ("--steps 0", "0 is not in 1..=10000000"),
        ("--pattern ring", "possible values"),
    ]);
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::launched;

    #[test]
    fn blocks_and_streams_end_though_processes_die() {
        let grid = "--width 16 --steps 1500 --iterations 400 --block-steps 10";
        let expected = TASK_BENCH.result(&format!("{grid} --skeleton sequential"));
        for skeleton in ["dag", "blocks", "stream"] {
            let flags = format!("{grid} --json --skeleton {skeleton} --kill-at 0.05,0.2,0.4");
            let Some(mut command) = TASK_BENCH.launched(4, &flags) else { return };
            assert_eq!(run(&mut command).report()["result"], expected, "{flags}");
        }
    }

    #[test]
    fn mpi_by_hand_computes_the_same() {
        for pattern in PATTERNS {
            let grid = format!("--pattern {pattern} --width 7 --steps 40 --iterations 1");
            let expected = TASK_BENCH.result(&format!("{grid} --skeleton sequential"));
            let by_hand = launched(env!("CARGO_BIN_EXE_task_bench_mpi"), 3, &grid);
            let Some(mut by_hand) = by_hand else { return };
            assert_eq!(run(&mut by_hand).report()["result"], expected, "{pattern}");
        }
    }
}
