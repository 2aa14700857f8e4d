//! The results that a journal keeps while their skeleton runs.
//!
//! A disk may take seconds to answer, and a lock may take minutes. So a thread of its own opens the
//! file, reads it, and waits at the end until all is on the disk. A worker waits for the disk in
//! one case: when a skeleton is dropped before its end, its last records are written first, for 5 s
//! at most.

use super::copies::{Copies, Original, close};
use super::{JournalError, JournalFile};
use crate::own_thread::on_own_thread;
use futures_util::future::{Either, FutureExt as _, pending, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};
use ultramarine_journal::{
    Builds, Identity, Journal, OnFailure, OpenError, Positions, Report, WriteError,
};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_runtime::wire::{decode, encode};

/// How long a skeleton waits at its end for the disk.
const FINISH_WITHIN: Duration = Duration::from_mins(1);

/// How long the main task of a new root waits until the lock of a former one is gone: NFS keeps
/// those of a host that does not answer for 90 s, as it is mostly set up.
const UNLOCKED_WITHIN: Duration = Duration::from_mins(2);

/// How long it waits between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// What makes a result unusable: it has another form than the items at its positions need.
type Fits<V> = fn(&V, &Range<u64>) -> bool;

/// The journal of a skeleton that runs, and the results so far.
pub(crate) struct Kept<V> {
    /// The results by their first positions.
    pub(crate) results: BTreeMap<u64, V>,
    /// The positions of those that were in the file, and the builds that have computed them.
    read: Vec<(Range<u64>, Option<u64>)>,
    items: u64,
    done: Positions,
    /// `None` if it cannot be written and is not required.
    journal: Option<Journal>,
    path: PathBuf,
    failure: Arc<Failure>,
    is_required: bool,
    copies: Option<Copies>,
}

impl JournalFile {
    /// Opens the journal of this identity, or begins it, and reads the results that are there.
    pub(crate) async fn open<V: Portable>(
        self,
        cx: &Context,
        identity: Identity,
        fits: Fits<V>,
    ) -> Result<Kept<V>, JournalError> {
        let builds = super::builds(self.other_builds);
        let JournalFile { path, is_required, others, .. } = self;
        let may_do_without = cx.attempt() > 1 && !is_required;
        let identity = Arc::new(identity);
        let since = Instant::now();
        loop {
            let open = {
                let (path, identity) = (path.clone(), identity.clone());
                move || Kept::open(path, &identity, builds, is_required, fits)
            };
            let opened = on_own_thread(open).await.unwrap_or_else(|source| {
                Err(OpenError::Io { path: path.clone(), action: "opened", source })
            });
            match opened {
                // The host of a root that has fallen silent holds its locks for a while.
                Err(OpenError::InUse(path))
                    if cx.attempt() > 1 && since.elapsed() < UNLOCKED_WITHIN =>
                {
                    tracing::info!("the journal `{}` is locked by a root before", path.display());
                    cx.sleep(LOCK_PAUSE).await;
                }
                opened => {
                    let mut kept = match opened {
                        // With copies, what this host has there may be no copy. Else an earlier
                        // root has used the file: it is stopped with the lock, or the file was
                        // spoilt since. A job that began without a journal goes on as well.
                        Err(error) if may_do_without && (others > 0 || was_ours(&error)) => {
                            Kept::without(path.clone(), &identity, &error)
                        }
                        opened => opened?,
                    };
                    if others > 0 {
                        let all = std::mem::take(&mut kept.read);
                        let mark = kept.journal.as_ref().map_or(0, Journal::mark);
                        let identity = Identity::clone(&identity);
                        let file = Original { path, identity, builds, mark };
                        kept.copies = Some(Copies::new(cx, file, others, all));
                    }
                    return Ok(kept);
                }
            }
        }
    }
}

impl<V: Portable> Kept<V> {
    fn open(
        path: PathBuf,
        identity: &Identity,
        builds: Builds,
        is_required: bool,
        fits: Fits<V>,
    ) -> Result<Self, OpenError> {
        let failure = Arc::new(Failure::default());
        let on_failure = if is_required {
            let failure = failure.clone();
            OnFailure::Call(Box::new(move |error: &WriteError| failure.note(error)))
        } else {
            OnFailure::Warn
        };
        // This process may have kept a copy for the root before.
        close(&path);
        let (mut results, mut read) = (BTreeMap::new(), BTreeMap::new());
        let opened = Journal::open(&path, identity, builds, on_failure, |positions, bytes| {
            let Some(bytes) = bytes else {
                results.retain(|first, _| !positions.contains(first));
                read.retain(|first, _| !positions.contains(first));
                return Ok(());
            };
            let value: V = decode(bytes)?;
            if !fits(&value, &positions) {
                return Err("it has results for another number of items".into());
            }
            results.insert(positions.start, value);
            read.insert(positions.start, positions.end);
            Ok(())
        });
        match opened {
            Ok((journal, report)) => {
                tell(&path, &report, identity.items, builds);
                let with_build = |(first, end)| (first..end, report.build_of(first));
                let read = read.into_iter().map(with_build).collect();
                let (items, done, journal) = (identity.items, report.done, Some(journal));
                let copies = None;
                Ok(Kept { results, read, items, done, journal, path, failure, is_required, copies })
            }
            Err(error @ (OpenError::Io { .. } | OpenError::Write(_))) if !is_required => {
                Ok(Kept::without(path, identity, &error))
            }
            Err(error) => Err(error),
        }
    }

    /// The skeleton goes on without the journal.
    fn without(path: PathBuf, identity: &Identity, error: &OpenError) -> Self {
        tracing::warn!("{error}: the job goes on without it");
        Kept {
            results: BTreeMap::new(),
            read: Vec::new(),
            items: identity.items,
            done: Positions::default(),
            journal: None,
            path,
            failure: Arc::default(),
            is_required: false,
            copies: None,
        }
    }

