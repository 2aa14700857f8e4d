//! `maxclique` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass). The graphs are families of the DIMACS challenge, made
//! here by their rules; their clique numbers are known.

use crate::common::MAXCLIQUE;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use ultramarine_testkit::{Ended, folder, run};

const SPLITTINGS: [&str; 6] =
    ["ordered", "steal-driven", "depth:0", "depth:2", "budget:1", "budget:50"];

/// A graph by a rule, in DIMACS format, with this first line.
fn graph<T>(comment: &str, vertices: &[T], joined: impl Fn(&T, &T) -> bool) -> String {
    let (mut edges, mut count) = (String::new(), 0);
    for (n, one) in vertices.iter().enumerate() {
        for (m, _) in vertices[..n].iter().enumerate().filter(|(_, other)| joined(one, other)) {
            writeln!(edges, "e {} {}", n + 1, m + 1).expect("a string takes all");
            count += 1;
        }
    }
    format!("c {comment}\np edge {} {count}\n{edges}", vertices.len())
}

/// Words of this many bits, joined if they differ in `least` at least.
fn hamming(bits: u32, least: u32) -> String {
    let comment = format!(
        "hamming{bits}-{least}: words of {bits} bits, joined if they differ in {least} at least"
    );
    graph(&comment, &(0..1 << bits).collect::<Vec<u32>>(), |a, b| (a ^ b).count_ones() >= least)
}

/// Pairs of this many things, joined if they have none in common.
fn johnson(things: u32) -> String {
    let comment = format!(
        "johnson{things}-2-4: pairs of {things} things, joined if they have none in common"
    );
    let pairs: Vec<u32> = (0..1 << things).filter(|set: &u32| set.count_ones() == 2).collect();
    graph(&comment, &pairs, |a, b| a & b == 0)
}

/// The neighbours of one vertex in Keller's graph of dimension 4, whose vertices are four numbers
/// from 0 to 3, joined if two differ at least, and one of these by two.
fn keller4() -> String {
    let digits = |n: u32| [0, 2, 4, 6].map(|shift| n >> shift & 3);
    let is_joined = |one: &[u32; 4], other: &[u32; 4]| {
        let apart = || one.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
        apart().filter(|d| *d > 0).count() >= 2 && apart().any(|d| d == 2)
    };
    let vertices: Vec<_> = (0..256).map(digits).filter(|v| is_joined(v, &[0; 4])).collect();
    graph("keller4", &vertices, is_joined)
}

/// A file for one test.
fn file(test: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let file = folder!(test).join("graph.clq");
    std::fs::write(&file, content).expect("the folder is ours");
    file
}

/// What is shipped.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs").join(name)
}

/// The vertices reported are a clique of that many.
fn is_clique(report: &Value, graph: &str, size: usize) {
    assert_eq!(report["result"], size, "{report}");
    let vertices = report["vertices"].as_array().expect("they are listed");
    assert_eq!(vertices.len(), size);
    for (n, one) in vertices.iter().enumerate() {
        for other in &vertices[..n] {
            let edges = [format!("\ne {one} {other}\n"), format!("\ne {other} {one}\n")];
            assert!(edges.iter().any(|edge| graph.contains(edge)), "{one} {other}: {report}");
        }
    }
}

#[test]
fn the_shipped_graphs_are_what_they_are_called() {
    for (name, content) in [("hamming6-4.clq", hamming(6, 4)), ("johnson8-2-4.clq", johnson(8))] {
        let shipped = std::fs::read_to_string(shipped(name)).expect("it is shipped");
        assert!(shipped == content, "{name}");
        let report = run(&mut MAXCLIQUE.given(&self::shipped(name), "--json")).report();
        is_clique(&report, &content, 4);
        assert_eq!(report["program"], "maxclique");
    }
}

#[test]
fn known_clique_numbers_come_out_however_the_work_is_split() {
    let graphs = [
        ("hamming6-2", hamming(6, 2), 32),
        ("johnson8", johnson(8), 4),
        ("keller4", keller4(), 11),
    ];
    for (first, (name, graph, size)) in graphs.into_iter().enumerate() {
        let file = file(name, &graph);
        let report = run(&mut MAXCLIQUE.given(&file, "--skeleton sequential --json")).report();
        is_clique(&report, &graph, size);
        let lanes = ["memory", "tcp"].into_iter().cycle().skip(first);
        for (splitting, lane) in SPLITTINGS.into_iter().zip(lanes) {
            let mut command = MAXCLIQUE.given(&file, "--pes 3 --threads 1 --json");
            command.args(["--lane", lane, "--splitting", splitting]);
            is_clique(&run(&mut command).report(), &graph, size);
            let report = run(command.arg("--supervised")).report();
            is_clique(&report, &graph, size);
            assert_eq!(report["supervised"], true, "{name} {lane} {splitting}");
        }
    }
}

