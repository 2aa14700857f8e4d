//! Results that outlive the job. Each is put into a *journal*, a file, as it comes home. A skeleton
//! that is run again with the same file takes from it what is there, and computes the rest.
//!
//! Each skeleton decides what an item of its journal is: an item of a map, a subtree of a search, a
//! part of a problem that is divided. This module must never know which.
//!
//! | question | file |
//! |---|---|
//! | How does a program ask for a journal? Whose journal is it? | `mod` |
//! | Which parts of a tree are items? | `top` |
//! | What is taken from the file, and when is it written? | `kept` |
//! | What do other hosts keep of it? | `copies` |

mod copies;
mod kept;
mod top;

pub(crate) use kept::Kept;
pub(crate) use top::{Expanded, expand_top, give_way};

use std::any::{TypeId, type_name};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
pub use ultramarine_journal::OtherBuilds;
use ultramarine_journal::{Builds, Digest, Identity, OpenError, WriteError};
use ultramarine_runtime::build;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::wire::WireError;

/// Why a skeleton with a journal did not give its result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A task ended without a result. The results that came before are in the journal.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The journal cannot be used: it belongs to another call, another job uses it, or it is no
    /// journal.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be written, and is [required](Journalled::required).
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An item or a result cannot be encoded.
    #[error("an item or a result cannot be written to the journal: {0}")]
    Encode(#[from] WireError),
}

/// A skeleton with a journal. [`Map::journal`](crate::map::Map::journal),
/// [`Search::journal`](crate::search::Search::journal) and
/// [`Division::journal`](crate::divide::Division::journal) make one.
#[must_use = "a skeleton does nothing until it is run"]
#[derive(Debug)]
pub struct Journalled<S> {
    pub(crate) skeleton: S,
    /// `None`: the skeleton runs without a journal.
    pub(crate) file: Option<JournalFile>,
    /// The least number of records of a tree.
    pub(crate) records: usize,
}

/// The number of records of a tree, unless the program says another.
const RECORDS: usize = 1000;

impl<S> Journalled<S> {
    pub(crate) fn new(skeleton: S, path: Option<PathBuf>) -> Self {
        let file = path.map(|path| JournalFile {
            path,
            is_required: false,
            other_builds: OtherBuilds::Keep,
            others: 0,
        });
        Journalled { skeleton, file, records: RECORDS }
    }

    /// The number of records that the journal of a search or of a divided problem has at least, if
    /// there are as many subtrees or parts. Default: 1000. What is being computed when the job ends
    /// is lost, a record for each worker thread or more. So ten or more for each thread are wanted.
    /// The caller visits the nodes above, or divides and combines the problems above, alone: that
    /// limits the number.
    ///
    /// A journal that was begun with other subtrees or parts, as another number mostly leads to, is
    /// refused. For a map it has no meaning: there each task is a record.
    pub fn records(mut self, least: usize) -> Self {
        self.records = least.max(1);
        self
    }

    /// Keeps the journal on this number of hosts, the caller's among them. Default: 1, as
    /// is 0. With two or more the path may be on a disk of each host, in a job that [outlives
    /// its root](../../ultramarine/fn.run_restartable.html): the PE that takes the place of a root
    /// whose host has died finds a copy there. It may lack what came home in the last moments.
    ///
    /// The path is that of the original; a relative one begins at the working directory of the
    /// process that keeps the copy. If hosts share the folder there is nothing to copy, and a
    /// warning says so. A host that cannot keep a copy is told in a warning as well, also if the
    /// journal is [required](Self::required). At its end the skeleton waits for the copies, 2 min
    /// at most. A copy that is longer than the original, of an earlier start, is not read: start
    /// the job where that is, or copy the file.
    pub fn copies(mut self, hosts: usize) -> Self {
        self.file.iter_mut().for_each(|file| file.others = hosts.saturating_sub(1));
        self
    }

    /// Says what becomes of results in the file that another build of the program has computed.
    /// Default: they are kept, and a warning says how many there are. What a function computes is
    /// not seen: if it has changed, the whole is then of neither build.
    ///
    /// ```no_run
    /// use ultramarine::prelude::*;
    ///
    /// async fn squares(cx: &Context) -> Result<Vec<u64>, JournalError> {
    ///     let squares = map(|n: u64| n * n, 0..100_000).chunks(1000).journal("squares.journal");
    ///     squares.other_builds(OtherBuilds::Anew).run(cx).await
    /// }
    /// ```
    pub fn other_builds(mut self, builds: OtherBuilds) -> Self {
        self.file.iter_mut().for_each(|file| file.other_builds = builds);
        self
    }

    /// Ends the skeleton with an error as soon as its journal cannot be written, or another program
    /// has moved it away or cut it, instead of a warning.
    pub fn required(mut self) -> Self {
        self.file.iter_mut().for_each(|file| file.is_required = true);
        self
    }
}

/// The file that a program names.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    /// Whether it is an error if the file cannot be written.
    is_required: bool,
    other_builds: OtherBuilds,
    /// How many other hosts keep a copy.
    others: usize,
}

impl JournalFile {
    /// If a folder was named: the file of this name in it.
    pub(crate) fn in_folder(mut self, name: &str) -> Self {
        if self.path.is_dir() {
            self.path.push(name);
        }
        self
    }
}

/// The identity of the journal of a call with this number of items and this digest. `F` is the type
/// of its functions, and `R` that of its results.
pub(crate) fn identity<F: 'static, R>(items: usize, digest: &Digest) -> Identity {
    Identity {
        program: program(),
        call: name_of::<F>(),
        result: type_name::<R>().to_owned(),
        items: items as u64,
        digest: digest.finish(),
    }
}

/// The name of a function's type. All closures of a function have the same name, so these have a
/// number as well. It changes with nearly all that goes into a build: the crate's version, its
/// dependencies, the profile, and the closures before it.
fn name_of<F: 'static>() -> String {
    let name = type_name::<F>();
    if !name.contains("{{closure}}") {
        return name.to_owned();
    }
    let mut number = DefaultHasher::new();
    TypeId::of::<F>().hash(&mut number);
    format!("{name} of the build {:016x}", number.finish())
}

/// This build, and what becomes of what others have computed.
pub(crate) fn builds(others: OtherBuilds) -> Builds {
    let this = build::of_this_program().inspect_err(|error| {
        tracing::warn!("the build of the program is not known, for its files: {error}");
    });
    Builds { this: this.ok(), others }
}

/// The name of this program's file.
pub(crate) fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(n: u64) -> u64 {
        n * n
    }

    fn name<F: 'static>(_: F) -> String {
        name_of::<F>()
    }

    #[test]
    fn closures_have_a_number_and_functions_have_none() {
        assert_eq!(name(square), "ultramarine_skeletons::journal::tests::square");
        let [one, other] = [name(|n: u64| n), name(|n: u64| n * n)];
        assert!(one.contains("{{closure}} of the build ") && one != other, "{one}, {other}");
    }
}
