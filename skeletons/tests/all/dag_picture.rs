//! What is known of a graph's run: who computed what, and how far it is.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "graphs take functions of references")]

use crate::common::{here, job};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ultramarine::skeletons::dag::{Builder, DagError, Node, Picture, dag};
use ultramarine::{Context, Pe};
use ultramarine_testkit::{PATIENCE, racks};

const EVERY: Duration = Duration::from_millis(1);

fn leaf(_: &u64) -> Vec<u32> {
    vec![here()]
}

/// The PEs that have computed the nodes below this one, and this one, in the order of the nodes.
fn concat(_: &(), parts: &[&Vec<u32>]) -> Vec<u32> {
    parts.iter().flat_map(|part| part.iter().copied()).chain([here()]).collect()
}

/// Pairs of leaves, of which one is not needed, below one node. The last leaf is wanted, too.
fn pairs(g: &mut Builder, pairs: &u64) -> (Node<Vec<u32>>, Node<Vec<u32>>) {
    let mut middle = Vec::new();
    for pair in 0..*pairs {
        let leaves = [2 * pair, 2 * pair + 1].map(|n| g.source(leaf, n));
        middle.push(g.reduce(concat, (), leaves));
    }
    let last = g.source(|n: &u64| leaf(n), *pairs);
    let _unneeded: Node<u64> = g.source(|n| *n, 7);
    (g.reduce(concat, (), middle), last)
}

/// The PE of each node that a picture shows as computed, each once.
fn pes(picture: &Picture) -> BTreeMap<u32, u32> {
    let dot = picture.to_dot();
    let node = |line: &str| {
        let (index, rest) = line.trim().strip_prefix('n')?.split_once(" [")?;
        let (tooltip, pe) = rest.split_once("· PE ")?;
        assert_eq!(tooltip.matches("PE ").count(), 1, "{line}");
        Some((index.parse().ok()?, pe.split_once('"')?.0.parse().ok()?))
    };
    dot.lines().filter_map(node).collect()
}

