//! Maps whose results outlive the job: each is put into a journal as it comes home, and a map that
//! is run again takes from the journal what is there.

use super::operation::{IntoShared, Operation};
use super::{Grain, Map};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use ultramarine_journal::{
    Digest, Identity, Journal, OnFailure, OpenError, Refusal, Report, WriteError,
};
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Placement, Portable};
use ultramarine_runtime::wire::{WireError, decode, encode};

/// How long a map waits at its end for the disk.
const FINISH_WITHIN: Duration = Duration::from_mins(1);

/// How long the main task of a new root waits until the lock of a former one is gone: NFS keeps
/// those of a host that does not answer for 90 s, as it is mostly set up.
const UNLOCKED_WITHIN: Duration = Duration::from_mins(2);

/// How long it waits between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// Why a map with a journal did not give its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A task ended without a result. The results that came before are in the journal.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The journal cannot be used: it belongs to another map, another job uses it, or it is no
    /// journal.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be written, and is [required](JournalledMap::required).
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An item or a result cannot be encoded.
    #[error("an item or a result cannot be written to the journal: {0}")]
    Encode(#[from] WireError),
}

/// A map with a journal, made by [`Map::journal`].
#[must_use = "a map does nothing until it is run"]
#[derive(Debug)]
pub struct JournalledMap<O, G, I> {
    map: Map<O, G, I>,
    path: PathBuf,
    is_required: bool,
}

impl<O, G, I> Map<O, G, I> {
    /// Keeps the results in a file. If the job is killed whole, or its root dies, and it is run
    /// again with the same file, it takes the results from there, and computes only the rest.
    ///
    /// ```no_run
    /// use ultramarine::prelude::*;
    ///
    /// async fn squares(cx: &Context) -> Result<Vec<u64>, JournalError> {
    ///     map(|n: u64| n * n, 0..100_000).chunks(1000).journal("squares.journal").run(cx).await
    /// }
    /// ```
    ///
    /// - **When a result is safe**: 20 ms after it has come to the caller it is in the file, and
    ///   outlives the process; after about a second it is on the disk, and outlives the machine.
    ///   The file stays when the map has ended.
    /// - **Whose journal it is**: it has the name of the program, of the function and of the
    ///   result's type, and a digest of the items and of the shared value. A journal of another map
    ///   is refused with an error that says what differs. How the map is
    ///   [spread](Self::within), and how many items make a task, may differ. The program may be
    ///   built anew, by the same compiler; whether the function computes the same is not seen.
    ///   (Items that contain handles such as [`Shared`](ultramarine_runtime::executor::Shared) are
    ///   never the same.)
    /// - **Where it is**: the caller reads and writes it. If the job may
    ///   [outlive its root](../ultramarine/fn.run_restartable.html), name a file in a folder that
    ///   all hosts share.
    /// - **Damage**: what a crash has torn is cut off; the items of a damaged record are computed
    ///   again, and a warning says so.
    /// - **A disk that is full, or cannot be written**: a warning, and the map goes on without;
    ///   see [`required`](JournalledMap::required).
    ///
    /// Results come to the caller one by one: [`two_level`](Self::two_level) uses no coordinators,
    /// and [`slices`](Self::slices) are consecutive items, as [`chunks`](Self::chunks) are.
    pub fn journal(self, path: impl Into<PathBuf>) -> JournalledMap<O, G, I> {
        JournalledMap { map: self, path: path.into(), is_required: false }
    }
}

impl<O, G, I> JournalledMap<O, G, I> {
    /// Ends the map with an error as soon as its journal cannot be written, instead of a warning.
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

impl<O, G, I> JournalledMap<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: IntoShared,
    O: Operation<I::Item, Handle = G::Handle>,
{
    /// Runs the map, as [`Map::run`].
    ///
    /// # Errors
    ///
    /// The error of the first task that ended without a result, or of the journal. The other tasks
    /// are cancelled.
    pub async fn run(self, cx: &Context) -> Result<Vec<O::Output>, JournalError> {
        let operation = self.map.operation;
        let results: BTreeMap<u64, Vec<O::Output>> = self
            .fill(
                cx,
                name_of::<O>(),
                |results: &Vec<O::Output>, items| results.len() as u64 == items.end - items.start,
                |place, given, items| operation.spawn_group(cx, place, given, items),
            )
            .await?;
        Ok(results.into_values().flatten().collect())
    }

    /// Runs the map and combines all results, as [`Map::reduce`]. The journal has one value for
    /// each task.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub async fn reduce<N, C>(
        self,
        identity: N,
        reduce: C,
        cx: &Context,
    ) -> Result<O::Output, JournalError>
    where
        N: Fn() -> O::Output + Stateless,
        C: Fn(O::Output, O::Output) -> O::Output + Stateless,
    {
        const { (N::CHECKED, C::CHECKED) };
        let operation = self.map.operation;
        let names = [name_of::<O>(), name_of::<N>(), name_of::<C>()];
        let results = self
            .fill(
                cx,
                names.join(", "),
                |_, _| true,
                |place, given, items| {
                    operation.spawn_reduced(cx, place, given, items, (identity, reduce))
                },
            )
            .await?;
        Ok(results.into_values().fold(identity(), reduce))
    }

