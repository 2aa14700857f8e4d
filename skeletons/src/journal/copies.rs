//! Copies of a journal on other hosts: then its folder may be on a local disk.
//!
//! If the host of the caller dies, the first PE of the next host takes over, and begins the
//! skeleton anew. So that PE keeps a copy, under the same path on its own host; with more copies
//! the first of each host that follows does. What the caller appends it also sends them, in
//! batches: one is on its way to each at a time. A PE that comes new is sent all results so far.
//!
//! A copy may lack what came home in the last moments. Its items are computed again.

use crate::own_thread::on_own_thread;
use futures_util::future::pending;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ultramarine_journal::{Builds, Identity, Journal, OnFailure, Positions, inspect};
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
static COPIES: Mutex<BTreeMap<PathBuf, Arc<Mutex<Option<OwnCopy>>>>> = Mutex::new(BTreeMap::new());

/// A copy that this process keeps.
struct OwnCopy {
    journal: Journal,
    /// What it had when it was opened.
    had: Positions,
}

/// The file that is copied.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Original {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) builds: Builds,
    /// Its mark: a file that has it is no copy.
    pub(super) mark: u64,
}

/// Results for the copy on another PE.
#[derive(Serialize, Deserialize)]
struct Batch {
    original: Original,
    /// It is the first: the copy is opened.
    begins: bool,
    /// The positions of each, the build that has computed it, and its bytes.
    records: Vec<(Range<u64>, Option<u64>, Vec<u8>)>,
    /// It is the last: the copy is closed.
    ends: bool,
}

