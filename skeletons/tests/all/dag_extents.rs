//! Graphs that are not built as a whole, or not computed as a whole: in blocks, without end, with
//! a journal.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "builders take their arguments so")]

use crate::common::{here, job, no_run_is_left, on_all_hierarchies};
use futures_util::FutureExt;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use ultramarine::skeletons::dag::{
    Assignment, Builder, DagError, Node, dag, evaluate, evaluate_blocks,
};
use ultramarine_testkit::racks;

/// Rows of numbers, each from three of the row before; a block has some rows. Returns the last row.
fn rows(g: &mut Builder, &(width, rows): &(u32, u32)) -> Vec<Node<u64>> {
    let row_of = |g: &Builder, row: u32| -> Vec<Node<u64>> {
        (0..width).map(|n| g.node_of(g.block() - 1, row * width + n)).collect()
    };
    let sum = |(): &(), near: &[&u64]| {
        near.iter().fold(1, |sum: u64, n| sum.wrapping_mul(31).wrapping_add(**n))
    };
    let mut last: Vec<Node<u64>> = match g.block() {
        0 => (0..width).map(|n| g.source(|n| u64::from(*n), n)).collect(),
        1 => row_of(g, rows),
        _ => row_of(g, rows - 1),
    };
    for _ in 0..rows {
        let near = |n: usize| last[n.saturating_sub(1)..last.len().min(n + 2)].to_vec();
        last = (0..last.len()).map(|n| g.reduce(sum, (), near(n))).collect();
    }
    last
}

/// The same in one block.
fn whole(g: &mut Builder, &(width, all): &(u32, u32)) -> Vec<Node<u64>> {
    rows(g, &(width, all))
}

#[test]
fn a_graph_in_blocks_gives_what_it_gives_as_a_whole() {
    on_all_hierarchies(async |cx| {
        let expected = evaluate(whole, &(5, 12)).unwrap();
        assert_eq!(evaluate_blocks(rows, &(5, 3), 4).unwrap(), expected);
        for assignment in [Assignment::Levels, Assignment::Cyclic] {
            let graph = dag(rows, (5, 3)).blocks(4).assignment(assignment);
            assert_eq!(graph.run(&cx).await.unwrap(), expected);
        }
        assert_eq!(dag(whole, (5, 12)).drop_used().run(&cx).await.unwrap(), expected);
        Ok(())
    });
}

#[test]
fn a_pe_builds_the_blocks_whose_nodes_it_computes() {
    static BUILT: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
    job(racks(&[2, 2], 1), async |cx| {
        let build = |g: &mut Builder, (): &()| -> Node<u64> {
            BUILT[here() as usize].fetch_add(1, SeqCst);
            let leaf = |block: &u64| block * block;
            let own = g.source(leaf, u64::from(g.block()));
            if g.block() < 39 {
                return own;
            }
            let leaves: Vec<_> = (0..39).map(|block| g.node_of(block, 0)).chain([own]).collect();
            g.reduce(|(), all: &[&u64]| all.iter().copied().sum(), (), leaves)
        };
        assert_eq!(dag(build, ()).blocks(40).run(&cx).await, Ok((0..40).map(|n| n * n).sum()));
        let built: Vec<u64> = BUILT.iter().map(|built| built.load(SeqCst)).collect();
        // Each owns ten, and may be pushed nodes of others.
        assert!(built.iter().all(|built| (1..40).contains(built)), "{built:?}");
        Ok(())
    });
}

#[test]
fn graphs_in_blocks_that_differ_in_earlier_ones_are_different() {
    job(racks(&[1, 1], 1), async |cx| {
        let build = |g: &mut Builder, first: &u64| -> Node<u64> {
            if g.block() == 0 {
                return g.source(|n| *n, *first);
            }
            let before = g.node_of::<u64>(g.block() - 1, 0);
            g.map(|(), n: &u64| n + 1, (), before)
        };
        for first in 0..20 {
            assert_eq!(dag(build, first).blocks(3).run(&cx).await, Ok(first + 2));
        }
        Ok(())
    });
}

#[test]
fn what_earlier_blocks_do_not_have_is_an_error() {
    job(racks(&[1, 1], 1), async |cx| {
        let none = |g: &mut Builder, (): &()| {
            if g.block() == 0 {
                return g.source(|n| *n, 1_u64);
            }
            let (has, has_not) = (g.node_of(0, 0), g.node_of(0, 7));
            g.zip(|(), (a, b): (&u64, &u64)| a + b, (), (has, has_not))
        };
        let error = dag(none, ()).blocks(2).run(&cx).await.unwrap_err();
        assert!(matches!(error, DagError::NoSuchNode { node } if node.index == 7), "{error}");
        let other_type = |g: &mut Builder, (): &()| {
            if g.block() == 0 {
                g.source(|n: &u64| n.to_string(), 1);
                return g.source(|n| *n, 1_u64);
            }
            let text = g.node_of::<u64>(0, 0);
            g.map(|(), n: &u64| *n, (), text)
        };
        let error = dag(other_type, ()).blocks(2).run(&cx).await.unwrap_err();
        assert!(
            matches!(&error, DagError::Panicked { message, .. }
            if message.contains("another type")),
            "{error}"
        );
        Ok(())
    });
}

