//! The files by which examples show a graph and its run.

use crate::common::{KARATSUBA, TASK_BENCH};
use crate::trace::{recorded, spans};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use ultramarine_testkit::{alone, run};

/// Two products.
const SMALL: &str = "--threshold 16 123456789012345 543210987654321";

/// The PEs that computed the nodes of a DOT file, and the number of those nodes.
fn computed(dot: &Path) -> (BTreeSet<u32>, usize) {
    let dot = fs::read_to_string(dot).expect("it was written");
    let pe = |line: &str| line.split_once("· PE ")?.1.split_once('"')?.0.parse().ok();
    let pes: Vec<u32> = dot.lines().filter_map(pe).collect();
    (pes.iter().copied().collect(), pes.len())
}

#[test]
fn both_files_are_written_and_each_node_is_in_the_trace() {
    let folder = tempfile::tempdir().expect("there is room");
    let [dot, svg, trace] = ["g.dot", "g.svg", "trace"].map(|name| folder.path().join(name));
    fs::write(&dot, "a former file").expect("there is room");
    let mut command = alone(KARATSUBA, SMALL);
    command.args("--pes 3 --threads 1 --json --progress".split(' '));
    command.arg("--dot").arg(&dot).arg("--svg").arg(&svg).arg("--trace").arg(&trace);
    assert_eq!(run(&mut command).report()["result"], "67063084292027052277861592745");
    let (_, nodes) = computed(&dot);
    let svg = fs::read_to_string(svg).expect("it was written");
    assert_eq!(svg.matches("<g>").count(), nodes, "{svg}");
    assert_eq!(spans(&recorded(&trace)[0], "::product"), nodes as u64);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 3);
}

#[test]
fn what_cannot_be_shown_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("there is room");
    // The work would take hours.
    let long = "--width 100 --steps 1000 --iterations 100000000 --pes 2";
    for (flags, why) in [
        ("--dot no/such.dot", "cannot write the graph no/such.dot: No such file"),
        ("--svg .", "cannot write the picture .: something else than a file is there"),
        ("--dot here --svg here", "--svg: here is that of another flag, too"),
        ("--svg here", "--svg: the graph has 100001 nodes, and a picture shows at most 500"),
        ("--dot here --skeleton rayon", "--dot: the skeleton rayon has no graph"),
    ] {
        let mut command = alone(TASK_BENCH, &format!("{long} {flags}"));
        run(command.current_dir(&folder)).fails_with(why);
    }
    let mut command = alone(KARATSUBA, &format!("{SMALL} --journal kept --svg ./kept"));
    let ended = run(command.current_dir(&folder));
    ended.fails_with("--svg: ./kept is that of another flag, too");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "nothing is left behind");
}

#[cfg(feature = "mpi")]
mod mpi {
    use super::*;
    use num_bigint::BigUint;

    const MIDDLE: &str = "--threshold 8 12345678901234567890 98765432109876543210";

    #[test]
    fn processes_show_what_they_computed() {
        let folder = tempfile::tempdir().expect("there is room");
        let dot = folder.path().join("g.dot");
        let Some(mut command) = KARATSUBA.launched(3, MIDDLE) else { return };
        let ended = run(command.args(["--json", "--dot"]).arg(&dot));
        assert_eq!(ended.report()["result"], "1219326311370217952237463801111263526900");
        let (pes, nodes) = computed(&dot);
        assert_eq!(pes, BTreeSet::from([0, 1, 2]));
        assert!(nodes > 30 && nodes % 3 == 1, "{nodes}");
    }

    /// What the dead had computed is not known, and what was computed again is there.
    #[test]
    fn a_picture_comes_though_processes_die() {
        let folder = tempfile::tempdir().expect("there is room");
        let dot = folder.path().join("g.dot");
        let factor = "7".repeat(40_000);
        let flags = "--threshold 512 --json --progress --kill-at 0.05,0.2";
        let Some(mut command) = KARATSUBA.launched(4, flags) else { return };
        let ended = run(command.args([&factor, &factor]).arg("--dot").arg(&dot));
        let square = factor.parse::<BigUint>().expect("it is a number").pow(2);
        assert_eq!(ended.report()["result"], square.to_string());
        assert!(computed(&dot).0.contains(&0));
    }
}
