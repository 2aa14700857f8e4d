//! The lines by which programs say how far they are, where there is no terminal.

mod common;

use common::run_until;

/// These runs would take hours; each is killed after its first line.
#[test]
fn a_line_says_how_many_tasks_have_been_started_and_of_how_many() {
    const EULER: &str = env!("CARGO_BIN_EXE_sum_euler");
    const LIOUVILLE: &str = env!("CARGO_BIN_EXE_liouville");
    for (program, flags, of_all) in [
        (EULER, "--upto 1000000 --tasks 100000 --skeleton par-map-sliced", "/25000"),
        (EULER, "--upto 1000000 --tasks 100000 --skeleton par-map-sliced --partial", "/100000"),
        (LIOUVILLE, "--upto 100000000000 --tasks 200000 --skeleton par-map-chunked", "/50000"),
    ] {
        let flags = format!("{flags} --pes 2 --threads 2 --progress");
        let line = run_until(&mut common::alone(program, &flags), "tasks started after");
        let (started, rest) = line.split_once(' ').expect("there are words");
        let started = started.strip_suffix(of_all).unwrap_or_else(|| panic!("{flags}: {line}"));
        assert!(started.parse::<u64>().is_ok_and(|started| started > 0), "{flags}: {line}");
        assert!(rest.starts_with("tasks started after"), "{flags}: {line}");
    }
}
