//! Copies of a journal on other hosts: then its folder may be on a local disk.
//!
//! If the host of the caller dies, the first PE of the next host takes over, and begins the
//! skeleton anew. So that PE keeps a copy, under the same path on its own host; with more copies
//! the first of each host that follows does. What the caller appends it also sends them, in
//! batches: one is on its way to each at a time. A PE that comes new is sent all results so far.
//!
//! A copy may lack what came home in the last moments. Its items are computed again.

use super::thread::on_own_thread;
use futures_util::future::pending;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use ultramarine_journal::{Identity, Journal, OnFailure, Positions};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_runtime::wire::encode;
use ultramarine_topology::Pe;

/// A batch is sent when it has this number of bytes.
const BATCH_BYTES: usize = 1 << 20;

/// How long a skeleton waits at its end for the copies.
const END_WITHIN: Duration = Duration::from_mins(2);

/// How long the end of a copy waits for the disk.
const FINISH_WITHIN: Duration = Duration::from_mins(1);

/// The copies that this process keeps, by path.
static KEPT: Mutex<BTreeMap<PathBuf, Copy>> = Mutex::new(BTreeMap::new());

/// A copy that this process keeps.
struct Copy {
    journal: Journal,
    /// What it had when it was opened.
    had: Positions,
}

/// Results for the copy on another PE.
#[derive(Serialize, Deserialize)]
struct Batch {
    path: PathBuf,
    identity: Identity,
    /// It is the first: the copy is opened.
    begins: bool,
    records: Vec<(Range<u64>, Vec<u8>)>,
    /// It is the last: the copy is closed.
    ends: bool,
}

impl Batch {
    /// Appends them to the copy of this process. Returns why that is not possible.
    fn keep(self) -> Option<String> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if self.begins {
            drop(kept.remove(&self.path));
            match Journal::open(&self.path, &self.identity, OnFailure::Warn, |_, _| Ok(())) {
                Ok((journal, report)) => {
                    kept.insert(self.path.clone(), Copy { journal, had: report.done });
                }
                Err(error) => return Some(error.to_string()),
            }
        }
        let Some(copy) = kept.get(&self.path) else {
            return Some(format!("the copy `{}` is closed", self.path.display()));
        };
        for (positions, bytes) in self.records {
            if !copy.had.contains(positions.start) {
                copy.journal.append(positions, &bytes);
            }
        }
        let closed = if self.ends { kept.remove(&self.path) } else { None };
        drop(kept);
        closed.and_then(|copy| copy.journal.finish(FINISH_WITHIN).err()).map(|e| e.to_string())
    }
}

async fn keep(_: Context, batch: Batch) -> Option<String> {
    let kept = on_own_thread(move || batch.keep()).await;
    kept.unwrap_or_else(|error| Some(error.to_string()))
}

/// Closes the copy that this process has kept for another, before it goes on with it itself.
pub(super) fn close(path: &Path) {
    let copy = KEPT.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    drop(copy);
}

/// How far a PE has been sent the results.
#[derive(Default)]
struct Keeper {
    sent: usize,
    is_busy: bool,
    /// It has all, or can keep no copy.
    is_done: bool,
}

/// The copies of the journal of a skeleton that runs.
pub(super) struct Copies {
    cx: Context,
    path: PathBuf,
    identity: Arc<Identity>,
    /// How many there should be.
    wanted: usize,
    /// The positions of all results so far, in their order.
    all: Vec<Range<u64>>,
    keepers: BTreeMap<Pe, Keeper>,
    /// How many PEs had died when the keepers were chosen.
    dead: Option<u32>,
    /// The batches that are on their way.
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Sent> + Send>>>,
}

/// What became of a batch: the PE, how much it has then, and why it has not.
type Sent = (Pe, usize, Result<Option<String>, TaskError>);

impl Copies {
    pub(super) fn new(
        cx: &Context,
        path: PathBuf,
        identity: Arc<Identity>,
        wanted: usize,
        all: Vec<Range<u64>>,
    ) -> Self {
        let (cx, keepers) = (cx.clone(), BTreeMap::new());
        let under_way = FuturesUnordered::new();
        Copies { cx, path, identity, wanted, all, keepers, dead: None, under_way }
    }

