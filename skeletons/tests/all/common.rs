//! Jobs on assorted hierarchies, whose PEs are threads.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ultramarine::prelude::*;
use ultramarine::skeletons::dag::runs_known;
use ultramarine::{LaneKind, Options, Place, Result};
use ultramarine_testkit::{PATIENCE, bounded, racks};

/// Runs a job with a PE of one worker at each of these places.
pub(crate) fn job<F, T>(places: Vec<Place>, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    job_with_workers(1, places, main);
}

/// Runs a job with a PE of this number of workers at each of these places.
pub(crate) fn job_with_workers<F, T>(workers: usize, places: Vec<Place>, main: F)
where
    F: FnOnce(Context) -> T + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let options = Options::default().places(places).threads(workers).lane(LaneKind::Memory);
    bounded(move || options.run(main)).expect("the job is well");
}

/// Waits until a number is the same for a while.
pub(crate) async fn stands_still(cx: &Context, number: &AtomicU64) {
    let start = Instant::now();
    loop {
        let before = number.load(Relaxed);
        cx.sleep(Duration::from_millis(50)).await;
        if number.load(Relaxed) == before {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it goes on and on");
    }
}

/// Assorted hierarchies of 1 to 5 PEs.
pub(crate) fn hierarchies() -> impl Iterator<Item = Vec<Place>> {
    let flat = (1..=5).map(|pes| vec![Place::default(); pes]);
    flat.chain(
        [vec![1, 1], vec![2, 1], vec![2, 2], vec![3, 2], vec![1, 1, 3]].map(|r| racks(&r, 1)),
    )
}

/// Runs `main` on each of these.
pub(crate) fn on_all_hierarchies<F, T>(main: F)
where
    F: Fn(Context) -> T + Copy + Send + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    hierarchies().for_each(|places| job(places, main));
}

/// Waits until no PE knows the run of a graph any more.
pub(crate) async fn no_run_is_left(cx: &Context) -> Result<()> {
    let known = async |cx: Context, (): ()| runs_known(&cx);
    for pe in (0..cx.pes()).map(Pe::new) {
        while cx.spawn_at(pe, known, ()).await? > 0 {
            cx.sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

/// How often the trivial problems of [`words`] were solved, for each test. The PEs are threads of
/// this process.
static SOLVED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The number since the last question.
pub(crate) fn solved(test: usize) -> u64 {
    SOLVED[test].swap(0, Relaxed)
}

/// The words over `a` and `b` up to this length, in order: which shows the order of the parts, of
/// which there are 0 to 3.
pub(crate) fn words<const TEST: usize>()
-> impl Algorithm<Problem = (String, usize), Solution = Vec<String>> {
    DivideAndConquer::new(
        |(_, length): &(String, usize)| *length == 0,
        |(word, _)| {
            SOLVED[TEST].fetch_add(1, Relaxed);
            vec![word]
        },
        |(word, length)| {
            let longer = |letter| (format!("{word}{letter}"), length - 1);
            let all = [(word.clone(), 0), longer('a'), longer('b')];
            all.into_iter().take(if word.ends_with("bb") { 0 } else { 3 }).collect::<Vec<_>>()
        },
        |_, parts| parts.concat(),
    )
}

/// A tree without a solution.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct NoSolution<T>(pub(crate) T);

impl<T: Tree> Tree for NoSolution<T> {
    type Node = T::Node;

    fn children(&self, node: T::Node) -> impl Iterator<Item = T::Node> + Send {
        self.0.children(node)
    }
}

impl<T: Tree<Node: Clone>> Bounded for NoSolution<T> {
    fn value(&self, _: &T::Node) -> Option<u64> {
        None
    }

    fn bound(&self, _: &T::Node) -> u64 {
        u64::MAX
    }
}

/// The PE whose worker this is, by the name of the thread.
pub(crate) fn here() -> u32 {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(30) {
        std::hint::spin_loop();
    }
    let thread = std::thread::current();
    let name = thread.name().and_then(|name| name.strip_prefix("pe")?.split_once('-'));
    name.and_then(|(number, _)| number.parse().ok()).expect("a worker is called pe3-worker0 or so")
}
