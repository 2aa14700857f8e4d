//! What can go wrong, in words for the person who started the job.

use std::io;
use std::path::PathBuf;

use crate::barrier::{CannotJoin, NotLockFree, Removed};
use crate::limits::{LAYOUT_VERSION, NAME_BYTES_MAX};

/// Why an arena cannot be used, or a task cannot be added or run. The arena is as good as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses something.
    #[error("the arena `{}` cannot be {action}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as in "opened".
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The path names something else.
    #[error("`{}` is no arena, and was left as it is: name another file", .0.display())]
    NoArena(PathBuf),
    /// The file is of another user, or others may use it.
    #[error(
        "the arena `{}` has owner {owner} and mode {mode:o}, and is used only by its owner {user} \
         with mode 600: name another file", .path.display()
    )]
    OtherUser {
        /// The file.
        path: PathBuf,
        /// Who has the file.
        owner: u32,
        /// Who this process is.
        user: u32,
        /// Its rights.
        mode: u32,
    },
    /// The file was made by another version of this crate.
    #[error(
        "the arena `{}` has layout {found}, and this program knows layout {}: finish it with the \
         program that made it, or remove it", .path.display(), LAYOUT_VERSION
    )]
    OtherLayout {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u64,
    },
    /// The file was made by another build of the program, to which the codes of its tasks mean
    /// something else.
    #[error(
        "the arena `{}` is of build {found:#x} of the program, and this is {this:#x}: finish it \
         with the program that made it, or remove it", .path.display()
    )]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// The build that made it.
        found: u64,
        /// This build.
        this: u64,
    },
    /// The header does not agree with its checksum, or says what cannot be.
    #[error("the arena `{}` has a damaged header: remove it", .0.display())]
    DamagedHeader(PathBuf),
    /// A part of the file is missing.
    #[error(
        "the arena `{}` has {length} bytes of {needed}: its end is lost; remove it", .path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How long it is.
        length: u64,
        /// How long it should be.
        needed: u64,
    },
    /// Another job has it.
    #[error(
        "the arena `{}` is in use by another job: wait for its end, or name another file",
        .0.display()
    )]
    Busy(PathBuf),
    /// It is as large as it may become.
    #[error(
        "the arena is full: it may have {size_bytes} bytes (`Options::size_bytes`, when it was \
         made), and for the next step alone needs {needed_bytes}: make another, several times as \
         large"
    )]
    Full {
        /// Its largest size.
        size_bytes: u64,
        /// The size that would do for what was just asked for.
        needed_bytes: u64,
    },
    /// The file system is full, as `/dev/shm` of a container is after 64 MiB.
    #[error(
        "no room for {needed_bytes} more bytes of the arena `{}` ({source}): make its file system \
         larger (`docker run --shm-size`), or name a file elsewhere", .path.display()
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// What is missing.
        needed_bytes: u64,
        /// What the system says.
        source: io::Error,
    },
    /// All slots for workers are taken, by workers that live, as far as is known.
    #[error("the arena has room for {0} workers, and all are there: make one for more")]
    NoSlot(usize),
    /// An object in the arena does not make sense. It is left out.
    #[error("a damaged {what} in the arena at offset {offset:#x}")]
    Damaged {
        /// What it should have been.
        what: &'static str,
        /// Where.
        offset: u64,
    },
    /// The name of a set is too long.
    #[error("a set's name has 1 to {NAME_BYTES_MAX} bytes, and this one has {0}")]
    Name(usize),
    /// The two highest numbers are the set's own.
    #[error("no task has the number {0}: the two highest are kept for the set itself")]
    Number(u64),
    /// An argument, or the list of what a task awaits is too long.
    #[error("a task cannot have {0} bytes of arguments or await {0} others: at most 2^32 - 1")]
    TooLarge(usize),
    /// Something in the arena cannot grow any more, however large the file may become.
    #[error("the arena cannot hold more {0}: use several sets, or another arena")]
    Crowded(&'static str),
    /// There is no such task, so nothing can wait for it.
    #[error("there is no task {0} in the set: add it before those that await it")]
    NoTask(u64),
    /// The set has ended without this task.
    #[error("the set has finished, and task {0} comes too late for it")]
    Finished(u64),
    /// The number names a task with another code.
    #[error("there is a task {0} with another code: tasks of a set have different numbers")]
    OtherTask(u64),
    /// The set would wait for itself.
    #[error("task {0} awaits the end of its own set, which awaits it: put it into another set")]
    Circle(u64),
    /// The other workers have taken this one for dead, and its task over.
    #[error("this worker was silent for too long, and was taken for dead: it has to join again")]
    Expelled,
    /// A task runs a set.
    #[error("a task cannot run a set: let another task follow it")]
    Nested,
    /// Workers cannot meet on this processor.
    #[error(transparent)]
    NotLockFree(#[from] NotLockFree),
    /// The barrier of a set is damaged.
    #[error(transparent)]
    CannotMeet(#[from] CannotJoin),
}

impl From<Removed> for Error {
    fn from(_: Removed) -> Self {
        Self::Expelled
    }
}

/// Of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
