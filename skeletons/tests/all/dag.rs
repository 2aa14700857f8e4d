//! Graphs in whole jobs: what they give on one thread, on any hierarchy, with each node computed
//! once.

use crate::common::{here, hierarchies, job, no_run_is_left, on_all_hierarchies};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use ultramarine::skeletons::dag::{Assignment, Builder, DagError, Node, dag, evaluate};
use ultramarine::{Context, LaneKind, Options, Pe};
use ultramarine_testkit::{Log, bounded, eventually, racks};

/// Numbers that look random.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

static COMPUTED: AtomicU64 = AtomicU64::new(0);

/// A graph of numbers and words with this many nodes of each, drawn with a seed. The last nodes
/// are wanted.
fn drawn(g: &mut Builder, &(seed, nodes): &(u64, u64)) -> (Node<u64>, Node<String>) {
    let mut state = seed;
    let mut numbers = vec![g.source(|n| *n, seed)];
    let mut words = vec![g.source(ToString::to_string, seed)];
    for n in 0..nodes {
        let number = numbers[draw(&mut state) as usize % numbers.len()];
        let other = numbers[draw(&mut state) as usize % numbers.len()];
        let word = words[draw(&mut state) as usize % words.len()];
        numbers.push(match draw(&mut state) % 4 {
            0 => g.source(|n| *n, n),
            1 => g.map(|n, input: &u64| input.wrapping_mul(31).wrapping_add(*n), n, number),
            2 => g.zip(
                |n, (number, word): (&u64, &String)| n ^ number.rotate_left(word.len() as u32),
                n,
                (number, word),
            ),
            _ => {
                let count = draw(&mut state) as usize % 6;
                let some = (0..count).map(|n| numbers[(n * 7) % numbers.len()]).chain([number]);
                g.reduce(
                    |(), all: &[&u64]| {
                        COMPUTED.fetch_add(1, Relaxed);
                        all.iter().fold(0, |sum: u64, n| sum.wrapping_mul(3).wrapping_add(**n))
                    },
                    (),
                    some.collect::<Vec<_>>(),
                )
            }
        });
        words.push(g.zip(
            |n, (word, one, other): (&String, &u64, &u64)| {
                let (tail, sum) =
                    (&word[word.len().saturating_sub(20)..], one.wrapping_add(*other));
                format!("{tail}{}{n}", sum % 10)
            },
            n,
            (word, number, other),
        ));
    }
    (numbers[numbers.len() - 1], words[words.len() - 1])
}

