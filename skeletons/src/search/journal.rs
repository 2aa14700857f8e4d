//! Searches with a journal: each record is the result of a subtree.
//!
//! The caller visits the top of the tree, the nodes below which are the roots of the subtrees. It
//! does so at each start, with nothing that depends on time or on other PEs. So each start has the
//! same subtrees, which are the items of the journal.
//!
//! # Why the records of a branch and bound are right
//!
//! A task prunes what does not beat a node that another task has found. So "nothing better in this
//! subtree" would be worth nothing without the record of that other task: it may never have been
//! written, or be damaged, or lack the node, since a task that runs again after a death prunes by
//! what it found the first time. Therefore a record has the better of two nodes: the best that the
//! task returns, and the best that the home PE keeps when the result comes home. A task prunes
//! because of a node of its own PE, and then returns one as good, or because of a value that the
//! home PE has sent, and then the home PE keeps one as good ([`bound`](super::bound) says why). So
//! the node of each record is as good as any node of its subtree, whatever becomes of the other
//! records.
//!
//! A job that starts again begins with the best node of all records as its incumbent. A node of the
//! tree may bound the search at any time.
//!
//! # The order of the subtrees
//!
//! A branch and bound needs its promising subtrees first: what it finds there prunes the others.
//! If all were spawned at once, the order would be that of the queues. A worker takes the youngest
//! task, a thief the oldest, and if a thread that is no worker has spawned them, every worker takes
//! the oldest. So some searches began with the least promising subtrees, and visited a hundred
//! times as many nodes. Therefore at most one subtree for each worker thread has begun and not
//! ended, and the next in the order of a depth-first search follows when one ends.

use super::better::beside;
use super::pool::Place;
use super::task::{ForgetOnDrop, Pruning, SearchTask, SearchType};
use super::{Search, Splitting, Tree};
use crate::journal::{Expanded, JournalError, Journalled, expand_top, identity};
use std::path::PathBuf;
use ultramarine_journal::Digest;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::Context;
use ultramarine_runtime::wire::encode;
use ultramarine_topology::Distance;

impl<T: Tree, K: SearchType<T>> Search<T, K> {
    /// Keeps the results of subtrees in a file, so that the search survives the end of the job: as
    /// [`Map::journal`](crate::map::Map::journal), which says when a result is safe, and what
    /// happens if the disk is full or the file is damaged.
    ///
    /// ```text
    ///             ●              the caller visits the top, level by level, at each start
    ///           ╱ │ ╲
    ///          ●  ●  ●
    ///         ╱│ ╱│╲ │╲
    ///        ○ ○○ ○○ ○ ○         each ○ is a record: the result of its whole subtree
    /// ```
    ///
    /// - **What is lost**: the subtrees that are being searched when the job ends. They are about a
    ///   thousand in all; [`records`](Journalled::records) changes that.
    /// - **What a record has**: what [`enumerate`](super::enumerate()) has accumulated in the
    ///   subtree; for [`maximise`](super::maximise) the best node that was known when the subtree
    ///   had been searched, wherever it was found.
    /// - **Whose journal it is**: it has the name of the program, of the types of the tree, the
    ///   functions and the result, the number of subtrees, and a digest of the tree and the nodes
    ///   at which the subtrees begin. A journal of another search is refused with an error that
    ///   says what differs. The [`Splitting`] may differ, and the number of PEs.
    ///   (Trees and nodes that contain handles such as
    ///   [`Shared`](ultramarine_runtime::executor::Shared) are never the same.)
    /// - **What must not differ between runs**: [`Tree::children`], in number and order, and the
    ///   values and bounds of nodes.
    /// - **What may differ**: among several best nodes the one that is found.
    ///
    /// All children of a node of the top are in memory at once.
    pub fn journal(self, path: impl Into<PathBuf>) -> Journalled<Self> {
        Journalled::new(self, Some(path.into()))
    }

    /// The same if there is a path, as a flag of the program may say. Without one there is no
    /// journal, and what is set for it means nothing.
    pub fn optional_journal(self, path: Option<impl Into<PathBuf>>) -> Journalled<Self> {
        Journalled::new(self, path.map(Into::into))
    }
}

impl<T: Tree, K: SearchType<T>> Journalled<Search<T, K>> {
    /// Runs the search, as [`Search::run`].
    ///
    /// # Errors
    ///
    /// The error of the first task that ended without a result, or of the journal. The other tasks
    /// are cancelled.
    pub async fn run(self, cx: &Context) -> Result<K::Output, JournalError> {
        let Some(file) = self.file else { return Ok(self.skeleton.run(cx).await?) };
        let Search { kind: search_type, splitting, tree, root, listener } = self.skeleton;
        let key = cx.new_key();
        let _forget = K::KEEPS_VALUES.then(|| ForgetOnDrop(cx, key));
        let knowledge = search_type.begin(cx, key);
        let mut found = K::Found::default();
        let hearing = listener.map(|listener| search_type.hear(&knowledge, listener));
        let subtrees = expand_top(cx, (0_u32, root), self.records, |(depth, node), below| {
            // Later siblings are pruned when their turn comes.
            let pruning = search_type.visit(&knowledge, &tree, &node, u64::MAX, &mut found);
            if let Pruning::Nothing { .. } = pruning {
                below.extend(tree.children(node).map(|child| (depth.saturating_add(1), child)));
            }
            Expanded::Children
        });
        let subtrees = subtrees.await;

        let mut digest = Digest::default();
        digest.add(&encode(&tree)?);
        for (_, node) in &subtrees {
            digest.add(&encode(node)?);
        }
        let identity = identity::<(T, K), K::Found>(subtrees.len(), &digest);
        let kept = file.open(cx, identity, |_, _| true).await?;
        cx.note_known(kept.results.len() as u64);
        kept.results.values().for_each(|result| search_type.learn(&knowledge, result));

        let tree = cx.share(tree);
        let missing = kept.missing_nodes(subtrees).into_iter();
        let tasks = missing.map(|(positions, (depth, node))| {
            let task = SearchTask { tree: tree.clone(), key, splitting, depth, nodes: vec![node] };
            let place = Place::of_part(positions.start);
            let search = task.search(cx, Distance::ONE, search_type, place);
            let knowledge = &knowledge;
            let completed = async move {
                let mut result = search.await?;
                search_type.end(knowledge, &mut result);
                // It prunes those that are left, and who waits hears of it.
                search_type.learn(knowledge, &result);
                Ok::<_, TaskError>(result)
            };
            (positions, completed)
        });
        let workers = (cx.pes() as usize).saturating_mul(cx.threads());
        let at_once = match (K::PREFERS_FIRST, splitting) {
            // All workers take part in each.
            (true, Splitting::Ordered) => 2,
            (true, _) => workers,
            (false, _) => usize::MAX,
        };
        let results = beside(Box::pin(kept.complete(tasks, at_once)), hearing, |_| {}).await?;
        results.into_values().for_each(|result| search_type.merge(&mut found, result));
        search_type.end(&knowledge, &mut found);
        Ok(search_type.output(found))
    }
}