#[test]
fn words_and_hierarchy_are_shown() {
    let file = file("words", "p col 4 3\ne 1 2\ne 4 2\ne 1 4\n");
    let ended = run(&mut MAXCLIQUE.given(&file, "--pes 2 --threads 1 --show-topology --progress"));
    assert!(ended.is_success, "{}", ended.err);
    for text in ["PE 1: rank 1", "maxclique (par-maximise): 3\n", "vertices: [1,2,4]\n"] {
        assert!(ended.out.contains(text), "{text} is not in {}", ended.out);
    }
}

/// Runs a graph of this content.
fn given(content: impl AsRef<[u8]>) -> Ended {
    run(&mut MAXCLIQUE.given(&file("given", content), "--pes 2 --threads 1 --json"))
}

#[test]
fn unusual_files_are_read() {
    for (content, size) in [
        ("p edge 0 0\n", 0),
        ("c\n\np edge 3 0", 1),
        ("p  edge\t3 2\r\ne 1 2\r\ne 2 1\r\nc the end\r\n", 2),
        ("p edge 2 0\ne 1 2\n", 2),
    ] {
        let ended = given(content);
        assert_eq!(ended.report()["result"], size, "{content:?}");
        assert!(!ended.err.contains("warning"), "{}", ended.err);
    }
    let ended = given("p edge 3 2\ne 1 2\n");
    assert_eq!(ended.report()["result"], 2);
    assert!(ended.err.contains("announces 2 edges and has 1: is it whole?"), "{}", ended.err);
    assert_eq!(given(b"c caf\xe9\np edge 1 0\n").report()["result"], 1, "Latin 1");
}

#[test]
fn malformed_files_are_refused() {
    for (content, text) in [
        ("", "line 1: there is no `p` line"),
        ("c nothing\nc at all\n", "line 2: there is no `p` line"),
        ("c\ne 1 2\n", "line 2: an edge before the `p` line"),
        ("p edge 3 1\np edge 3 1\n", "line 2: there is a `p` line already"),
        ("p edge 3\n", "line 1: `c …`, `p edge VERTICES EDGES` or `e VERTEX VERTEX` is expected"),
        ("p graph 3 1\n", "not `p graph 3 1`"),
        ("p edge three 1\n", "line 1: `three`: invalid digit"),
        ("p edge 3 -1\n", "line 1: `-1`: invalid digit"),
        ("p edge 16385 1\n", "line 1: 16385 is not from 0 to 16384"),
        ("p edge 99999999999999999999 1\n", "number too large"),
        ("p edge 3 1\ne 1 4\n", "line 2: 4 is not from 1 to 3"),
        ("p edge 3 1\ne 0 1\n", "line 2: 0 is not from 1 to 3"),
        ("p edge 3 1\ne 1 x\n", "line 2: `x`: invalid digit"),
        ("p edge 3 1\ne 2 2\n", "line 2: an edge joins vertex 2 to itself"),
        ("p edge 3 1\ne 1\n", "is expected, not `e 1`"),
        ("p edge 3 1\ne 1 2 3\n", "is expected, not `e 1 2 3`"),
        ("p edge 3 1\n1 2\n", "is expected, not `1 2`"),
    ] {
        let ended = run(&mut MAXCLIQUE.given(&file("malformed", content), "--pes 2 --threads 1"));
        ended.fails_with(text);
        ended.fails_with("graph.clq is malformed: line");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    let good = shipped("hamming6-4.clq");
    for (flags, text) in [
        ("--skeleton par-map", "'--skeleton <SKELETON>'"),
        ("--splitting budget:0", "a task visits one node at least"),
        ("--splitting depth:x", "`x`: invalid digit"),
    ] {
        run(&mut MAXCLIQUE.given(&good, flags)).fails_with(text);
    }
    MAXCLIQUE.run("").fails_with("--file <GRAPH.clq>");
    MAXCLIQUE.refuses_what_is_no_file("graph");
}

#[cfg(feature = "mpi")]
#[test]
fn any_number_of_ranks_finds_it_on_either_lane() {
    let (graph, path) = (keller4(), file("ranks", keller4()));
    let flags = format!("--file {}", path.display());
    MAXCLIQUE.on_ranks(4, &flags, |report| is_clique(report, &graph, 11));
}

#[cfg(feature = "mpi")]
#[test]
fn the_best_is_found_though_two_die() {
    is_found_though_two_die(&SPLITTINGS[..3]);
}

#[cfg(feature = "mpi")]
#[test]
fn the_best_is_found_though_two_die_however_it_is_split() {
    is_found_though_two_die(&SPLITTINGS[3..]);
}

#[cfg(feature = "mpi")]
fn is_found_though_two_die(splittings: &[&str]) {
    // Its bound is weak: it takes half a second.
    let name = format!("deaths-{}", splittings[0].replace(':', "-"));
    let (graph, path) = (johnson(16), file(&name, johnson(16)));
    for splitting in splittings {
        let flags = format!("--splitting {splitting} --file {}", path.display());
        MAXCLIQUE.survives("0.02,0.06", &flags, |report| is_clique(report, &graph, 8));
    }
}
