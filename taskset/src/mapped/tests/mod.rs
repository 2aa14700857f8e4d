//! What all parts do together.

mod calls;
mod cells;
mod death;
mod life;
mod refused;
mod sets;
mod watch;

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{Arena, Options};

/// A place for an arena, for one test.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        // In memory, where that is: a file system on a disk takes ten times as long.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { folder: folder.unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("arena")
    }

    pub(crate) fn open(&self) -> Arena {
        Arena::open(self.path(), &options()).unwrap()
    }
}

/// For a small arena, of one job.
pub(crate) fn options() -> Options {
    Options::new(1, 2).size_bytes(64 << 20).workers(4)
}
