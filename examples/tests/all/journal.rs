//! `--journal FILE` of the examples, as its user sees it: a program that is started again computes
//! nothing again.

use crate::common::{
    FIBONACCI, KNAPSACK, LIOUVILLE, MANDELBROT, MAXCLIQUE, MERGE_SORT, Program, QUADRATURE, QUEENS,
    SUM_EULER, UTS,
};
use std::path::Path;
use std::process::{Command, Stdio};
use ultramarine_testkit::{alone, eventually, folder, run};

/// Two graphs.
const HAMMING: &str = concat!("--file ", env!("CARGO_MANIFEST_DIR"), "/graphs/hamming6-4.clq");
const JOHNSON: &str = concat!("--file ", env!("CARGO_MANIFEST_DIR"), "/graphs/johnson8-2-4.clq");

/// Programs of each kind, their flags, the flags of another computation, and a skeleton that has no
/// tasks.
#[rustfmt::skip]
const PROGRAMS: [(Program, &str, &str, &str); 10] = [
    (SUM_EULER, "--upto 900 --tasks 30", "--upto 900 --tasks 31", "rayon"),
    (LIOUVILLE, "--upto 90000", "--upto 90001", "fork-map"),
    (MANDELBROT, "--depth 50", "--depth 51", "rayon"),
    (MERGE_SORT, "--numbers 9000", "--numbers 9000 --seed 2", "sequential"),
    (FIBONACCI, "--n 25", "--n 24", "fork-divide-and-conquer"),
    (QUEENS, "--board 9", "--board 8", "rayon"),
    (QUADRATURE, "--tolerance 1e-5", "--tolerance 1e-5 --to 2", "sequential"),
    (UTS, "-t1 -a3 -d8 -b4 -r19", "-t1 -a3 -d8 -b4 -r18", "sequential"),
    (MAXCLIQUE, HAMMING, JOHNSON, "sequential"),
    (KNAPSACK, "--items 60", "--items 60 --seed 3", "rayon"),
];

fn kept(program: Program, flags: &str, file: &Path) -> Command {
    let mut command = alone(program, flags);
    command.args(["--pes", "2", "--threads", "1", "--json", "--journal"]).arg(file);
    command
}

#[test]
fn what_is_in_the_journal_is_not_computed_again() {
    for (program, flags, ..) in PROGRAMS {
        let name = program.name();
        let file = folder!("again").join(name);
        let expected = program.report(flags);
        let first = run(&mut kept(program, flags, &file)).report();
        assert_eq!(first["result"], expected["result"], "{name}");
        assert!(first["tasks"].as_u64() > Some(10), "{name}: {first}");
        let strict = ["--journal-required", "--journal-build", "refuse"];
        let again = run(kept(program, flags, &file).args(strict)).report();
        assert_eq!(again["result"], expected["result"], "{name}");
        assert_eq!(again["tasks"], 0, "{name}");
    }
}

/// The process is killed, and not asked to end.
#[test]
fn a_search_that_is_killed_goes_on_where_it_was() {
    let (file, flags) =
        (folder!("killed").join("uts"), "-t1 -a3 -d10 -b4 -r19 --splitting depth:0");
    let uts = || kept(UTS, flags, &file);
    let mut job = uts().stdout(Stdio::null()).spawn().expect("it can be started");
    // A header has a few hundred bytes, and a record less than a hundred.
    let length = || file.metadata().map_or(0, |metadata| metadata.len());
    eventually("there are some records", || length() > 10_000);
    job.kill().expect("it is a child");
    let status = job.wait().expect("it is a child");
    assert_eq!(status.code(), None, "it was killed before its end");
    let report = run(&mut uts()).report();
    assert_eq!(report["result"], 4_130_071);
    // Each task is for a record that was missing, of a thousand and a few.
    assert!((1..=950).contains(&report["tasks"].as_u64().expect("a number")), "{report}");
}

#[test]
fn the_journal_of_other_flags_is_refused() {
    for (program, flags, other, _) in PROGRAMS {
        let name = program.name();
        let file = folder!("refused").join(name);
        assert!(run(&mut kept(program, flags, &file)).is_success, "{name}");
        let ended = run(&mut kept(program, other, &file));
        ended.fails_with("belongs to something else");
        ended.fails_with("name another file, or remove this one");
    }
}

#[test]
fn a_skeleton_without_tasks_has_no_journal() {
    for (program, flags, _, skeleton) in PROGRAMS {
        let name = program.name();
        let file = folder!("none").join(name);
        let ended = run(kept(program, flags, &file).args(["--skeleton", skeleton]));
        ended.fails_with(&format!("--journal: the skeleton {skeleton} has no tasks"));
        assert!(!file.exists(), "{name}");
        let ended = program.run(&format!("{flags} --journal-required"));
        ended.fails_with("--journal <FILE>");
    }
}
