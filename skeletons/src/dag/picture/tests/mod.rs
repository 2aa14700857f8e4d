//! Pictures of two runs, as they are known to be right: what differs is shown by
//! `EXPECTED_FOR_TESTS=write`, which writes those of now, to be looked at.

use super::*;
use crate::dag::{Builder, Node};
use std::path::Path;

/// Checks a text against the file of this name.
#[track_caller]
fn check(name: &str, text: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dag/picture/tests/expected");
    if std::env::var("EXPECTED_FOR_TESTS").is_ok_and(|what| what == "write") {
        std::fs::write(here.join(name), text).expect("the tree may be changed");
    }
    let expected = std::fs::read_to_string(here.join(name)).expect("it was written once");
    for (line, (expected, found)) in (1..).zip(expected.lines().zip(text.lines())) {
        assert_eq!(found, expected, "line {line} of {name}");
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "the end of {name}");
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "graphs take functions of references")]
fn leaf_with_quite_a_long_name_indeed(n: &u64) -> u64 {
    *n
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "graphs take functions of references")]
fn sum(_: &(), parts: &[&u64]) -> u64 {
    parts.iter().copied().sum()
}

/// A picture of what these PEs have computed, in microseconds.
fn picture(g: Builder, wanted: &[Node<u64>], computed: &[(Node<u64>, u32, u64)]) -> Picture {
    let computed = computed.iter().map(|(node, pe, took_us)| {
        let (index, took_ns) = (node.id().index, 1000 * took_us);
        (Computed { index, took_ns }, Pe::new(*pe))
    });
    let (computed, wanted) = (computed.collect(), wanted.iter().map(|node| node.id()).collect());
    Picture::new(Arc::new(g.finish()), wanted, computed)
}

/// Two trees that share a leaf, with edges that pass rows, on eight PEs. One node was computed
/// twice, one not at all though it is needed, and two are not needed.
fn forest() -> Picture {
    let mut g = Builder::new(0, 8);
    let leaves: Vec<_> =
        (0..6_u64).map(|n| g.source(leaf_with_quite_a_long_name_indeed, n)).collect();
    let pairs = [[0, 3], [1, 4], [2, 5]].map(|pair| pair.map(|n| leaves[n]));
    let pairs = pairs.map(|pair| g.reduce(sum, (), pair));
    let upper = g.reduce(sum, (), [pairs[2], pairs[0]]);
    let top = g.reduce(sum, (), [upper, leaves[0], pairs[1]]);
    let other = g.map(|n: &u64, sum: &u64| n + sum, 5, leaves[0]);
    let double = g.map(|n: &u64, sum: &u64| n * sum, 5, other);
    let _unneeded = g.map(|n: &u64, sum: &u64| n * sum, 5, other);
    let computed = [
        (leaves[2], 2, 1_000_000),
        (leaves[0], 0, 1),
        (leaves[1], 1, 19),
        (leaves[3], 3, 24),
        (leaves[4], 4, 123_456),
        (leaves[5], 5, 99),
        (pairs[0], 6, 1),
        (pairs[1], 7, 12),
        (pairs[1], 1, 10),
        (upper, 2, 1_000_000),
        (top, 2, 100_000_000),
        (other, 0, 2),
    ];
    picture(g, &[top, double], &computed)
}

/// A graph of one node, and one PE.
fn single() -> Picture {
    let mut g = Builder::new(0, 1);
    let node = g.source(|n: &u64| *n, 7);
    picture(g, &[node], &[(node, 0, 1)])
}

#[test]
fn graphs_are_drawn_as_they_should_be() {
    for (name, picture) in [("forest", forest()), ("single", single())] {
        check(&format!("{name}.svg"), &picture.to_svg().expect("it is small"));
        check(&format!("{name}.dot"), &picture.to_dot());
    }
}

#[test]
fn the_largest_graph_that_is_drawn_has_this_many_nodes() {
    for (count, is_drawn) in [(Picture::SVG_NODES_MAX, true), (Picture::SVG_NODES_MAX + 1, false)] {
        let mut g = Builder::new(0, 1);
        (0..count).for_each(|n| _ = g.source(|n: &u64| *n, u64::from(n)));
        assert_eq!(picture(g, &[], &[]).to_svg().is_some(), is_drawn);
    }
}

#[test]
fn the_short_name_of_a_function_is_the_last_part_of_its_path() {
    for (name, short) in [
        ("a::b", "b"),
        ("a::b::{{closure}}::{{closure}}", "b"),
        ("a::b<c::d<e>>", "b"),
        ("a::b<fn(c) -> d::e>", "b"),
        ("<a::b as c::d<e>>::f", "f"),
        ("<a::b>", "<a::b>"),
    ] {
        assert_eq!(nodes::short(name), short, "{name}");
    }
}
