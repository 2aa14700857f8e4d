//! Making and opening the file of an arena: which files are refused, and how one job has it.
//!
//! Two bytes of the file are locked. The *gate* is held by one process while it opens the arena.
//! The *life* lock is shared by all processes that have it open: a process that gets it alone
//! knows that all others have ended, and the arena is its job's from then on.
//!
//! A copy of the process, made by `fork` alone, holds these locks as well.
//!
//! A process may die at any point of making an arena. The file then begins with a mark of its own,
//! and is made anew.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::header::{FIXED_WORDS, Fixed, Layout, MAGIC, UNFINISHED};
use super::map::{Lock, Mapping, lock};
use super::{PAGE_BYTES, Space, reserve};
use crate::limits::LAYOUT_VERSION;
use crate::mapped::error::{Error, Result};
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::fill;

const GATE: i64 = 0;
const LIFE: i64 = 1;

/// How long a process of another job may take to open the arena.
const GATE_MAX: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_mins(1) };

/// What an arena is to be, and who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) job: u64,
    pub(crate) build: u64,
    /// Of an arena that is made: the bytes of all its pages.
    pub(crate) size_bytes: u64,
    /// Of an arena that is made.
    pub(crate) workers: u64,
}

/// How an arena was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No other process has it. All in it are dead.
    Alone,
    /// Other processes of this job have it, too.
    Shared,
}

impl Space {
    /// Opens the file, makes an arena of it if it is new, and calls `prepare` while no other
    /// process of the job can open it.
    pub(crate) fn open(
        path: &Path,
        identity: &Identity,
        prepare: impl FnOnce(&Self, Access) -> Result<()>,
    ) -> Result<Self> {
        let io = |action| io_error(path, action);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path).map_err(io("opened"))?;
        check_owner(&file, path)?;
        let begun = Instant::now();
        while !lock(&file, GATE, Lock::Alone).map_err(io("locked"))? {
            // One of this job opens a large arena, say. The gate is free when that one ends.
            if begun.elapsed() > GATE_MAX && job_in(&file) != Some(identity.job) {
                return Err(Error::Busy(path.to_owned()));
            }
            thread::sleep(Duration::from_millis(1));
        }
        let is_alone = lock(&file, LIFE, Lock::Alone).map_err(io("locked"))?;
        let access = if is_alone { Access::Alone } else { Access::Shared };
        if access == Access::Shared && !lock(&file, LIFE, Lock::Shared).map_err(io("locked"))? {
            return Err(Error::Busy(path.to_owned()));
        }
        let layout = match read_header(&file, path, identity)? {
            Some(layout) => layout,
            None => make(&file, path, identity)?,
        };
        let map = Mapping::new(&file, layout.file_bytes).map_err(io("mapped"))?;
        let space = Self { map, file, path: path.to_owned(), layout };
        let job = &space.header().job;
        match access {
            Access::Alone => job.store(identity.job, Release),
            Access::Shared if job.load(Acquire) == identity.job => {}
            Access::Shared => return Err(Error::Busy(path.to_owned())),
        }
        if space.header().committed.load(Acquire) > layout.pages {
            return Err(Error::DamagedHeader(path.to_owned()));
        }
        if access == Access::Alone {
            space.reserve_again()?;
        }
        prepare(&space, access)?;
        lock(&space.file, LIFE, Lock::Shared).map_err(io("locked"))?;
        lock(&space.file, GATE, Lock::None).map_err(io("unlocked"))?;
        Ok(space)
    }
}

fn io_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Io { path: path.to_owned(), action, source }
}

/// The job that has the file, whatever that is.
fn job_in(file: &File) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8 * FIXED_WORDS as u64).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

fn check_owner(file: &File, path: &Path) -> Result<()> {
    let about = file.metadata().map_err(io_error(path, "read"))?;
    if !about.is_file() {
        return Err(Error::NoArena(path.to_owned()));
    }
    let (owner, user, mode) = (about.uid(), geteuid().as_raw(), about.mode() & 0o777);
    let for_others = mode & 0o077;
    if owner == user && for_others == 0 {
        return Ok(());
    }
    Err(Error::OtherUser { path: path.to_owned(), owner, user, mode })
}

/// The layout of the arena in the file, or `None` if there is none yet.
fn read_header(file: &File, path: &Path, identity: &Identity) -> Result<Option<Layout>> {
    let path = || PathBuf::from(path);
    let io = |source| Error::Io { path: path(), action: "read", source };
    let length = file.metadata().map_err(io)?.len();
    let mut bytes = [0; 8 * FIXED_WORDS];
    if length == 0 {
        return Ok(None);
    }
    let read = file.read_at(&mut bytes, 0).map_err(io)?;
    let mut words = [0; FIXED_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
    }
    match words[0] {
        UNFINISHED if read >= 8 => return Ok(None),
        MAGIC if read == bytes.len() => {}
        MAGIC => return Err(Error::DamagedHeader(path())),
        _ => return Err(Error::NoArena(path())),
    }
    if words[1] != LAYOUT_VERSION {
        return Err(Error::OtherLayout { path: path(), found: words[1] });
    }
    let Fixed { build, layout, owner } =
        Fixed::from_words(words).ok_or_else(|| Error::DamagedHeader(path()))?;
    let user = geteuid().as_raw();
    if owner != u64::from(user) {
        return Err(Error::OtherUser { path: path(), owner: owner as u32, user, mode: 0o600 });
    }
    if build != identity.build {
        return Err(Error::OtherBuild { path: path(), found: build, this: identity.build });
    }
    if length < layout.file_bytes {
        return Err(Error::Truncated { path: path(), length, needed: layout.file_bytes });
    }
    Ok(Some(layout))
}

/// Makes an arena of a file that is empty, or that was begun.
fn make(file: &File, path: &Path, identity: &Identity) -> Result<Layout> {
    let io = io_error(path, "made");
    let pages = identity.size_bytes.div_ceil(PAGE_BYTES);
    let layout = Layout::new(pages, identity.workers).ok_or_else(|| {
        io(io::Error::new(io::ErrorKind::InvalidInput, "too large, or no worker"))
    })?;
    // Whatever is there of an earlier attempt goes, and the file is never one without a mark.
    file.write_all_at(&UNFINISHED.to_ne_bytes(), 0).map_err(&io)?;
    file.set_len(8).map_err(&io)?;
    file.set_len(layout.file_bytes).map_err(&io)?;
    let front = layout.front_bytes();
    reserve(file, 0, front).map_err(|source| Error::NoRoom {
        path: path.to_owned(),
        needed_bytes: front,
        source: source.into(),
    })?;
    let map = Mapping::new(file, layout.file_bytes).map_err(&io)?;
    let header: &super::Header = map.get(0).expect("the file has a header");
    let owner = geteuid().as_raw().into();
    let words = Fixed { build: identity.build, layout, owner }.words();
    for (word, value) in header.fixed.iter().zip(words).skip(1) {
        fill(word, value);
    }
    header.fixed[0].store(MAGIC, Release);
    Ok(layout)
}
