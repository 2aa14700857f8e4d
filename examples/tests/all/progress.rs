//! The lines by which programs say how far they are, where there is no terminal.

use crate::common::{FIBONACCI, LIOUVILLE, MANDELBROT, QUEENS, SUM_EULER, TASK_BENCH};
use ultramarine_testkit::{alone, run_until};

// Most of these runs would take hours; each is killed after its first line.

#[test]
fn a_line_says_how_many_tasks_have_ended_and_of_how_many() {
    for (program, flags, of_all) in [
        (SUM_EULER, "--upto 100000 --tasks 100000 --skeleton par-map-sliced", "/25000"),
        (SUM_EULER, "--upto 100000 --tasks 100000 --skeleton par-map-sliced --partial", "/100000"),
        (LIOUVILLE, "--upto 100000000000 --tasks 200000 --skeleton par-map-chunked", "/50000"),
    ] {
        let flags = format!("{flags} --pes 2 --threads 2 --progress");
        let line = run_until(&mut alone(program, &flags), "tasks ended after");
        let (ended, rest) = line.split_once(' ').expect("there are words");
        let ended = ended.strip_suffix(of_all).unwrap_or_else(|| panic!("{flags}: {line}"));
        assert!(ended.parse::<u64>().is_ok_and(|ended| ended > 0), "{flags}: {line}");
        assert!(rest.starts_with("tasks ended after"), "{flags}: {line}");
    }
}

#[test]
fn a_line_says_how_many_nodes_of_a_graph_are_computed_and_of_how_many() {
    let flags = "--width 10 --steps 10000 --iterations 1000000 --pes 2 --threads 1 --progress";
    let line = run_until(&mut alone(TASK_BENCH, flags), "nodes computed after");
    let (computed, _) = line.split_once("/100001 nodes").unwrap_or_else(|| panic!("{line}"));
    assert!(computed.parse::<u64>().is_ok_and(|computed| computed > 0), "{line}");
}

#[test]
fn the_last_line_says_that_all_nodes_are_computed() {
    let flags = "--width 2 --steps 40 --iterations 1500000 --pes 2 --threads 1 --progress";
    let ended = TASK_BENCH.run(flags);
    let last = ended.err.lines().rfind(|line| line.contains("nodes computed after"));
    let last = last.expect("it takes longer than a second");
    assert!(last.contains("81/81 nodes"), "{last}");
}

#[test]
fn who_divides_shows_how_many_tasks_have_ended() {
    for (program, flags) in [
        (QUEENS, "--board 20"),
        (QUEENS, "--board 20 --skeleton push-divide-and-conquer"),
        (FIBONACCI, "--n 70"),
        (MANDELBROT, "--width 20000 --height 20000 --depth 200000"),
    ] {
        // The only thread is busy with it.
        let flags = format!("{flags} --pes 1 --threads 1 --progress");
        let line = run_until(&mut alone(program, &flags), "tasks ended after");
        let ended = line.split_once(' ').and_then(|(ended, _)| ended.parse::<u64>().ok());
        assert!(ended.is_some(), "{flags}: {line}");
    }
}
