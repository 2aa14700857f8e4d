//! A search in the order of a depth-first search by one worker, though many take part. A branch and
//! bound that searches far ahead does so with a bound that is not as good as it will be, and visits
//! nodes that one worker would prune.
//!
//! The home PE, which began the search, keeps the parts of the tree that are left, in order. Each
//! worker has a task that takes the first part there, searches it, and takes the next:
//!
//! ```text
//!  a task          home PE: parts in order      another task
//!    │ takes next ────→ │ ○ ○ ○ ○ │                  │
//!    │ ←── part ─────── │ ○ ○ ○   │ ←── takes next ──│
//!    │ piece ─────────→ │ ● ● ○ ○ │ ── part ○ ──────→│
//!    │ … its subtrees   │ ● ● ○   │                  │
//!    │ found, next ───→ │ ● ● ○   │                  │
//! ```
//!
//! A task gives back a piece, its highest level, every [5 ms](PIECE_EVERY). So no part takes long,
//! and all workers are near the one that is first in the order. (Archibald, Maier, McCreesh,
//! Stewart and Trinder, Replicable parallel branch and bound search, 2018, has such an order for
//! parts of a fixed depth.) While there are fewer parts than workers, a task on the home PE, where
//! the search begins and most of it stays, gives back a piece every 250 µs: of a knapsack most
//! pieces are pruned at once. (Two PEs against one worker, jobs of 0.1 s: 1.3 times as fast, and
//! 0.7 times without this. Cliques were 5 to 20 % slower if a task did so whenever a thief asked.)
//!
//! A task on another PE asks for its next parts when it begins some, so that it does not wait for
//! the answer.
//!
//! If a process dies, its supervised task runs again and asks for a part: it gets the same parts as
//! before. What the dead task gave back stays, and is searched twice.

use super::Tree;
use super::frontier::{Frontier, HANDED_OVER_MAX};
use super::pool::{Part, Place, Pool};
use super::task::{SearchType, Splitter};
use super::walk::visit_until_pause;
use crate::result_future::ResultFuture;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::task::AtomicWaker;
use serde::{Deserialize, Serialize};
use std::future::{poll_fn, ready};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Key, Portable, Shared};
use ultramarine_topology::Distance;

/// How often a task gives back a piece, if the job has few workers.
const PIECE_EVERY: Duration = Duration::from_millis(5);

/// A part that takes less than this share of that time is too small to be taken alone.
const SMALL: u32 = 4;

/// The home PE can give parts to this number of workers in time. With more, each takes longer.
const WORKERS_IN_TIME: usize = 256;

/// A task gives back this number of pieces at once, if all are siblings.
const PIECES_AT_ONCE: usize = 16;

/// What the home PE keeps of a search.
struct Home<F> {
    state: Mutex<State<F>>,
    /// The number of workers of the job.
    workers: usize,
    /// The task that starts workers.
    starter: AtomicWaker,
    /// Whether there are fewer parts than workers, for the tasks on this PE.
    shortage: Arc<AtomicBool>,
}

struct State<F> {
    pool: Pool,
    found: F,
}

impl<F> Home<F> {
    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether there are fewer parts than workers; returns it.
    fn note_shortage(&self, pool: &Pool) -> bool {
        let is_short = pool.tasks() < self.workers;
        self.shortage.store(is_short, Relaxed);
        is_short
    }
}

/// A task that takes parts.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Tree")]
struct Worker<T: Tree> {
    tree: Shared<T>,
    /// The key of the values that each PE keeps for the search.
    key: Key,
    /// The key of the parts on the home PE.
    parts: Key,
    number: u64,
    /// How often it gives back a piece, if there may be other workers.
    every: Option<Duration>,
}

/// The request of a task for its next part.
#[derive(Serialize, Deserialize)]
struct Request<F> {
    worker: u64,
    /// The number of parts that it has. More are held for it if it ran before, on a PE that died.
    parts: usize,
    /// The parts that it has searched, and what it has found.
    ended: Option<(Vec<Place>, F)>,
    /// The number of nodes that it wants at most; `None` if it has had none yet.
    most: Option<usize>,
}

