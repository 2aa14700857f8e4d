//! What can go wrong with a journal, in words for the person who started the job.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the reader of the records says of one that it cannot use. `?` and `into` make one of any
/// error or text.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Why a journal cannot be opened or read. The file is then as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder of the file does not exist.
    #[error("there is no folder for the journal `{}`: make it, or mend the path", .0.display())]
    NoFolder(PathBuf),
    /// The path names something that is no regular file.
    #[error("`{}` is {what}, and a journal is a file: name another path", .path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// What it names, as in "a folder".
        what: &'static str,
    },
    /// The file cannot be opened, read, locked or cut.
    #[error("the journal `{}` cannot be {action}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as in "opened".
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The header of a new journal cannot be written, or its writer cannot be started.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file is not empty, and does not begin as a journal does.
    #[error(
        "`{}` is no journal, or has lost its beginning, and was left as it is: name another file",
        .0.display()
    )]
    NoJournal(PathBuf),
    /// The file holds nothing, or only the beginning of a header. Only [`inspect`](crate::inspect)
    /// says so: a journal can be begun there.
    #[error(
        "the journal `{}` holds nothing yet: the job that began it ended too early, or is just \
         about to write", .0.display()
    )]
    Unbegun(PathBuf),
    /// Another version of this program wrote the file.
    #[error(
        "the journal `{}` has format {version}, and this program knows formats up to {}: name \
         another file, or remove this one", .path.display(), crate::header::VERSION
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The header does not have its checksum.
    #[error(
        "the header of the journal `{}` is damaged, so that it cannot be seen whose results these \
         are: name another file, or remove this one", .0.display()
    )]
    DamagedHeader(PathBuf),
    /// The journal belongs to another call.
    #[error(
        "the journal `{}` belongs to something else: {differences}; name another file, or remove \
         this one", .path.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// Each thing that differs, with both values.
        differences: String,
    },
    /// There are results of other builds, which are to be [refused](crate::OtherBuilds::Refuse).
    #[error(
        "the journal `{}` has results of {items_of_others} items from another build of the \
         program, and of {items_of_this} from this one: start that build, let these results be \
         kept or computed anew, or name another file", .path.display()
    )]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// The number of items whose results are of other builds, or of unknown ones.
        items_of_others: u64,
        /// The number of items whose results are of this build.
        items_of_this: u64,
    },
    /// Another process, or this one, has the journal open for writing.
    #[error(
        "the journal `{}` is in use, by another job or another skeleton of this one: wait until \
         that has ended, or name another file", .0.display()
    )]
    InUse(PathBuf),
    /// The reader of the records has refused one.
    #[error(
        "the journal `{}` has a result for the items {positions:?} that this program cannot use \
         ({source}): was it built anew with other types? name another file, or remove this one",
        .path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The positions of the record.
        positions: Range<u64>,
        /// What the reader says.
        source: Refusal,
    },
}

/// Why records are not, or may not be, on the disk.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refuses to write. Nothing is written any more.
    #[error("the journal `{}` cannot be written: {source}{}", .path.display(), advice(.source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The file is as long as this process may make one. Nothing is written any more.
    #[error(
        "the journal `{}` cannot grow beyond {bytes_max} bytes, the limit of this process for a \
         file: raise it (`ulimit -f`)", .path.display()
    )]
    FileSizeLimit {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// Another program has removed, moved or replaced the file, has cut it or written to it.
    /// Nothing is written any more.
    #[error(
        "the journal `{}` was {what} by another program: no more results are kept", .path.display()
    )]
    Spoilt {
        /// The file.
        path: PathBuf,
        /// What has happened to it, as in "removed".
        what: &'static str,
    },
    /// The disk does not keep up. Records are dropped until it does.
    #[error(
        "the journal `{}` is not written as fast as results come: {waiting_bytes} bytes wait, and \
         results are left out until the disk keeps up", .path.display()
    )]
    Behind {
        /// The file.
        path: PathBuf,
        /// What waits in memory, in bytes.
        waiting_bytes: u64,
    },
    /// [`Journal::finish`](crate::Journal::finish) has waited in vain.
    #[error(
        "the journal `{}` is not on the disk after {limit:?}: its last results may be missing",
        .path.display()
    )]
    Late {
        /// The file.
        path: PathBuf,
        /// How long it has waited.
        limit: Duration,
    },
}

/// What helps against an error of the system, if that is known.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space there, or name a file on another disk",
        io::ErrorKind::QuotaExceeded => "; free some space there, or ask for a larger quota",
        io::ErrorKind::FileTooLarge => "; the file system has no longer files",
        io::ErrorKind::ReadOnlyFilesystem => "; name a file on another disk",
        _ => "",
    }
}
