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
//! A task gives back a piece, its highest level, every [`PIECE_EVERY`]. So no part takes long, and
//! all workers are near the one that is first in the order. (Archibald, Maier, McCreesh, Stewart
//! and Trinder, Replicable parallel branch and bound search, 2018, has such an order for parts of a
//! fixed depth.)
//!
//! If a process dies, its supervised task runs again and asks for a part: it gets the same part as
//! before. What the dead task gave back stays, and is searched twice.

use super::Tree;
use super::frontier::{Frontier, HANDED_OVER_MAX};
use super::pool::{Part, Place, Pool};
use super::task::{SearchType, Splitter, visit_until_pause};
use crate::result_future::ResultFuture;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::task::AtomicWaker;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Key, Shared};
use ultramarine_runtime::wire::{decode, encode};
use ultramarine_topology::Distance;

/// How often a task gives back a piece.
pub(super) const PIECE_EVERY: Duration = Duration::from_micros(500);

/// A part that takes less than this share of [`PIECE_EVERY`] is too small to be taken alone.
const SMALL: u32 = 4;

/// What the home PE keeps of a search.
struct Home<N, F> {
    state: Mutex<State<N, F>>,
    /// The task that starts workers.
    starter: AtomicWaker,
}

struct State<N, F> {
    /// With the nodes of parts that supervised tasks have, encoded.
    pool: Pool<N, Option<Vec<u8>>>,
    found: F,
}

impl<N, F> Home<N, F> {
    fn lock(&self) -> MutexGuard<'_, State<N, F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Whether there may be others.
    gives_back: bool,
}

/// The request of a task for its next part.
#[derive(Serialize, Deserialize)]
struct Request<F> {
    worker: u64,
    /// The part that it has searched, and what it has found.
    ended: Option<(Place, F)>,
    /// The number of nodes that it wants at most.
    most: usize,
}

/// The answer.
#[derive(Serialize, Deserialize)]
struct Answer<N> {
    part: Part<N>,
    /// Whether other workers wait for a piece of it.
    is_work_wanted: bool,
}

/// Searches a part of a tree, on the home PE. The values of `key` are known there.
pub(super) async fn search_in_order<T: Tree, K: SearchType<T>>(
    cx: Context,
    search_type: K,
    (tree, key, part): (Shared<T>, Key, Part<T::Node>),
) -> Result<K::Found, TaskError> {
    let workers_max = (cx.pes() as usize).saturating_mul(cx.threads());
    let parts = cx.new_key();
    let _forget = ForgetOnDrop(&cx, parts);
    let home = cx.shared(parts, || Home::<T::Node, K::Found> {
        state: Mutex::new(State { pool: Pool::new(part), found: K::Found::default() }),
        starter: AtomicWaker::new(),
    });
    let run = move |cx, worker| run_worker::<T, K>(cx, search_type, worker);
    let (mut workers, mut numbers) = (FuturesUnordered::new(), 0..);
    let ended = poll_fn(|waker| {
        home.starter.register(waker.waker());
        loop {
            let wanted = home.lock().pool.tasks().min(workers_max);
            let new = numbers.by_ref().take(wanted.saturating_sub(workers.len()));
            workers.extend(new.map(|number| {
                let (tree, gives_back) = (tree.clone(), workers_max > 1);
                let worker = Worker { tree, key, parts, number, gives_back };
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

struct ForgetOnDrop<'a>(&'a Context, Key);

impl Drop for ForgetOnDrop<'_> {
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
        let Worker { tree, key, parts, number, gives_back } = worker;
        let (mut most, mut ended) = (1, None);
        loop {
            let request = Request { worker: number, ended: ended.take(), most };
            let answer = move |cx, request| next_part::<T, K>(cx, search_type, request);
            let answer = cx.ask(parts.home, answer, (parts, request)).await?;
            // Only a task that has a part makes shared values: the search cannot end before it.
            let Some(Answer { part, is_work_wanted }) = answer else { return Ok(()) };
            let begun = Instant::now();
            let due = gives_back.then(|| if is_work_wanted { begun } else { begun + PIECE_EVERY });
            let place = part.place.clone();
            let found = search_part(&cx, search_type, (&tree, key, parts), part, due).await?;
            ended = Some((place, found));
            let is_small = begun.elapsed() < PIECE_EVERY / SMALL;
            most = if is_small { 2 * most } else { most.div_ceil(2) };
        }
    };
    run.boxed()
}

/// Searches a part, but for the pieces that it gives back.
async fn search_part<T: Tree, K: SearchType<T>>(
    cx: &Context,
    search_type: K,
    (tree, key, parts): (&Shared<T>, Key, Key),
    part: Part<T::Node>,
    due: Option<Instant>,
) -> Result<K::Found, TaskError> {
    let mut knowledge = search_type.begin(cx, key);
    let mut found = K::Found::default();
    let mut splitter = Splitter::in_order(due);
    let mut given = Vec::new();
    // What comes last in the order is at the bottom.
    let mut rows = vec![(part.place, Frontier::of_siblings(part.nodes))];
    while let Some((place, mut frontier)) = rows.pop() {
        search_type.enter(&mut knowledge, &place);
        let mut pieces = 0;
        let mut give_back = |splitter: &mut Splitter, frontier: &mut Frontier<_, _>| {
            for nodes in splitter.take(frontier) {
                let place = place.of_piece(pieces);
                pieces += 1;
                if nodes.len() == HANDED_OVER_MAX {
                    // There may be more of these siblings: they come after the piece.
                    rows.push((place.after(nodes.len()), frontier.take_level()));
                }
                let give = move |cx, piece| take_back::<T, K>(cx, search_type, piece);
                given.push(cx.ask(parts.home, give, (parts, Part { place, nodes })));
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
        given.await?;
    }
    search_type.end(&knowledge, &mut found);
    Ok(found)
}

/// On the home PE: gives a task the part that comes next in the order.
async fn next_part<T: Tree, K: SearchType<T>>(
    cx: Context,
    search_type: K,
    (parts, request): (Key, Request<K::Found>),
) -> Option<Answer<T::Node>> {
    // The search may have been cancelled.
    let home = cx.known::<Home<T::Node, K::Found>>(parts)?;
    let Request { worker, ended, most } = request;
    let mut state = home.lock();
    let State { pool, found } = &mut *state;
    if let Some((place, more)) = ended {
        search_type.merge(found, more);
        pool.end(worker, &place);
    }
    let part = match pool.held(worker) {
        // It ran before, on a PE that has died.
        Some((place, nodes)) => {
            let nodes = decode(nodes.as_ref()?).expect("this PE has encoded it");
            Some(Part { place: place.clone(), nodes })
        }
        None => pool.take(most).inspect(|part| {
            pool.hold(worker, part.place.clone(), encode(&part.nodes).ok());
        }),
    };
    let is_work_wanted = pool.waiting() == 0;
    drop(state);
    if part.is_none() {
        home.starter.wake();
    }
    part.map(|part| Answer { part, is_work_wanted })
}

/// On the home PE: keeps a piece.
async fn take_back<T: Tree, K: SearchType<T>>(
    cx: Context,
    _: K,
    (parts, piece): (Key, Part<T::Node>),
) {
    if let Some(home) = cx.known::<Home<T::Node, K::Found>>(parts) {
        home.lock().pool.give(piece);
        home.starter.wake();
    }
}
