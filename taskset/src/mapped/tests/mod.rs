//! What all parts do together. Processes that die are this program, started again for one test.

mod calls;
mod death;
mod life;
mod refused;
mod sets;

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

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

/// Runs the ignored test with this path in a process of its own, with these words in a variable.
pub(crate) fn in_child(test: &str, words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(WORDS, words).stdout(Stdio::null());
    command
}

/// The words for this process, if it is such a child.
pub(crate) fn words() -> Option<Vec<String>> {
    let words = std::env::var(WORDS).ok()?;
    Some(words.split(' ').map(str::to_owned).collect())
}

const WORDS: &str = "TASKSET_TEST_CHILD";

#[track_caller]
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    assert!(status.success() || status.signal() == Some(9), "the child failed: {status}");
    status.signal() == Some(9)
}