#[test]
fn a_builder_that_panics_ends_the_run_and_not_the_job() {
    job(racks(&[1, 1, 1], 1), async |cx| {
        let everywhere = |_: &mut Builder, (): &()| -> Node<u64> { panic!("no graph today") };
        let error = dag(everywhere, ()).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("no graph today"), "{error}");
        let elsewhere = |g: &mut Builder, (): &()| {
            assert!(here() != 1, "not on PE 1");
            g.source(|n| *n, 1_u64)
        };
        // PE 1 may say so before or after the result is there.
        let _ = dag(elsewhere, ()).run(&cx).await;
        let in_blocks = |g: &mut Builder, (): &()| {
            assert!(g.block() > 0, "no block 0");
            let before = g.node_of::<u64>(0, 0);
            g.map(|(), n: &u64| *n, (), before)
        };
        let error = dag(in_blocks, ()).blocks(2).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("no block 0"), "{error}");
        let foreign = |g: &mut Builder, (): &()| g.node_of::<u64>(3, 0);
        let error = dag(foreign, ()).run(&cx).await.unwrap_err();
        assert!(error.to_string().contains("earlier blocks only"), "{error}");
        Ok(())
    });
}

/// The sum of the numbers of all blocks so far, and what the block before has returned.
fn sums(g: &mut Builder, (): &()) -> Node<u64> {
    let block = g.block();
    let own = g.source(|n| *n, u64::from(block));
    let before = match block {
        0 => return own,
        1 => g.node_of(0, 0),
        _ => g.node_of(block - 1, 1),
    };
    g.zip(|(), (sum, own): (&u64, &u64)| sum + own, (), (before, own))
}

#[test]
fn a_stream_has_no_end_and_ends_when_it_is_dropped() {
    on_all_hierarchies(async |cx| {
        for window in [1, 2, 7] {
            let mut stream = dag(sums, ()).stream(&cx).unwrap().window(window);
            for n in 0..100_u64 {
                assert_eq!(stream.next().await, Ok(n * (n + 1) / 2));
            }
        }
        no_run_is_left(&cx).await
    });
}

#[test]
fn a_stream_goes_on_where_a_program_has_given_up_waiting() {
    job(racks(&[1, 1], 1), async |cx| {
        let mut stream = dag(sums, ()).stream(&cx).unwrap().window(3);
        let mut given_up = 0;
        for n in 0..100_u64 {
            let next = if let Some(next) = stream.next().now_or_never() {
                next
            } else {
                given_up += 1;
                stream.next().await
            };
            assert_eq!(next, Ok(n * (n + 1) / 2));
        }
        assert!(given_up > 0);
        Ok(())
    });
}

#[test]
fn a_stream_may_use_what_the_block_before_has_returned_only() {
    job(racks(&[1, 1], 1), async |cx| {
        let far = |g: &mut Builder, (): &()| {
            if g.block() < 40 {
                let block = g.block();
                return g.source(|n| *n, u64::from(block));
            }
            let far = g.node_of::<u64>(3, 0);
            g.map(|(), n: &u64| *n, (), far)
        };
        let mut stream = dag(far, ()).stream(&cx).unwrap().window(2);
        for n in 0..40 {
            assert_eq!(stream.next().await, Ok(n));
        }
        let error = stream.next().await.unwrap_err();
        assert!(error.to_string().contains("the block before"), "{error}");
        let inner = |g: &mut Builder, (): &()| {
            let block = g.block();
            let inner = g.source(|n| *n, u64::from(block));
            let before = if block == 3 { g.node_of(2, 0) } else { inner };
            g.map(|(), n: &u64| *n, (), before)
        };
        let mut stream = dag(inner, ()).stream(&cx).unwrap();
        for n in 0..3 {
            assert_eq!(stream.next().await, Ok(n));
        }
        let error = stream.next().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no node 0 of block 2; or it is of a stream, and was not returned, or is over"
        );
        Ok(())
    });
}

#[test]
fn what_a_journal_has_is_not_computed_again() {
    static COMPUTED: AtomicU64 = AtomicU64::new(0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    for start in 0..3 {
        let path = path.clone();
        job(racks(&[1, 1], 1), async move |cx| {
            let build = |g: &mut Builder, leaves: &u64| -> Node<u64> {
                let square = |n: &u64| {
                    COMPUTED.fetch_add(1, SeqCst);
                    n * n
                };
                let leaves: Vec<_> = (0..*leaves).map(|n| g.source(square, n)).collect();
                let sum = |(): &(), all: &[&u64]| {
                    COMPUTED.fetch_add(1, SeqCst);
                    all.iter().copied().sum()
                };
                let halves: Vec<Node<u64>> =
                    leaves.chunks(10).map(|half| g.reduce(sum, (), half.iter().copied())).collect();
                g.keep(halves[0]);
                let unneeded = g.source(square, 7);
                g.keep(unneeded);
                g.reduce(sum, (), halves)
            };
            let leaves = [20, 20, 30][start];
            let result = dag(build, leaves).journal(&path).run(&cx).await;
            assert_eq!(result, Ok((0..leaves).map(|n| n * n).sum()));
            // The first half is there in the second start. Another graph has another journal.
            assert_eq!(COMPUTED.swap(0, SeqCst), [23, 12, 34][start]);
            Ok(())
        });
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