    /// A result has come home.
    pub(super) fn note(&mut self, positions: Range<u64>) {
        self.all.push(positions);
    }

    /// Sends what the copies lack, and waits until a batch has arrived.
    pub(super) async fn go_on<V: Portable>(&mut self, results: &BTreeMap<u64, V>) {
        self.send(results, false);
        match self.under_way.next().await {
            Some(sent) => self.note_sent(sent),
            None => pending().await,
        }
    }

    /// Sends what the copies lack, and closes them.
    pub(super) async fn end<V: Portable>(&mut self, results: &BTreeMap<u64, V>) {
        let cx = self.cx.clone();
        let ended = cx.timeout(END_WITHIN, async {
            self.send(results, true);
            while let Some(sent) = self.under_way.next().await {
                self.note_sent(sent);
                self.send(results, true);
            }
        });
        if ended.await.is_err() {
            tracing::warn!("a copy of the journal is not complete after {END_WITHIN:?}");
        }
    }

    /// Sends the results that the copies lack, as far as no batch is on its way. If the skeleton
    /// `ends`, the copies are closed when they have all.
    fn send<V: Portable>(&mut self, results: &BTreeMap<u64, V>, ends: bool) {
        self.choose();
        for (pe, keeper) in &mut self.keepers {
            let first = keeper.sent;
            let has_more = first < self.all.len() || ends && first > 0;
            if keeper.is_busy || keeper.is_done || !has_more {
                continue;
            }
            let (mut records, mut bytes, mut taken) = (Vec::new(), 0, 0);
            for positions in &self.all[first..] {
                if bytes >= BATCH_BYTES {
                    break;
                }
                taken += 1;
                // It was encoded for the file before.
                let Ok(record) = encode(&results[&positions.start]) else { continue };
                bytes += record.len();
                records.push((positions.clone(), record));
            }
            keeper.is_busy = true;
            let (path, identity) = (self.path.clone(), Identity::clone(&self.identity));
            let last = first + taken;
            let ends = ends && last == self.all.len();
            keeper.is_done = ends;
            let batch = Batch { path, identity, begins: first == 0, records, ends };
            // It must not wait for the tasks of that PE.
            let (pe, kept) = (*pe, self.cx.ask(*pe, keep, batch));
            self.under_way.push(Box::pin(async move { (pe, last, kept.await) }));
        }
    }

    /// What became of a batch.
    fn note_sent(&mut self, (pe, last, kept): Sent) {
        let Some(keeper) = self.keepers.get_mut(&pe) else { return };
        keeper.is_busy = false;
        match kept {
            Ok(None) => keeper.sent = last,
            Ok(Some(why)) => {
                keeper.is_done = true;
                tracing::warn!("{pe} keeps no copy of the journal: {why}");
            }
            // If it has died, another is chosen.
            Err(error) => {
                keeper.is_done = true;
                tracing::info!("{pe} keeps no copy of the journal: {error}");
            }
        }
    }

    /// Chooses the first living PEs of as many other hosts as there should be copies.
    fn choose(&mut self) {
        let (topology, dead) = (self.cx.topology(), self.cx.dead());
        if self.dead.replace(dead) == Some(dead) {
            return;
        }
        let host = |pe: Pe| topology.place(pe).host();
        let mut hosts = BTreeSet::from([host(self.cx.pe())]);
        let all = (0..topology.pes()).map(Pe::new).filter(|pe| !self.cx.is_dead(*pe));
        let firsts = all.filter(|pe| hosts.insert(host(*pe)));
        let chosen: BTreeSet<Pe> = firsts.take(self.wanted).collect();
        if chosen.len() < self.wanted {
            let path = self.path.display();
            tracing::warn!("the journal `{path}` has {} copies: no other host", chosen.len());
        }
        self.keepers.retain(|pe, _| chosen.contains(pe));
        for pe in chosen {
            self.keepers.entry(pe).or_default();
        }
    }
}