#[test]
fn a_graph_gives_what_it_gives_on_one_thread() {
    for (places, seed) in hierarchies().zip(1..) {
        job(places, async move |cx| {
            for nodes in [0, 1, 10, 300] {
                let argument = (seed, nodes);
                COMPUTED.store(0, Relaxed);
                let expected = evaluate(drawn, &argument).unwrap();
                let count = COMPUTED.swap(0, Relaxed);
                for assignment in [Assignment::Levels, Assignment::Cyclic] {
                    COMPUTED.store(0, Relaxed);
                    let result = dag(drawn, argument).assignment(assignment).run(&cx).await;
                    assert_eq!(result.unwrap(), expected);
                    assert_eq!(COMPUTED.load(Relaxed), count, "each node once: {assignment:?}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn work_is_spread() {
    job(racks(&[2, 2], 1), async |cx| {
        let build = |g: &mut Builder, leaves: &u64| -> Node<Vec<u32>> {
            let leaves: Vec<_> = (0..*leaves).map(|n| g.source(|_| vec![here()], n)).collect();
            let concat = |(): &(), parts: &[&Vec<u32>]| -> Vec<u32> {
                parts.iter().flat_map(|part| part.iter().copied()).collect()
            };
            g.reduce_tree(concat, (), 4, leaves).unwrap()
        };
        let pes = dag(build, 64).run(&cx).await.unwrap();
        for pe in 0..4 {
            // Each owns 16, and may have pushed some of them on.
            assert!(pes.contains(&pe), "{pes:?}");
        }
        Ok(())
    });
}

#[test]
fn a_node_that_panics_is_named() {
    job(racks(&[1, 1, 1], 1), async |cx| {
        let build = |g: &mut Builder, bad: &u64| -> Node<u64> {
            let check = |bad: &u64, n: &u64| {
                assert!(n != bad, "{n} is bad");
                *n
            };
            let sources: Vec<_> = (0..9).map(|n| g.source(|n| *n, n)).collect();
            let checked = sources.into_iter().map(|source| g.map(check, *bad, source));
            let checked: Vec<_> = checked.collect();
            g.reduce(|(), all: &[&u64]| all.iter().copied().sum(), (), checked)
        };
        assert_eq!(dag(build, 100).run(&cx).await, Ok(36));
        let error = dag(build, 7).run(&cx).await.unwrap_err();
        assert!(
            matches!(&error, DagError::Panicked { node, message, .. }
                if node.index == 16 && message == "7 is bad"),
            "{error}"
        );
        Ok(())
    });
}

/// How many nodes of [`flaky`] still fail, and how many were computed well.
static FAILURES: AtomicU64 = AtomicU64::new(0);
static WELL: AtomicU64 = AtomicU64::new(0);

/// A sum of squares, of which one fails now and then.
fn flaky(g: &mut Builder, &(seed, bad): &(u64, u32)) -> Node<u64> {
    let pes = g.pes();
    let square = |&(n, may_fail): &(u64, bool)| {
        let fail = |left: u64| left.checked_sub(1).filter(|_| may_fail);
        let failed = FAILURES.fetch_update(Relaxed, Relaxed, fail);
        assert!(failed.is_err(), "not yet");
        WELL.fetch_add(1, Relaxed);
        n * n
    };
    let squares: Vec<_> = (0..8).map(|n| g.source(square, (n + seed, n as u32 == bad))).collect();
    squares.iter().zip(0..).for_each(|(node, n)| g.place(*node, n % pes));
    g.reduce(|(), all: &[&u64]| all.iter().copied().sum(), (), squares)
}

#[test]
fn a_graph_that_has_failed_may_be_tried_again_at_once() {
    on_all_hierarchies(async |cx| {
        for (seed, failures) in (0..20).zip([1, 3].into_iter().cycle()) {
            FAILURES.store(failures, Relaxed);
            WELL.store(0, Relaxed);
            let run = || dag(flaky, (seed, seed as u32 % 8)).run(&cx);
            for _ in 0..failures {
                let error = run().await.unwrap_err();
                assert!(
                    matches!(&error, DagError::Panicked { message, .. }
                        if message == "not yet"),
                    "{error}"
                );
            }
            let sum = (seed..seed + 8).map(|n| n * n).sum();
            assert_eq!(run().await, Ok(sum));
            assert_eq!(FAILURES.load(Relaxed), 0, "each has failed as often as is meant to be");
        }
        Ok(())
    });
}

#[test]
fn what_fails_after_the_graph_was_run_again_is_tried_again() {
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    static MAY_FAIL: AtomicBool = AtomicBool::new(false);
    let options = Options::default().places(racks(&[1], 1)).threads(2).lane(LaneKind::Memory);
    let main = async |cx: Context| {
        let build = |g: &mut Builder, n: &u64| -> Node<u64> {
            let fail_first = |n: &u64| {
                if BEGUN.fetch_add(1, Relaxed) == 0 {
                    eventually("it was run again", || MAY_FAIL.load(Relaxed));
                    panic!("not yet");
                }
                *n
            };
            g.source(fail_first, *n)
        };
        let mut first = pin!(dag(build, 7).run(&cx));
        assert!(first.as_mut().now_or_never().is_none());
        while BEGUN.load(Relaxed) == 0 {
            cx.sleep(Duration::from_millis(1)).await;
        }
        let mut second = pin!(dag(build, 7).run(&cx));
        assert!(second.as_mut().now_or_never().is_none());
        MAY_FAIL.store(true, Relaxed);
        assert_eq!((second.await, first.await), (Ok(7), Ok(7)));
        assert_eq!(BEGUN.load(Relaxed), 2);
        Ok(())
    };
    bounded(move || options.run(main)).expect("the job is well");
}

/// How often each graph of [`built_late`] was built.
static BUILT: [AtomicU64; 20] = [const { AtomicU64::new(0) }; 20];

/// The second PE that builds it fails.
fn built_late(g: &mut Builder, &(which, pe): &(u64, u32)) -> Node<u64> {
    assert_ne!(BUILT[which as usize].fetch_add(1, Relaxed), 1, "not yet");
    let first = g.source(|n| *n, which);
    g.place(first, pe);
    let last = g.map(|(), n: &u64| *n, (), first);
    g.place(last, pe + 1);
    last
}

#[test]
fn a_builder_that_has_failed_may_be_tried_again_at_once() {
    job(racks(&[1, 1, 1], 1), async |cx| {
        for which in 0..BUILT.len() as u64 {
            let error = dag(built_late, (which, 1)).run(&cx).await.err();
            assert!(matches!(error, Some(DagError::Unbuilt { .. })), "{error:?}");
            assert_eq!(dag(built_late, (which, 1)).run(&cx).await, Ok(which));
        }
        Ok(())
    });
}

/// Can be encoded, and not decoded: the format does not say what was left out.
#[derive(Serialize, Deserialize)]
struct Holey {
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
}

#[test]
fn a_result_that_cannot_be_decoded_is_named() {
    job(racks(&[1, 1], 1), async |cx| {
        let read = |g: &mut Builder, (): &()| -> Node<u64> {
            let holey = g.source(|()| Holey { left_out: None }, ());
            g.place(holey, 1);
            let read = g.map(|(), holey: &Holey| holey.left_out.unwrap_or(7), (), holey);
            g.place(read, 0);
            read
        };
        let Err(error) = dag(read, ()).run(&cx).await else { panic!("it is not there") };
        let DagError::Unsendable { what, node, name, why } = &error else { panic!("{error}") };
        assert_eq!((what.as_str(), node.to_string()), ("result", "node 0".to_owned()));
        assert!(name.contains("a_result_that_cannot_be_decoded"), "{name}");
        assert!(why.contains("decoding failed"), "{why}");
        // The job goes on.
        assert!(dag(small, (1, 10)).run(&cx).await.is_ok());
        Ok(())
    });
}

#[test]
fn a_builder_that_is_not_pure_is_found_out() {
    static BUILT: AtomicU64 = AtomicU64::new(0);
    job(racks(&[1, 1], 1), async |cx| {
        let build = |g: &mut Builder, (): &()| g.source(|n| *n, BUILT.fetch_add(1, Relaxed));
        let error = dag(build, ()).run(&cx).await.unwrap_err();
        assert!(matches!(error, DagError::Differs { .. }), "{error}");
        Ok(())
    });
}

/// A graph that is like no other with another seed.
fn small(g: &mut Builder, &(seed, sources): &(u64, u64)) -> Node<u64> {
    let sources: Vec<_> = (0..sources).map(|n| g.source(|n| *n, n + seed)).collect();
    g.reduce(|(), all: &[&u64]| all.iter().copied().sum(), (), sources)
}

#[test]
fn the_same_graph_may_be_run_again_and_at_the_same_time() {
    job(racks(&[2, 1], 2), async |cx| {
        for seed in 0..50 {
            assert_eq!(dag(small, (seed % 3, 6)).run(&cx).await, Ok(15 + 6 * (seed % 3)));
        }
        let both = (dag(small, (7, 6)).run(&cx), dag(small, (7, 6)).run(&cx));
        assert_eq!(futures_util::future::join(both.0, both.1).await, (Ok(57), Ok(57)));
        Ok(())
    });
}

/// All closures of a function have the same name.
#[test]
fn graphs_that_differ_in_a_closure_are_different() {
    job(racks(&[2], 1), async |cx| {
        for n in 2..30 {
            let double = dag(|g: &mut Builder, n: &[u64; 2]| g.source(|n| 2 * n, n[0]), [n, 0]);
            let square = dag(|g: &mut Builder, n: &[u64; 2]| g.source(|n| n * n, n[0]), [n, 0]);
            let text = dag(
                |g: &mut Builder, n: &[u64; 2]| g.source(|n: &u64| n.to_string(), n[0]),
                [n, 0],
            );
            assert_eq!(double.run(&cx).await, Ok(2 * n));
            assert_eq!(square.run(&cx).await, Ok(n * n));
            assert_eq!(text.run(&cx).await, Ok(n.to_string()));
        }
        Ok(())
    });
}

#[test]
fn a_run_that_is_given_up_does_not_spoil_the_next() {
    job(racks(&[1, 1, 1], 1), async |cx| {
        for n in 0..100 {
            let wait = Duration::from_micros(n % 3 * 20);
            let _ = cx.timeout(wait, dag(small, (5, 6)).run(&cx)).await;
            assert_eq!(dag(small, (5, 6)).run(&cx).await, Ok(45), "{n}");
        }
        Ok(())
    });
}

#[test]
fn any_task_may_run_a_graph() {
    job(racks(&[2, 1], 1), async |cx| {
        let run = async |cx: Context, seed: u64| dag(small, (seed, 6)).run(&cx).await.unwrap();
        let results = (0..30).map(|n| cx.spawn_at(Pe::new(n % 3), run, 4)).collect::<Vec<_>>();
        for run in results {
            assert_eq!(run.await.unwrap(), 39);
        }
        for seed in 0..20 {
            cx.spawn_at(Pe::new(2), run, seed).await.unwrap();
        }
        no_run_is_left(&cx).await
    });
}

/// Numbers in rows, each from itself and its neighbours: `steps` rows of `width` arrays.
fn rows(g: &mut Builder, &(width, steps): &(u64, u64)) -> Node<u64> {
    let first = |n: &u64| vec![*n; 1000];
    let later = |(): &(), near: &[&Vec<u64>]| -> Vec<u64> {
        let sum = near.iter().map(|array| array[0]).fold(0, u64::wrapping_add);
        vec![sum; 1000]
    };
    let mut row: Vec<_> = (0..width).map(|n| g.source(first, n)).collect();
    for _ in 0..steps {
        let near = |n: usize| row[n.saturating_sub(1)..row.len().min(n + 2)].to_vec();
        row = (0..row.len()).map(|n| g.reduce(later, (), near(n))).collect();
    }
    let sum = |(): &(), all: &[&Vec<u64>]| all.iter().map(|a| a[0]).fold(0, u64::wrapping_add);
    g.reduce(sum, (), row)
}

#[test]
fn memory_may_be_limited() {
    job(racks(&[1, 1], 1), async |cx| {
        let argument = (6, 50);
        let expected = evaluate(rows, &argument).unwrap();
        for memory in [10_000, 100_000, u64::MAX] {
            assert_eq!(dag(rows, argument).memory(memory).run(&cx).await, Ok(expected));
        }
        let error = dag(rows, argument).memory(7999).run(&cx).await.unwrap_err();
        assert!(matches!(error, DagError::TooLarge { bytes: 8024, limit: 7999, .. }), "{error}");
        Ok(())
    });
}

/// The sum of the ends of two chains of arrays that begin with the same one.
fn two_chains(g: &mut Builder, &(first, nodes): &(u64, u64)) -> Node<u64> {
    let begin = g.source(|n: &u64| vec![*n; 1000], first);
    let copy = |(): &(), array: &Vec<u64>| array.clone();
    let ends = [0, 1].map(|_| (0..nodes).fold(begin, |last, _| g.map(copy, (), last)));
    g.zip(|(), (a, b): (&Vec<u64>, &Vec<u64>)| a[0] + b[0], (), (ends[0], ends[1]))
}

/// What is computed again so seldom is no reason to say it at once.
#[test]
fn that_the_memory_was_a_little_too_small_is_said_at_the_end() {
    for (memory, is_said) in [(8100, true), (100_000, false)] {
        job(racks(&[1], 1), async move |cx| {
            let log = Log::default();
            let mut run = pin!(dag(two_chains, (1, 10)).memory(memory).run(&cx));
            let sum = poll_fn(|task| log.note(|| run.as_mut().poll(task))).await;
            assert_eq!(sum, Ok(2));
            let lines = log.take();
            let said = lines.iter().filter(|line| line.starts_with("WARN: `memory` of 8100 bytes"));
            assert_eq!(said.count(), usize::from(is_said), "{lines:?}");
            Ok(())
        });
    }
}

/// Panics when it is dropped.
#[derive(Serialize, Deserialize)]
struct Explosive(u64);

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("as is meant to be");
    }
}

fn explosives(g: &mut Builder, &(first, end): &(u64, u64)) -> Node<u64> {
    let all: Vec<_> = (first..end).map(|n| g.source(|n| Explosive(*n), n)).collect();
    g.reduce(|(), all: &[&Explosive]| all.iter().map(|one| one.0).sum::<u64>(), (), all)
}

#[test]
fn results_that_panic_when_they_are_dropped_spoil_nothing() {
    job(racks(&[1, 2], 1), async |cx| {
        for _ in 0..3 {
            assert_eq!(dag(explosives, (0, 40)).run(&cx).await.unwrap(), 780);
        }
        // What is left is dropped when the run is over.
        cx.sleep(Duration::from_millis(50)).await;
        Ok(())
    });
}
