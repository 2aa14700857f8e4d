//! Shared memory that a ward's MPI library would leave in the file system.
//!
//! Libraries remove their files when they are finalised, at the latest: a ward that is killed cannot,
//! and nor do the survivors, who finalise nothing. (Measured: Open MPI has a `vader_segment.…` of each
//! process in `/dev/shm`, which its launcher removes in the end, unless it is killed itself. MPICH's are
//! without a name as soon as MPI has started, and what is System V's goes with its last user.) So the ward
//! tells its guard which files these are when it joins the job, and the guard removes them unless the
//! ward has finalised MPI. Until then, while MPI starts, the guard itself looks now and then.
//!
//! What stays is what nobody can know: files that MPI has made since the guard looked, if the ward is
//! killed while MPI starts (they have names that MPI alone knows); and the session folder, in `$TMPDIR`, of
//! an `mpirun` that is killed by SIGKILL, which is that launcher's own.
//!
//! What belongs to other jobs or programs is safe: a file is removed only if
//!
//! - it is in `/dev/shm`, and the ward had it mapped when it joined the job, or before: what the program
//!   itself makes there later is its own affair;
//! - it belongs to this user, and was made since the ward began;
//! - it is still the same file.
//!
//! The other processes of the host do not miss it: when a job is made up, all have gone through the
//! start of MPI and opened what they share, and what is open outlives its name. A job that loses somebody
//! before that is lost.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FOLDER: &str = "/dev/shm/";

/// How the system marks files that have no name any more.
const NAMELESS: &str = " (deleted)";

/// A file of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    device: u64,
    inode: u64,
    pub(super) path: PathBuf,
}

impl Segment {
    /// Those of this process that were made after `began`.
    pub(super) fn own(began: SystemTime) -> Vec<Self> {
        Self::of(std::process::id(), began)
    }

    /// Those of a process that were made after `began`.
    pub(super) fn of(process: u32, began: SystemTime) -> Vec<Self> {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let mut paths: Vec<_> = maps.lines().filter_map(shared_memory_in).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.into_iter().filter_map(|path| Self::made_here(path, began).ok().flatten()).collect()
    }

    /// The file of this name, if it belongs to this user and was made after `began`.
    fn made_here(path: &Path, began: SystemTime) -> io::Result<Option<Self>> {
        let (file, own) = (path.symlink_metadata()?, Path::new("/proc/self").metadata()?);
        // Old kernels do not know when a file was made there; it has been changed since, though.
        let made = file.created().or_else(|_| file.modified())?;
        let is_ours = file.is_file() && file.uid() == own.uid() && made >= began;
        let (device, inode) = (file.dev(), file.ino());
        Ok(is_ours.then(|| Segment { device, inode, path: path.to_owned() }))
    }

    /// As the ward writes it.
    pub(super) fn to_line(&self) -> String {
        format!("{} {} {}", self.device, self.inode, self.path.display())
    }

    /// As the guard reads it.
    pub(super) fn from_line(text: &str) -> Option<Self> {
        let (device, rest) = text.split_once(' ')?;
        let (inode, path) = rest.split_once(' ')?;
        let (device, inode) = (device.parse().ok()?, inode.parse().ok()?);
        Some(Segment { device, inode, path: path.into() })
    }

    /// Removes the file, if it is still there.
    pub(super) fn remove(&self) {
        let is_same =
            |file: std::fs::Metadata| (file.dev(), file.ino()) == (self.device, self.inode);
        if self.path.symlink_metadata().is_ok_and(is_same) {
            // Another guard may have been faster.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file of shared memory in a line of what is mapped, if there is one.
fn shared_memory_in(line: &str) -> Option<&Path> {
    let path = &line[line.find(FOLDER)?..];
    // Privately mapped is what is only read: `rw-s` is shared.
    let is_shared = line.split_whitespace().nth(1)?.ends_with('s');
    (is_shared && !path.ends_with(NAMELESS)).then(|| Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    /// A file of this name there, removed at the end of the test.
    struct File(PathBuf);

    impl File {
        fn make(name: &str) -> Self {
            let path = PathBuf::from(format!("{FOLDER}segments-{name}-{}", std::process::id()));
            fs::write(&path, "something").expect("anybody may write there");
            File(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn shared_memory_is_known_by_its_line() {
        let line = |rest| format!("7f01bf3fe000-7f01bf7ff000 {rest}");
        for (rest, found) in [
            ("rw-s 00000000 00:1b 62560   /dev/shm/vader_segment.vm.0.1", true),
            ("rw-s 00000000 00:1b 62560   /dev/shm/mpich_shar_tmp1 (deleted)", false),
            ("r--p 00000000 00:1b 62560   /dev/shm/library.so", false),
            ("rw-s 00000000 fe:00 62560   /tmp/session/segment", false),
            ("rw-s 00000000 00:01 41386   /SYSV00000000 (deleted)", false),
            ("rw-p 00000000 00:00 0", false),
        ] {
            assert_eq!(shared_memory_in(&line(rest)).is_some(), found, "{rest}");
        }
        let with_space = line("rw-s 00000000 00:1b 62560   /dev/shm/a b");
        assert_eq!(shared_memory_in(&with_space), Some(Path::new("/dev/shm/a b")));
    }

    #[test]
    fn a_file_that_was_there_before_is_not_ours() {
        let file = File::make("before");
        let hour = Duration::from_hours(1);
        let ours = |began| Segment::made_here(&file.0, began).expect("it is there");
        assert!(ours(SystemTime::now() - hour).is_some());
        assert!(ours(SystemTime::now() + hour).is_none());
    }

    #[test]
    fn only_the_same_file_is_removed() {
        let hour_ago = SystemTime::now() - Duration::from_hours(1);
        let file = File::make("same");
        let segment = Segment::made_here(&file.0, hour_ago).expect("it is there").expect("ours");
        let heard = Segment::from_line(&segment.to_line()).expect("as it was written");
        assert_eq!(heard, segment);
        // Somebody else's has taken the name.
        let other = File::make("other");
        fs::rename(&other.0, &file.0).expect("the folder is everybody's");
        heard.remove();
        assert!(file.0.exists());
        let own = Segment::made_here(&file.0, hour_ago).expect("it is there").expect("ours");
        own.remove();
        assert!(!file.0.exists());
        // Nobody minds if it has gone.
        own.remove();
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        for line in ["", "1 2", "x 2 /dev/shm/a", "1 y /dev/shm/a"] {
            assert_eq!(Segment::from_line(line), None, "{line}");
        }
    }
}