/// The answer: no parts, if none are left now.
#[derive(Default, Serialize, Deserialize)]
struct Answer<F> {
    parts: Vec<Part>,
    /// What is known, for a task that has had no parts yet.
    known: F,
    /// Whether other workers wait for a piece of them.
    is_work_wanted: bool,
}

/// Searches a part of a tree, on the home PE. The values of `key` are known there.
pub(super) async fn search_in_order<T: Tree, K: SearchType<T>>(
    cx: Context,
    search_type: K,
    (tree, key, part): (Shared<T>, Key, Part),
) -> Result<K::Found, TaskError> {
    let workers_max = (cx.pes() as usize).saturating_mul(cx.threads());
    let factor = workers_max.div_ceil(WORKERS_IN_TIME) as u32;
    let every = (workers_max > 1).then(|| PIECE_EVERY.saturating_mul(factor));
    let parts = cx.new_key();
    let _forget = ForgetPartsOnDrop(&cx, parts);
    let home = cx.shared(parts, || Home {
        state: Mutex::new(State { pool: Pool::new(part), found: K::Found::default() }),
        workers: workers_max,
        starter: AtomicWaker::new(),
        shortage: Arc::default(),
    });
    let run = move |cx, worker| run_worker::<T, K>(cx, search_type, worker);
    let (mut workers, mut numbers) = (FuturesUnordered::new(), 0..);
    let ended = poll_fn(|waker| {
        home.starter.register(waker.waker());
        loop {
            let wanted = home.lock().pool.tasks().min(workers_max);
            let new = numbers.by_ref().take(wanted.saturating_sub(workers.len()));
            workers.extend(new.map(|number| {
                let worker = Worker { tree: tree.clone(), key, parts, number, every };
                AbortOnDrop::new(cx.spawn(Distance::ONE, run, worker))
            }));
            match workers.poll_next_unpin(waker) {
                Poll::Ready(Some(Ok(Ok(())))) => {}
                Poll::Ready(Some(Err(error) | Ok(Err(error)))) => return Poll::Ready(Err(error)),
                // Those that found no part have ended as well: a cancelled one could leave the tree
                // in the memory of its PE.
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    ended.await?;
    Ok(std::mem::take(&mut home.lock().found))
}

struct ForgetPartsOnDrop<'a>(&'a Context, Key);

impl Drop for ForgetPartsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

fn run_worker<T: Tree, K: SearchType<T>>(
    cx: Context,
    search_type: K,
    worker: Worker<T>,
) -> ResultFuture<()> {
    let run = async move {
        let Worker { tree, key, parts, number, every } = worker;
        let ask = |ended: &mut Option<_>, held, most| {
            let request = Request { worker: number, parts: held, ended: ended.take(), most };
            let answer = move |cx, request| ready(next_parts::<T, K>(&cx, search_type, request));
            cx.ask(parts.home, answer, (key, parts, request))
        };
        let (mut most, mut ended, mut next) = (None, None, None);
        loop {
            let mut answer = match next.take() {
                Some(asked) => asked.await?,
                None => Answer::default(),
            };
            if answer.parts.is_empty() {
                answer = ask(&mut ended, 0, most).await?;
            }
            // Only a task that has a part makes shared values: the search cannot end before it.
            let Answer { parts: taken, known, is_work_wanted } = answer;
            if taken.is_empty() {
                return Ok(());
            }
            let now = most.unwrap_or(1);
            next = (cx.pe() != parts.home).then(|| ask(&mut ended, taken.len(), Some(now)));
            let begun = Instant::now();
            let home = cx.known::<Home<K::Found>>(parts);
            let shortage = home.map(|home| home.shortage.clone());
            let splitter = Splitter::in_order(every, is_work_wanted, shortage);
            let places = taken.iter().map(|part| part.place.clone()).collect();
            let found =
                search_parts(&cx, search_type, (&tree, key, parts), (taken, known), splitter)
                    .await?;
            ended = Some((places, found));
            let is_small = every.is_some_and(|every| begun.elapsed() < every / SMALL);
            most = Some(if is_small { 2 * now } else { now.div_ceil(2) }.min(HANDED_OVER_MAX));
        }
    };
    run.boxed()
}

/// Searches parts, but for the pieces that it gives back.
async fn search_parts<T: Tree, K: SearchType<T>>(
    cx: &Context,
    search_type: K,
    (tree, key, parts): (&Shared<T>, Key, Key),
    (taken, known): (Vec<Part>, K::Found),
    mut splitter: Splitter,
) -> Result<K::Found, TaskError> {
    let tree: &T = tree;
    let mut knowledge = search_type.begin(cx, key);
    search_type.learn(&knowledge, &known);
    let mut found = K::Found::default();
    let mut given = Vec::new();
    // What comes last in the order is at the bottom.
    let mut rows = Vec::new();
    for part in taken.into_iter().rev() {
        rows.push((part.place.clone(), Frontier::of_siblings(part.nodes()?)));
    }
    while let Some((place, mut frontier)) = rows.pop() {
        search_type.enter(&mut knowledge, &place);
        let mut pieces = 0;
        let mut give_back = |splitter: &mut Splitter, frontier: &mut Frontier<_, _>| {
            for nodes in splitter.take(frontier) {
                let mut place = place.of_piece(pieces);
                pieces += 1;
                let mut give = |nodes: &[_], place: &Place| {
                    let give = async |cx: Context, piece| take_back::<K::Found>(&cx, piece);
                    let piece = Part::new(place.clone(), nodes);
                    given.push(piece.map(|piece| cx.ask(parts.home, give, (parts, piece))));
                };
                give(&nodes, &place);
                if nodes.len() == HANDED_OVER_MAX {
                    // There may be more of these siblings.
                    let mut level = frontier.take_level();
                    for _ in 1..PIECES_AT_ONCE {
                        place = place.after(HANDED_OVER_MAX);
                        let nodes = level.take_highest();
                        if nodes.is_empty() {
                            break;
                        }
                        give(&nodes, &place);
                    }
                    rows.push((place.after(HANDED_OVER_MAX), level));
                }
            }
        };
        let mut visit =
            |node: &_, ceiling| search_type.visit(&knowledge, tree, node, ceiling, &mut found);
        let children = |node| tree.children(node);
        while visit_until_pause(
            cx,
            &mut splitter,
            &mut frontier,
            children,
            &mut visit,
            &mut give_back,
        ) {
            cx.yield_now().await;
        }
    }
    // Before its part ends, or the search would end without them.
    for given in given {
        given?.await?;
    }
    search_type.end(&knowledge, &mut found);
    Ok(found)
}

/// On the home PE: gives a task the parts that come next in the order.
fn next_parts<T: Tree, K: SearchType<T>>(
    cx: &Context,
    search_type: K,
    (key, parts, request): (Key, Key, Request<K::Found>),
) -> Answer<K::Found> {
    // The search may have been cancelled.
    let Some(home) = cx.known::<Home<K::Found>>(parts) else { return Answer::default() };
    let Request { worker, parts, ended, most } = request;
    let mut state = home.lock();
    let State { pool, found } = &mut *state;
    if let Some((places, more)) = ended {
        search_type.merge(found, more);
        for place in places {
            pool.end(worker, &place);
        }
    }
    let mut parts = pool.give_again(worker, parts);
    if parts.is_empty() {
        parts = pool.take(worker, most.unwrap_or(1));
    }
    let is_work_wanted = home.note_shortage(pool);
    drop(state);
    if parts.is_empty() {
        home.starter.wake();
    }
    let known = if most.is_none() { search_type.known(cx, key) } else { K::Found::default() };
    Answer { parts, known, is_work_wanted }
}

/// On the home PE: keeps a piece.
fn take_back<F: Portable>(cx: &Context, (parts, piece): (Key, Part)) {
    if let Some(home) = cx.known::<Home<F>>(parts) {
        let mut state = home.lock();
        state.pool.give(piece);
        home.note_shortage(&state.pool);
        drop(state);
        home.starter.wake();
    }
}