impl Batch {
    /// Appends them to the copy of this process. Returns why that is not possible.
    fn keep(self, is_sender_dead: impl Fn() -> bool) -> Result<(), String> {
        let place = lock(&COPIES).entry(self.original.path.clone()).or_default().clone();
        // Only this path waits for its disk.
        let mut place = lock(&place);
        // This process may have the sender's place by now, and have opened the file itself.
        if is_sender_dead() {
            return Err("the PE that sent it has died".to_owned());
        }
        if self.begins {
            drop(place.take());
            *place = Some(self.open()?);
        }
        let Some(OwnCopy { journal, had }) = &*place else {
            return Err(format!("the copy `{}` is closed", self.original.path.display()));
        };
        for (positions, build, bytes) in &self.records {
            let has = |position| had.contains(position);
            match (positions.clone().all(has), positions.clone().any(has)) {
                (true, _) => {}
                (false, false) => journal.append_of(*build, positions.clone(), bytes),
                (false, true) => return Err(self.foreign("its records have other bounds")),
            }
        }
        if self.ends
            && let Some(copy) = place.take()
        {
            copy.journal.finish(FINISH_WITHIN).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn open(&self) -> Result<OwnCopy, String> {
        // A file system may have no locks.
        let Original { path, identity, builds, mark } = &self.original;
        if inspect(path).is_ok_and(|found| found.mark == *mark) {
            return Err(self.foreign("it is the original: the hosts share the folder"));
        }
        let opened = Journal::open(path, identity, *builds, OnFailure::Warn, |_, _| Ok(()));
        let (journal, report) = opened.map_err(|error| error.to_string())?;
        Ok(OwnCopy { journal, had: report.done })
    }

    fn foreign(&self, why: &str) -> String {
        format!("`{}` cannot be a copy: {why}", self.original.path.display())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn keep(cx: Context, (sender, batch): (Pe, Batch)) -> Result<(), String> {
    let kept = on_own_thread(move || batch.keep(|| cx.is_dead(sender))).await;
    kept.map_err(|error| error.to_string())?
}

/// Closes the copy that this process has kept for another, before it goes on with it itself.
pub(super) fn close(path: &Path) {
    let place = lock(&COPIES).remove(path);
    drop(place.and_then(|place| lock(&place).take()));
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
    original: Original,
    /// How many there should be.
    wanted: usize,
    /// The positions of all results so far, in their order, and the builds that have computed them.
    all: Vec<(Range<u64>, Option<u64>)>,
    keepers: BTreeMap<Pe, Keeper>,
    /// How many PEs had died when the keepers were chosen.
    dead: Option<u32>,
    /// The number of hosts that was last said to be too small.
    too_few: Option<usize>,
    /// The batches that are on their way.
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Sent> + Send>>>,
}

/// What became of a batch: the PE, how much it has then, and why it has not.
type Sent = (Pe, usize, Result<Result<(), String>, TaskError>);

impl Copies {
    pub(super) fn new(
        cx: &Context,
        original: Original,
        wanted: usize,
        all: Vec<(Range<u64>, Option<u64>)>,
    ) -> Self {
        let (cx, keepers) = (cx.clone(), BTreeMap::new());
        let under_way = FuturesUnordered::new();
        Copies { cx, original, wanted, all, keepers, dead: None, too_few: None, under_way }
    }

    /// A result of this build has come home.
    pub(super) fn note(&mut self, positions: &Range<u64>) {
        self.all.push((positions.clone(), self.original.builds.this));
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
            for (positions, build) in &self.all[first..] {
                if bytes >= BATCH_BYTES {
                    break;
                }
                taken += 1;
                // It was encoded for the file before.
                let Ok(record) = encode(&results[&positions.start]) else { continue };
                bytes += record.len();
                records.push((positions.clone(), *build, record));
            }
            keeper.is_busy = true;
            let last = first + taken;
            let ends = ends && last == self.all.len();
            keeper.is_done = ends;
            let batch =
                Batch { original: self.original.clone(), begins: first == 0, records, ends };
            // It must not wait for the tasks of that PE.
            let (pe, kept) = (*pe, self.cx.ask(*pe, keep, (self.cx.pe(), batch)));
            self.under_way.push(Box::pin(async move { (pe, last, kept.await) }));
        }
    }

    /// What became of a batch.
    fn note_sent(&mut self, (pe, last, kept): Sent) {
        let Some(keeper) = self.keepers.get_mut(&pe) else { return };
        keeper.is_busy = false;
        keeper.is_done |= !matches!(kept, Ok(Ok(())));
        match kept {
            Ok(Ok(())) => keeper.sent = last,
            Ok(Err(why)) => tracing::warn!("{pe} keeps no copy of the journal: {why}"),
            // Another is chosen.
            Err(error) if self.cx.is_dead(pe) => tracing::info!("a copy is lost: {error}"),
            Err(error) => tracing::warn!("{pe} keeps no copy of the journal: {error}"),
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
        if chosen.len() < self.wanted && self.too_few.replace(chosen.len()) != Some(chosen.len()) {
            let (path, wanted) = (self.original.path.display(), self.wanted + 1);
            let there_are = match chosen.len() + 1 {
                1 => "is only one".to_owned(),
                hosts => format!("are only {hosts}"),
            };
            tracing::warn!(
                "the journal `{path}` is to be kept on {wanted} hosts: there {there_are}"
            );
        }
        self.keepers.retain(|pe, _| chosen.contains(pe));
        for pe in chosen {
            self.keepers.entry(pe).or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_journal::Report;

    const ITEMS: u64 = 20;

    fn identity() -> Identity {
        let name = |name: &str| name.to_owned();
        let (program, call, result) = (name("a program"), name("a function"), name("u64"));
        Identity { program, call, result, items: ITEMS, digest: 7 }
    }

    fn original_at(path: &Path) -> Original {
        let builds = Builds { this: Some(7), ..Builds::default() };
        Original { path: path.to_owned(), identity: identity(), builds, mark: 1 }
    }

    /// A batch with a record for each of these positions.
    fn batch(path: &Path, begins: bool, records: &[(u64, u64)], ends: bool) -> Batch {
        let record = |(first, end): &(u64, u64)| (*first..*end, Some(6 + first / 9), vec![7]);
        let records = records.iter().map(record).collect();
        Batch { original: original_at(path), begins, records, ends }
    }

    fn report(path: &Path) -> Report {
        inspect(path).expect("it is a journal").report
    }

    /// Keeps a batch of a sender that lives.
    fn keep(batch: Batch) -> Result<(), String> {
        batch.keep(|| false)
    }

    #[test]
    fn a_copy_has_all_batches_and_is_closed_at_the_end() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("copy");
        assert_eq!(keep(batch(&path, true, &[(0, 2)], false)), Ok(()));
        let other =
            Journal::open(&path, &identity(), Builds::default(), OnFailure::Warn, |_, _| Ok(()));
        assert!(other.is_err(), "it is locked while it is kept");
        assert_eq!(keep(batch(&path, false, &[(5, 6)], true)), Ok(()));
        assert_eq!(report(&path).done.ranges().collect::<Vec<_>>(), [0..2, 5..6]);
        let late = keep(batch(&path, false, &[(7, 8)], false));
        assert!(late.is_err_and(|error| error.contains("is closed")));
        // Another root begins anew, and sends what was there, too.
        assert_eq!(keep(batch(&path, true, &[(0, 2), (9, 10)], false)), Ok(()));
        close(&path);
        let report = report(&path);
        assert_eq!(report.done.ranges().collect::<Vec<_>>(), [0..2, 5..6, 9..10]);
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        assert_eq!(report.records_repeated, 0, "what it had is not written again");
        let builds: Vec<_> = report.builds.iter().map(|of| (of.build, of.done.count())).collect();
        assert_eq!(builds, [(Some(6), 3), (Some(7), 1)]);
    }

    /// It could be that of the PE that has the sender's place now.
    #[test]
    fn what_comes_after_the_senders_death_opens_no_file() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("copy");
        let late = batch(&path, true, &[(0, 2)], false).keep(|| true);
        assert!(late.is_err_and(|error| error.contains("has died")));
        assert!(!path.exists());
    }

    #[test]
    fn what_is_there_of_another_kind_is_left_alone() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("original");
        let original =
            Journal::open(&path, &identity(), Builds::default(), OnFailure::Warn, |_, _| Ok(()));
        let mark = original.expect("it can be begun").0.mark();
        let refused = |batch: Batch, why: &str| {
            let error = keep(batch).expect_err("it is refused");
            assert!(error.contains(why), "{error}");
        };
        let with = |original| Batch { original, ..batch(&path, true, &[(0, 1)], false) };
        refused(with(Original { mark, ..original_at(&path) }), "the hosts share the folder");
        let identity = Identity { digest: 8, ..identity() };
        refused(with(Original { identity, ..original_at(&path) }), "differ");
        assert_eq!(report(&path).done.count(), 0);
        assert_eq!(keep(batch(&path, true, &[(0, 4)], true)), Ok(()));
        refused(batch(&path, true, &[(2, 6)], true), "other bounds");
    }
}