    /// The items without results, in groups of at most `size` consecutive ones.
    pub(crate) fn missing(&self, size: usize) -> impl Iterator<Item = Range<u64>> {
        self.done.gaps(self.items).flat_map(move |gap| {
            let end = gap.end;
            let groups = gap.step_by(size);
            groups.map(move |first| first..end.min(first.saturating_add(size as u64)))
        })
    }

    /// The nodes of a tree without results.
    pub(crate) fn missing_nodes<N>(&self, nodes: Vec<N>) -> Vec<(Range<u64>, N)> {
        let nodes = nodes.into_iter().enumerate();
        let nodes = nodes.map(|(index, node)| (index as u64..index as u64 + 1, node));
        nodes.filter(|(positions, _)| !self.results.contains_key(&positions.start)).collect()
    }

    /// Awaits the results of these groups, and keeps each as it comes. Returns all results when
    /// they are on the disk. Of the tasks at most `at_once` have begun and not ended; the others
    /// are not asked of the iterator yet.
    pub(crate) async fn complete<F>(
        mut self,
        tasks: impl IntoIterator<Item = (Range<u64>, F)>,
        at_once: usize,
    ) -> Result<BTreeMap<u64, V>, JournalError>
    where
        F: Future<Output = Result<V, TaskError>>,
    {
        let tasks = tasks.into_iter().map(async |(group, task)| (group, task.await));
        let ended = self.keep_all(tasks, at_once).await;
        if let Some(copies) = &mut self.copies {
            copies.end(&self.results).await;
        }
        let finished = self.finish().await;
        ended?;
        match finished {
            Err(error) if self.is_required => return Err(error.into()),
            Err(error @ WriteError::Late { .. }) => tracing::warn!("{error}"),
            // Another failure was told when it happened.
            _ => {}
        }
        Ok(self.results)
    }

    /// Its end cancels the tasks that are left.
    async fn keep_all(
        &mut self,
        mut tasks: impl Iterator<Item = impl Future<Output = (Range<u64>, Result<V, TaskError>)>>,
        at_once: usize,
    ) -> Result<(), JournalError> {
        let mut running: FuturesUnordered<_> = tasks.by_ref().take(at_once.max(1)).collect();
        loop {
            let ended = {
                let copied = pin!(async {
                    match &mut self.copies {
                        Some(copies) => copies.go_on(&self.results).await,
                        None => pending().await,
                    }
                });
                let failed = self.failure.happens();
                match select(pin!(failed), select(running.next(), copied)).await {
                    Either::Left((error, _)) => return Err(error.into()),
                    Either::Right((Either::Left((ended, _)), _)) => ended,
                    Either::Right((Either::Right(_), _)) => continue,
                }
            };
            let Some((positions, result)) = ended else { return Ok(()) };
            match result {
                Ok(value) => self.keep(positions, value)?,
                Err(error) => {
                    self.keep_ended(&mut running);
                    return Err(error.into());
                }
            }
            running.extend(tasks.next());
        }
    }

    /// Keeps the results of those that have ended by now. Their own errors are not told: another
    /// came first.
    fn keep_ended(
        &mut self,
        running: &mut FuturesUnordered<impl Future<Output = (Range<u64>, Result<V, TaskError>)>>,
    ) {
        while let Some(Some((positions, result))) = running.next().now_or_never() {
            let _ = result.map(|value| self.keep(positions, value));
        }
    }

    fn keep(&mut self, positions: Range<u64>, value: V) -> Result<(), JournalError> {
        let bytes = encode(&value)?;
        self.journal.iter().for_each(|journal| journal.append(positions.clone(), &bytes));
        self.copies.iter_mut().for_each(|copies| copies.note(&positions));
        self.results.insert(positions.start, value);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), WriteError> {
        let Some(journal) = self.journal.take() else { return Ok(()) };
        match on_own_thread(move || journal.finish(FINISH_WITHIN)).await {
            Ok(finished) => finished.map(drop),
            Err(error) => Err(WriteError::Io { path: self.path.clone(), source: error.into() }),
        }
    }
}

/// Whether a file that cannot be opened may be that of an earlier root all the same.
fn was_ours(error: &OpenError) -> bool {
    !matches!(
        error,
        OpenError::Differs { .. }
            | OpenError::UnknownVersion { .. }
            | OpenError::OtherBuild { .. }
            | OpenError::Unusable { .. }
    )
}

/// Why a journal that is required cannot be written any more.
#[derive(Default)]
struct Failure {
    error: OnceLock<WriteError>,
    skeleton: AtomicWaker,
}

impl Failure {
    fn note(&self, error: &WriteError) {
        let _ = self.error.set(error.clone());
        self.skeleton.wake();
    }

    /// Waits for a failure.
    async fn happens(&self) -> WriteError {
        poll_fn(|cx| {
            self.skeleton.register(cx.waker());
            self.error.get().cloned().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Logs what is in a journal, and warns of damage and of the results of other builds.
fn tell(path: &Path, report: &Report, items: u64, builds: Builds) {
    let path = path.display();
    for damage in report.damage.iter().filter(|damage| !report.is_replaced(damage)) {
        tracing::warn!("the journal `{path}` is damaged: {damage}; what is lost is computed again");
    }
    let done = report.done.count();
    let of_others = report.items_of_others(builds.this);
    if of_others > 0 {
        tracing::warn!(
            "the journal `{path}` has results of {of_others} items from another build of the \
             program, and of {} from this one: if a function has changed, have them computed anew",
            done - of_others
        );
    }
    tracing::info!("the journal `{path}` has {done} of {items} items");
}
