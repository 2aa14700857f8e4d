//! Maps with a journal: each result, or the results of each task, is a record.

use super::operation::{IntoShared, Operation};
use super::{Grain, Map};
use crate::journal::{JournalError, JournalFile, Journalled, identity};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use ultramarine_journal::Digest;
use ultramarine_runtime::code::Stateless;
use ultramarine_runtime::executor::{AbortOnDrop, Context, Future, Placement, Portable};
use ultramarine_runtime::wire::encode;

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
    ///   built anew, by the same compiler, if the function is named: a closure is known by a number
    ///   that is another in most builds. Whether the function computes the same is not seen, only
    ///   which build has computed a result: see [`other_builds`](Journalled::other_builds).
    ///   (Items that contain handles such as [`Shared`](ultramarine_runtime::executor::Shared) are
    ///   never the same.)
    /// - **Where it is**: the caller reads and writes it. If the job may
    ///   [outlive its root](../ultramarine/fn.run_restartable.html), name a file in a folder that
    ///   all hosts share, or let other hosts keep [copies](Journalled::copies).
    /// - **Damage**: what a crash has torn is cut off; the items of a damaged record are computed
    ///   again, and a warning says so.
    /// - **A disk that is full, or a file that cannot be written or that another program moves away
    ///   or cuts**: a warning, and the map goes on without; see [`required`](Journalled::required).
    ///
    /// Results come to the caller one by one: [`two_level`](Self::two_level) uses no coordinators,
    /// and [`slices`](Self::slices) are consecutive items, as [`chunks`](Self::chunks) are.
    pub fn journal(self, path: impl Into<PathBuf>) -> Journalled<Self> {
        Journalled::new(self, Some(path.into()))
    }

    /// The same if there is a path, as a flag of the program may say. Without one there is no
    /// journal, and what is set for it means nothing.
    pub fn optional_journal(self, path: Option<impl Into<PathBuf>>) -> Journalled<Self> {
        Journalled::new(self, path.map(Into::into))
    }
}

impl<O, G, I> Journalled<Map<O, G, I>>
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
        let Some(file) = self.file else { return Ok(self.skeleton.run(cx).await?) };
        let operation = self.skeleton.operation;
        let results: BTreeMap<u64, Vec<O::Output>> = self
            .skeleton
            .fill::<O, _>(
                cx,
                file,
                |results: &Vec<_>, items| results.len() as u64 == items.end - items.start,
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
        let Some(file) = self.file else {
            return Ok(self.skeleton.reduce(identity, reduce, cx).await?);
        };
        let operation = self.skeleton.operation;
        let results = self
            .skeleton
            .fill::<(O, N, C), _>(
                cx,
                file,
                |_, _| true,
                |place, given, items| {
                    operation.spawn_reduced(cx, place, given, items, (identity, reduce))
                },
            )
            .await?;
        Ok(results.into_values().fold(identity(), reduce))
    }
}

impl<O, G, I> Map<O, G, I>
where
    I: IntoIterator<Item: Portable>,
    G: IntoShared,
    O: Operation<I::Item, Handle = G::Handle>,
{
    /// Takes the results of groups of items from the journal, and has the others computed. Returns
    /// them by their first positions. `F` is the type of the functions.
    async fn fill<F: 'static, V: Portable>(
        self,
        cx: &Context,
        file: JournalFile,
        fits: fn(&V, &Range<u64>) -> bool,
        spawn: impl Fn(Placement, G::Handle, Vec<I::Item>) -> Future<V>,
    ) -> Result<BTreeMap<u64, V>, JournalError> {
        let Map { given, items, spread, grain, window, .. } = self;
        let items: Vec<I::Item> = items.into_iter().collect();
        let mut digest = Digest::default();
        digest.add(&given.encoded()?);
        for item in &items {
            digest.add(&encode(item)?);
        }
        let identity = identity::<F, V>(items.len(), &digest);
        let kept = file.open(cx, identity, fits).await?;
        let size = match grain {
            Grain::One => 1,
            Grain::Chunks(size) => size.max(1),
            Grain::Slices(tasks) => items.len().div_ceil(tasks.max(1)).max(1),
        };
        let given = given.share(cx);
        let mut items = items.into_iter();
        let mut next = 0;
        let missing: Vec<_> = kept.missing(size).collect();
        let known = items.len().div_ceil(size).saturating_sub(missing.len());
        cx.note_known(known as u64);
        let tasks = missing.into_iter().enumerate().map(|(number, group)| {
            let skipped = (group.start - next) as usize;
            let length = (group.end - group.start) as usize;
            let own = items.by_ref().skip(skipped).take(length).collect();
            next = group.end;
            let task = spawn(spread.place(cx, number), given.clone(), own);
            (group, AbortOnDrop::new(task))
        });
        kept.complete(tasks, window.unwrap_or(usize::MAX)).await
    }
}