#[test]
fn a_picture_tells_who_computed_what() {
    job(racks(&[2, 1], 1), async |cx| {
        let ((all, last), picture) = dag(pairs, 10).run_with_picture(&cx).await.unwrap();
        let pes = pes(&picture);
        // All but one: 20 leaves, 10 pairs, the last leaf, the node below all.
        assert_eq!(
            pes.keys().copied().collect::<Vec<_>>(),
            [(0..31), (32..33)].map(Vec::from_iter).concat()
        );
        let expected: Vec<u32> = (0..30).chain([32]).map(|node| pes[&node]).collect();
        assert_eq!((all, last), (expected, vec![pes[&30]]));
        assert_eq!(pes.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
        let next = dag(pairs, 10).run(&cx).await.unwrap();
        assert_eq!(next.0.len(), 31, "the same graph without a picture");
        Ok(())
    });
}

/// The number of elements of each name in an SVG file whose tags fit together.
fn elements(text: &str) -> BTreeMap<String, usize> {
    use svg::node::element::tag::Type;
    use svg::parser::{Event, Parser};
    let (mut counts, mut open) = (BTreeMap::new(), Vec::new());
    for event in Parser::new(text) {
        match event {
            Event::Tag(name, Type::End, _) => assert_eq!(open.pop(), Some(name)),
            Event::Tag(name, kind, _) => {
                *counts.entry(name.to_owned()).or_default() += 1;
                if let Type::Start = kind {
                    open.push(name);
                }
            }
            Event::Error(error) => panic!("{error} in {text}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} in {text}");
    counts
}

#[test]
fn pictures_show_all_nodes_and_edges() {
    job(racks(&[2, 1], 1), async |cx| {
        let (_, picture) = dag(pairs, 10).run_with_picture(&cx).await.unwrap();
        let dot = picture.to_dot();
        assert_eq!(dot.matches("tooltip=").count(), 33, "{dot}");
        assert_eq!(dot.matches(" -> ").count(), 30, "{dot}");
        assert_eq!(dot.matches("penwidth=3").count(), 2, "{dot}");
        assert_eq!(dot.matches("dashed").count(), 1, "{dot}");
        let svg = picture.to_svg().unwrap();
        let elements = elements(&svg);
        assert_eq!(elements["g"], 33, "{svg}");
        // Those of nodes and of the file.
        assert_eq!(elements["title"], 34, "{svg}");
        for (pe, part) in pes(&picture).values().zip(["leaf", "leaf", "concat"]) {
            assert!(svg.contains(part) && svg.contains(&format!("· PE {pe}<")), "{svg}");
        }
        assert!(svg.contains("33 nodes, of which 32 are computed on 3 PEs"), "{svg}");
        Ok(())
    });
}

#[test]
fn large_graphs_have_no_svg_and_graphs_in_blocks_no_picture() {
    job(racks(&[2, 1], 1), async move |cx| {
        let (_, picture) = dag(pairs, 200).run_with_picture(&cx).await.unwrap();
        assert_eq!(picture.to_svg(), None);
        assert_eq!(dag(pairs, 200).nodes(&cx), Ok(603));
        assert!(picture.to_dot().contains("n602"));
        let in_blocks = dag(pairs, 10).blocks(1).run_with_picture(&cx).await;
        assert_eq!(in_blocks.unwrap_err(), DagError::InBlocks);
        Ok(())
    });
}

/// What a program has been told: what was done, and of how many.
type Told = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

fn check(told: &Told, end: (u64, Option<u64>)) {
    let told = told.lock().unwrap();
    assert!(told.is_sorted_by(|before, after| before.0 < after.0), "{told:?}");
    assert!(told.iter().all(|told| told.1 == end.1), "{told:?}");
    assert_eq!(told.last(), Some(&end), "{told:?}");
}

#[test]
fn progress_rises_while_nodes_are_computed_and_ends_with_all_of_them() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    /// All sources are on PE 1, and what reads them waits until the root has heard of all.
    fn gated(g: &mut Builder, sources: &u64) -> Node<u64> {
        let sources: Vec<_> = (0..*sources).map(|n| g.source(|n| *n, n)).collect();
        sources.iter().for_each(|source| g.place(*source, 1));
        let gate = |(): &(), all: &[&u64]| {
            let start = Instant::now();
            while SEEN.load(Relaxed) < all.len() as u64 {
                assert!(start.elapsed() < PATIENCE, "the root hears nothing");
                std::thread::sleep(EVERY);
            }
            all.iter().copied().sum()
        };
        let gate = g.reduce(gate, (), sources);
        g.place(gate, 0);
        gate
    }
    job(racks(&[1, 1, 1], 1), async |cx| {
        let told = Told::default();
        let tell = {
            let told = told.clone();
            move |done, of| {
                SEEN.store(done, Relaxed);
                told.lock().unwrap().push((done, of));
            }
        };
        assert_eq!(dag(gated, 20).progress(EVERY, tell).run(&cx).await, Ok(190));
        check(&told, (21, Some(21)));
        assert!(told.lock().unwrap().contains(&(20, Some(21))));
        Ok(())
    });
}

/// Runs the pairs with a journal. Returns the picture, and what the program was told.
async fn with_journal(cx: &Context, path: PathBuf) -> Result<(Picture, Told), DagError> {
    let build = |g: &mut Builder, count: &u64| {
        let wanted = pairs(g, count);
        g.keep(wanted.0);
        wanted
    };
    let told = Told::default();
    let tell = {
        let told = told.clone();
        move |done, of| told.lock().unwrap().push((done, of))
    };
    let run = dag(build, 10).progress(EVERY, tell).journal(path).run_with_picture(cx);
    Ok((run.await?.1, told))
}

#[test]
fn what_a_journal_has_is_not_computed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let first = path.clone();
    job(racks(&[1, 1], 1), async move |cx| {
        let (picture, told) = with_journal(&cx, first).await.unwrap();
        assert_eq!(pes(&picture).len(), 32);
        check(&told, (32, Some(32)));
        Ok(())
    });
    // Another job: in the same one the parts of the first run may still be there.
    job(racks(&[1, 1], 1), async move |cx| {
        let (picture, told) = with_journal(&cx, path).await.unwrap();
        assert_eq!(pes(&picture).keys().copied().collect::<Vec<_>>(), [30], "the last leaf");
        check(&told, (1, Some(1)));
        assert_eq!(picture.to_dot().matches("dashed").count(), 32);
        elements(&picture.to_svg().unwrap());
        Ok(())
    });
}

#[test]
fn any_pe_may_want_a_picture_and_so_may_the_same_graph_again() {
    job(racks(&[2, 1], 1), async |cx| {
        for n in 0..12 {
            let drawn = async |cx: Context, (): ()| {
                let (_, picture) = dag(pairs, 6).run_with_picture(&cx).await.unwrap();
                pes(&picture).len()
            };
            assert_eq!(cx.spawn_at(Pe::new(n % 3), drawn, ()).await, Ok(20));
        }
        Ok(())
    });
}
