//! `task_bench` as its user sees it: each skeleton computes the same.

use ultramarine_testkit::{alone, run};

const TASK_BENCH: &str = env!("CARGO_BIN_EXE_task_bench");
const PATTERNS: [&str; 5] = ["trivial", "stencil_1d", "fft", "tree", "random-nearest"];

#[test]
fn each_skeleton_computes_the_same() {
    for pattern in PATTERNS {
        for (width, steps) in [(1, 1), (2, 30), (13, 20)] {
            let result = |flags: &str| {
                let grid = format!("--pattern {pattern} --width {width} --steps {steps}");
                let flags = format!("{grid} --iterations 3 --json {flags}");
                run(&mut alone(TASK_BENCH, &flags)).report()["result"].clone()
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
    run(&mut alone(TASK_BENCH, "--width 0")).fails_with("0 is not in 1..=1000000");
    run(&mut alone(TASK_BENCH, "--steps 0")).fails_with("0 is not in 1..=10000000");
    run(&mut alone(TASK_BENCH, "--pattern ring")).fails_with("possible values");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use crate::common::launched;

    #[test]
    fn blocks_and_streams_end_though_processes_die() {
        let flags = |more: &str| {
            let grid = "--width 16 --steps 1500 --iterations 400 --block-steps 10";
            format!("{grid} --json {more}")
        };
        let expected = run(&mut alone(TASK_BENCH, &flags("--skeleton sequential"))).report();
        for skeleton in ["dag", "blocks", "stream"] {
            let flags = flags(&format!("--skeleton {skeleton} --kill-at 0.05,0.2,0.4"));
            let Some(mut command) = launched(TASK_BENCH, 4, &flags) else { return };
            assert_eq!(run(&mut command).report()["result"], expected["result"], "{flags}");
        }
    }

    #[test]
    fn mpi_by_hand_computes_the_same() {
        for pattern in PATTERNS {
            let grid = format!("--pattern {pattern} --width 7 --steps 40 --iterations 1");
            let expected =
                run(&mut alone(TASK_BENCH, &format!("{grid} --skeleton sequential --json")));
            let Some(mut by_hand) = launched(env!("CARGO_BIN_EXE_task_bench_mpi"), 3, &grid) else {
                return;
            };
            let report = run(&mut by_hand).report();
            assert_eq!(report["result"], expected.report()["result"], "{pattern}");
        }
    }
}