    /// Takes the results of groups of items from the journal, and has the others computed. Returns
    /// them by their first positions.
    async fn fill<V: Portable>(
        self,
        cx: &Context,
        call: String,
        fits: impl Fn(&V, &Range<u64>) -> bool,
        spawn: impl Fn(Placement, G::Handle, Vec<I::Item>) -> Future<V>,
    ) -> Result<BTreeMap<u64, V>, JournalError> {
        let Map { given, items, spread, grain, .. } = self.map;
        let items: Vec<I::Item> = items.into_iter().collect();
        let count = items.len() as u64;
        let mut digest = Digest::default();
        digest.add(&given.encoded()?);
        for item in &items {
            digest.add(&encode(item)?);
        }
        let result = type_name::<V>().to_owned();
        let identity =
            Identity { program: program(), call, result, items: count, digest: digest.finish() };
        let mut results = BTreeMap::new();
        let mut open = || {
            Keeper::open(&self.path, &identity, self.is_required, |positions, bytes| {
                let value: V = decode(bytes)?;
                if !fits(&value, &positions) {
                    return Err("it has results for another number of items".into());
                }
                results.insert(positions.start, value);
                Ok(())
            })
        };
        let since = Instant::now();
        let keeper = loop {
            match open() {
                // The host of a root that has fallen silent holds its locks for a while.
                Err(JournalError::Open(OpenError::InUse(path)))
                    if cx.attempt() > 1 && since.elapsed() < UNLOCKED_WITHIN =>
                {
                    tracing::info!("the journal `{}` is locked by a root before", path.display());
                    cx.sleep(LOCK_PAUSE).await;
                }
                opened => break opened?,
            }
        };

        let size = match grain {
            Grain::One => 1,
            Grain::Chunks(size) => size.max(1),
            Grain::Slices(tasks) => items.len().div_ceil(tasks.max(1)).max(1),
        };
        let given = given.share(cx);
        let mut items = items.into_iter();
        let mut next = 0;
        let mut running = FuturesUnordered::new();
        for (number, group) in keeper.groups(count, size as u64).enumerate() {
            let skipped = (group.start - next) as usize;
            let length = (group.end - group.start) as usize;
            let own = items.by_ref().skip(skipped).take(length).collect();
            next = group.end;
            let task = AbortOnDrop::new(spawn(spread.place(cx, number), given.clone(), own));
            running.push(async move { (group, task.await) });
        }
        while let Some((group, result)) = running.next().await {
            let value = result?;
            keeper.keep(group.clone(), &encode(&value)?)?;
            results.insert(group.start, value);
        }
        keeper.finish()?;
        Ok(results)
    }
}

/// The name of a function's type, and a number: all closures of a function have the same name. The
/// number is the same in each build by the same compiler.
fn name_of<F: 'static>() -> String {
    let mut number = DefaultHasher::new();
    TypeId::of::<F>().hash(&mut number);
    format!("{} ({:016x})", type_name::<F>(), number.finish())
}

/// The name of this program's file.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The journal of a map that runs, if there can be one.
struct Keeper {
    journal: Option<Journal>,
    report: Report,
    /// Why a journal that is required cannot be written any more.
    failure: Arc<OnceLock<WriteError>>,
    is_required: bool,
}

impl Keeper {
    fn open(
        path: &PathBuf,
        identity: &Identity,
        is_required: bool,
        visit: impl FnMut(Range<u64>, &[u8]) -> Result<(), Refusal>,
    ) -> Result<Keeper, JournalError> {
        let failure = Arc::new(OnceLock::new());
        let on_failure = if is_required {
            let failure = failure.clone();
            OnFailure::Call(Box::new(move |error: &WriteError| drop(failure.set(error.clone()))))
        } else {
            OnFailure::Warn
        };
        let (journal, report) = match Journal::open(path, identity, on_failure, visit) {
            Ok((journal, report)) => (Some(journal), report),
            Err(error @ (OpenError::Io { .. } | OpenError::Write(_))) if !is_required => {
                tracing::warn!("{error}: the job goes on without it");
                (None, Report::default())
            }
            Err(error) => return Err(error.into()),
        };
        for damage in &report.damage {
            tracing::warn!("the journal `{}` is damaged: {damage}", path.display());
        }
        let (done, items) = (report.done.count(), identity.items);
        tracing::info!("the journal `{}` has {done} of {items} items", path.display());
        Ok(Keeper { journal, report, failure, is_required })
    }

    /// The items that are left to do, in groups of at most `size` consecutive ones.
    fn groups(&self, items: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
        self.report.done.gaps(items).flat_map(move |gap| {
            let end = gap.end;
            gap.step_by(size as usize).map(move |first| first..end.min(first.saturating_add(size)))
        })
    }

    fn keep(&self, positions: Range<u64>, bytes: &[u8]) -> Result<(), WriteError> {
        self.journal.iter().for_each(|journal| journal.append(positions.clone(), bytes));
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn finish(self) -> Result<(), WriteError> {
        let finished = self.journal.map_or(Ok(()), |it| it.finish(FINISH_WITHIN).map(drop));
        // A failure was told when it happened.
        if self.is_required { finished } else { Ok(()) }
    }
}
