//! Pictures and timelines of two runs, as they are known to be right: what differs is shown by
//! `EXPECTED_FOR_TESTS=write`, which writes those of now, to be looked at.

use super::*;
use crate::dag::{Builder, Node};
use std::path::Path;

/// Checks a text against the file of this name.
#[track_caller]
fn check(name: &str, text: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dag/trace/tests/expected");
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

fn span(node: Node<u64>, graph: &TracedGraph, (pe, thread): (u32, u32), time: (u64, u64)) -> Span {
    let node = node.id();
    let name = graph.block.name(node.index).into();
    let (start_ns, end_ns) = time;
    Span { node, name, pe: Pe::new(pe), thread, start_ns, end_ns }
}

/// Two trees that share a leaf, with edges that pass rows, on eight PEs. One node was computed
/// twice, one not at all though it is needed, and two are not needed.
fn forest() -> Trace {
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
    let wanted = vec![top.id(), double.id()];
    let graph = TracedGraph { block: Arc::new(g.finish()), wanted };
    let of = |node, place, time| span(node, &graph, place, time);
    let mut spans = vec![
        of(leaves[0], (0, 0), (0, 1_500)),
        of(leaves[1], (1, 0), (10, 2_000)),
        of(leaves[2], (2, 1), (20, 1_000_020)),
        of(leaves[3], (3, 0), (30, 2_500)),
        of(leaves[4], (4, 0), (40, 1_234)),
        of(leaves[5], (5, 0), (50, 9_999)),
        of(pairs[0], (6, 3), (2_600, 2_700)),
        of(pairs[1], (1, 0), (2_600, 3_600)),
        of(pairs[1], (7, 0), (4_000, 5_000)),
        of(upper, (2, 0), (2_000_000, 3_000_000)),
        of(top, (2, 0), (4_000_000_000, 5_000_000_000)),
        of(other, (0, 0), (1_700, 1_900)),
    ];
    spans.sort_by_key(|span| span.start_ns);
    Trace { spans, graph: Some(graph) }
}

/// A graph of one node, and one PE.
fn single() -> Trace {
    let mut g = Builder::new(0, 1);
    let node = g.source(|n: &u64| *n, 7);
    let graph = TracedGraph { block: Arc::new(g.finish()), wanted: vec![node.id()] };
    let spans = vec![span(node, &graph, (0, 0), (1_000, 2_001))];
    Trace { spans, graph: Some(graph) }
}

#[test]
fn a_forest_is_drawn_as_it_should_be() {
    let trace = forest();
    check("forest.svg", &trace.to_svg().expect("it is small"));
    check("forest.dot", &trace.to_dot().expect("it is no stream"));
    check("forest.json", &trace.to_timeline());
}

#[test]
fn a_single_node_is_drawn_as_it_should_be() {
    let trace = single();
    check("single.svg", &trace.to_svg().expect("it is small"));
    check("single.dot", &trace.to_dot().expect("it is no stream"));
    check("single.json", &trace.to_timeline());
}

#[test]
fn a_timeline_of_blocks_has_the_short_names_of_functions() {
    let mut trace = single();
    trace.graph = None;
    trace.spans[0].name = "a::<b>::c \"\\\n".into();
    let text = trace.to_timeline();
    assert!(text.contains(r#"{"name":"c \"\\\u000a","cat""#), "{text}");
    assert!(text.contains(r#""function":"a::<b>::c \"\\\u000a"}}"#), "{text}");
}

#[test]
fn the_largest_graph_that_is_drawn_has_this_many_nodes() {
    for (count, is_drawn) in [(Trace::SVG_NODES_MAX, true), (Trace::SVG_NODES_MAX + 1, false)] {
        let mut g = Builder::new(0, 1);
        (0..count).for_each(|n| _ = g.source(|n: &u64| *n, u64::from(n)));
        let graph = TracedGraph { block: Arc::new(g.finish()), wanted: Vec::new() };
        let trace = Trace { spans: Vec::new(), graph: Some(graph) };
        assert_eq!(trace.to_svg().is_ok(), is_drawn);
    }
}

#[test]
fn the_spans_of_all_pes_are_on_one_clock() {
    let page = |opened_ns, spans: &[(u32, u32, u64, u64)]| Page {
        opened_ns,
        names: vec!["f".to_owned(), "g".to_owned()],
        spans: spans
            .iter()
            .map(|(name, index, start_ns, end_ns)| {
                let node = NodeId { block: 0, index: *index };
                let (thread, start_ns, end_ns) = (0, *start_ns, *end_ns);
                (*name, notes::PageSpan { node, thread, start_ns, end_ns })
            })
            .collect(),
    };
    let (first, late) = (page(100, &[(1, 0, 5, 9), (0, 1, 30, 31)]), page(110, &[(0, 2, 1, 2)]));
    let spans = spans(vec![(Pe::new(0), vec![late]), (Pe::new(1), vec![first])]);
    let found: Vec<_> =
        spans.iter().map(|s| (&*s.name, s.pe.number(), s.start_ns, s.end_ns)).collect();
    assert_eq!(found, [("g", 1, 5, 9), ("f", 0, 11, 12), ("f", 1, 30, 31)]);
}

#[test]
fn threads_are_numbered_as_they_compute_their_first_nodes() {
    let mut notes = Notes::begin();
    let now = std::time::Instant::now();
    let node = |index| NodeId { block: 0, index };
    notes.note(node(0), "f", now..now);
    std::thread::scope(|scope| {
        scope.spawn(|| notes.note(node(1), "g", now..now)).join().expect("it does not panic");
    });
    notes.note(node(2), "g", now..now);
    let page = notes.page(1);
    assert_eq!(page.names, ["g"]);
    let found: Vec<_> = page.spans.iter().map(|(name, span)| (*name, span.thread)).collect();
    assert_eq!(found, [(0, 1), (0, 0)]);
    assert_eq!(notes.page(3).spans.len(), 0);
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
        assert_eq!(picture::short(name), short, "{name}");
    }
}
