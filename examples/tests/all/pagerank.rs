//! `pagerank` as its user sees it, alone and under the launcher that `MPIEXEC_FOR_TESTS` names
//! (without it those tests say so and pass).

use crate::common::PAGERANK;
use serde_json::Value;
use std::fs;
use ultramarine_testkit::run;

/// Less vertices than ranks, no edges, many dangling vertices, and an end before the last round.
const GRAPHS: [&str; 5] = [
    "--random 3 --edges 4",
    "--random 10 --edges 0",
    "--random 1000 --edges 700 --seed 2 --damping 0.5",
    "--random 1000 --edges 9000 --rounds 1",
    "--random 1000 --edges 9000 --rounds 1000 --tolerance 1e-6",
];

/// The ranks without parallelism.
fn sequential(graph: &str) -> [Value; 3] {
    ranks(&PAGERANK.report(&format!("{graph} --skeleton sequential --pes 1 --threads 1")))
}

fn ranks(report: &Value) -> [Value; 3] {
    ["result", "top", "rounds"].map(|field| report[field].clone())
}

#[test]
fn ranks_come_to_the_same_bits_as_one_loop() {
    for graph in GRAPHS {
        let expected = sequential(graph);
        for (pes, parts) in [(1, 8), (2, 8), (3, 5), (4, 8), (2, 1)] {
            let flags = format!("{graph} --pes {pes} --ranks {parts} --threads 1");
            assert_eq!(ranks(&PAGERANK.report(&flags)), expected, "{flags}");
        }
    }
    let flags = format!("{} --pes 3 --lane tcp --threads 1 --checkpoint-every 1", GRAPHS[2]);
    assert_eq!(ranks(&PAGERANK.report(&flags)), sequential(GRAPHS[2]));
    let rounds = sequential(GRAPHS[4])[2].as_u64().unwrap();
    assert!((2..1000).contains(&rounds), "{rounds}");
}

#[test]
fn graphs_of_files_are_ranked() {
    let scratch = tempfile::tempdir().expect("there is room");
    let path = scratch.path().join("graph.txt");
    let rank = |text: &str, flags: &str| {
        fs::write(&path, text).unwrap();
        let flags = format!("{} --pes 2 --threads 1 --json {flags}", path.display());
        run(&mut PAGERANK.command(&flags))
    };
    // All point at 2, which points nowhere: its rank r goes to all. r = a + (a + 2a·d) d, where a
    // is the rank of the others, and 3a + … = 1.
    let report = rank("# a comment\n0 2\n\n 1\t2 \n", "--rounds 200 --ranks 3").report();
    let top = report["top"].as_array().unwrap();
    let number = |nth: usize| (top[nth][0].as_u64().unwrap(), top[nth][1].as_f64().unwrap());
    let other = 1.0 / (3.0 + 2.0 * 0.85);
    for (nth, vertex, rank) in [(0, 2, other * (1.0 + 2.0 * 0.85)), (1, 0, other), (2, 1, other)] {
        assert_eq!(number(nth).0, vertex, "{report}");
        assert!((number(nth).1 - rank).abs() < 1e-12, "{report}");
    }
    for (text, said) in [
        ("", "graph.txt: there are no edges"),
        ("# nothing\n", "graph.txt: there are no edges"),
        ("0 1\n1\n", "graph.txt, line 2: `1` is not an edge"),
        ("0 1\n1 2 3\n", "graph.txt, line 2: `1 2 3` is not an edge"),
        ("0 -1\n", "graph.txt, line 1: `0 -1` is not an edge"),
        ("0 1000000000\n", "two numbers below a billion are expected"),
    ] {
        rank(text, "").fails_with(said);
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    PAGERANK.refuses(&[
        ("", "<FILE|--random <VERTICES>>"),
        ("--random 0", "'--random <VERTICES>': 0 is not in 1..=1000000000"),
        ("--random 5 --damping 1.1", "--damping 1.1: 0 to 1 is expected"),
        ("--random 5 --tolerance NaN", "--tolerance NaN: 0 to 1 is expected"),
        ("--random 5 --rounds 0", "'--rounds <N>': 0 is not in"),
        ("nowhere.txt", "cannot read the edges nowhere.txt: No such file"),
        ("--random 5 --checkpoint-every 0", "0 is not in 1..=1000000000"),
    ]);
}

#[cfg(feature = "mpi")]
#[test]
fn it_survives_deaths_with_the_same_bits() {
    // It takes long enough for all to die in it.
    let graph = "--random 50000 --edges 1000000 --rounds 150";
    let expected = sequential(graph);
    let flags = format!("{graph} --checkpoint-every 10 --restartable");
    for (lane, moments) in [("mpi", "0.2"), ("tcp", "0.05,0.06,0.2")] {
        PAGERANK.survives(moments, &format!("{flags} --lane {lane}"), |report| {
            assert_eq!(ranks(report), expected, "{lane} {moments}");
        });
    }
}

#[cfg(feature = "mpi")]
#[test]
fn plain_mpi_comes_to_the_same_bits() {
    for (ranks, graph) in [(1, GRAPHS[2]), (2, GRAPHS[4]), (3, GRAPHS[3]), (4, GRAPHS[0])] {
        let twin = env!("CARGO_BIN_EXE_pagerank_mpi");
        let Some(mut twin) = crate::common::launched(twin, ranks, graph) else { return };
        assert_eq!(run(&mut twin).report()["result"], sequential(graph)[0], "{graph}");
    }
}
