//! Shared memory that a child's MPI library would leave in the file system.
//!
//! Libraries remove their files when they are finalised, at the latest: a child that is killed
//! cannot, and the survivors do not, since they finalise nothing. (Measured: Open MPI has a
//! `vader_segment.…` of each process in `/dev/shm`, which its launcher removes in the end, unless
//! it is killed itself. MPICH's are without a name as soon as MPI has started, and what is System
//! V's goes with its last user.)
//!
//! So the child tells its guard which files it has when it joins the job, and the guard removes
//! them unless the child has finalised MPI. The other processes of the host do not miss them: when
//! a job is made up, all have gone through the start of MPI and opened what they share, and what is
//! open outlives its name. (Before, a death ends the job: see [`sweep`](super::sweep).)
//!
//! What stays are the files of a library that is not in [`NAMES`]; and the session folder, in
//! `$TMPDIR`, of an `mpirun` that is killed by SIGKILL, which is that launcher's own.
//!
//! Files of other jobs or programs, or of the program itself, are safe: a file is removed only if
//!
//! - it is in `/dev/shm`, and its name is one that MPI libraries give: other libraries share files
//!   there between all programs of a user;
//! - the child has it mapped or open, this very file;
//! - it belongs to this user, and was made since the child was about to start MPI;
//! - it is still the same file.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FOLDER: &str = "/dev/shm/";

/// How the names of files start there that belong to one job, and are of no use without it. (PSM2
/// also has files of all programs there, `psm2_hfi_affinity_…`: these are none of them.)
const NAMES: [&str; 9] = [
    // MPICH, and what descends from it: `src/mpl/src/shm/mpl_shm_mmap.c`.
    "mpich_shar_tmp",
    // Open MPI: `opal/mca/btl/vader` until version 4, `opal/mca/btl/sm` since 5, `ompi/mca/osc/sm`
    // for windows, and `opal/mca/shmem/mmap` where the session folder is on a network.
    "vader_segment.",
    "sm_segment.",
    "osc_sm.",
    "open_mpi_shmem_mmap.",
    // UCX: `src/uct/sm/mm/posix/mm_posix.c`.
    "ucx_shm_posix_",
    // PSM, PSM2 and PSM3 (in libfabric): `ptl_am/am_reqrep_shmem.c` of each.
    "psm_shm.",
    "psm2_shm.",
    "psm3_shm.",
];

/// How the system marks files that have no name any more.
const NAMELESS: &str = " (deleted)";

/// A file of shared memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    device: u64,
    inode: u64,
    pub(super) path: PathBuf,
}

impl Segment {
    /// Those that this process has and that were made after `began`.
    pub(super) fn own(began: SystemTime) -> Vec<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mapped = maps.lines().filter_map(Self::mapped);
        let files = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
        let open = files.filter_map(|file| Self::open(&file.ok()?.path()));
        let mut found: Vec<_> = mapped.chain(open).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|one| one.was_made_here(began).unwrap_or(false));
        found
    }

    /// Those of this machine that were made after `began`.
    pub(super) fn all(began: SystemTime) -> Vec<Self> {
        let files = std::fs::read_dir(FOLDER).into_iter().flatten();
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let of_mpi = paths.filter(|path| path.to_str().is_some_and(is_of_mpi));
        let found = of_mpi.filter_map(|path| Self::with(&path.symlink_metadata().ok()?, path));
        found.filter(|one| one.was_made_here(began).unwrap_or(false)).collect()
    }

    fn with(file: &Metadata, path: PathBuf) -> Option<Self> {
        file.is_file().then(|| Segment { device: file.dev(), inode: file.ino(), path })
    }

    /// What a line of what is mapped has of shared memory of MPI libraries, as in
    /// `7f01-7f02 rw-s 00000000 00:1b 6256   /dev/shm/vader_segment.vm.0.1`.
    fn mapped(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut column = || {
            let (column, others) = rest.trim_start().split_once(' ')?;
            rest = others;
            Some(column)
        };
        let (_addresses, access, _offset) = (column()?, column()?, column()?);
        let (major, minor) = column()?.split_once(':')?;
        let [major, minor] = [major, minor].map(|number| u32::from_str_radix(number, 16));
        let inode = column()?.parse().ok()?;
        let path = rest.trim_start();
        let device = rustix::fs::makedev(major.ok()?, minor.ok()?);
        // Privately mapped is what is only read: `rw-s` is shared.
        (access.ends_with('s') && is_of_mpi(path)).then(|| Segment {
            device,
            inode,
            path: path.into(),
        })
    }

    /// The segment that a process has open, by its entry in `/proc/PID/fd`. Between making a
    /// file and mapping it MPICH has it open.
    fn open(entry: &Path) -> Option<Self> {
        let path = entry.read_link().ok().filter(|path| path.to_str().is_some_and(is_of_mpi))?;
        Self::with(&entry.metadata().ok()?, path)
    }

    /// Whether the file of this name is this one, belongs to this user, and was made after `began`.
    fn was_made_here(&self, began: SystemTime) -> io::Result<bool> {
        let (file, own) = (self.path.symlink_metadata()?, Path::new("/proc/self").metadata()?);
        Ok(file.is_file() && self.is(&file) && file.uid() == own.uid() && made(&file)? >= began)
    }

    pub(super) fn is(&self, file: &Metadata) -> bool {
        (file.dev(), file.ino()) == (self.device, self.inode)
    }

    /// As the child writes it.
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
        if self.path.symlink_metadata().is_ok_and(|file| self.is(&file)) {
            // Another guard may have been faster.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// When a file was made. Old kernels do not know it there; it has been changed since, though.
pub(super) fn made(file: &Metadata) -> io::Result<SystemTime> {
    file.created().or_else(|_| file.modified())
}

/// Whether a file of this path is in shared memory, has a name still, and one that MPI libraries
/// give.
fn is_of_mpi(path: &str) -> bool {
    let name = path.strip_prefix(FOLDER).filter(|name| !name.contains('/'));
    let is_known = |name: &str| NAMES.iter().any(|start| name.starts_with(start));
    name.is_some_and(is_known) && !path.ends_with(NAMELESS)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sys::map;
    use std::fs;
    use std::time::Duration;

    pub(crate) const HOUR: Duration = Duration::from_hours(1);

    /// A file with this path, removed at the end of the test.
    pub(crate) struct File {
        pub(crate) path: PathBuf,
        /// Open under another name, lest the guard of another test sweeps it away.
        pub(crate) held: Option<fs::File>,
    }

    impl File {
        /// One of this name in shared memory.
        pub(crate) fn make(name: &str) -> Self {
            Self::at(PathBuf::from(format!("{FOLDER}{name}-{}", std::process::id())))
        }

        fn at(path: PathBuf) -> Self {
            let name = path.file_name().expect("it has one").to_string_lossy();
            let other = path.with_file_name(format!("held-{name}"));
            let held = fs::File::create(&other).expect("anybody may write there");
            fs::write(&other, "something").expect("there is room");
            fs::hard_link(&other, &path).expect("it is there");
            fs::remove_file(other).expect("it was made here");
            File { path, held: Some(held) }
        }

        /// As it would be found if it were mapped.
        fn segment(&self) -> Segment {
            let file = self.path.metadata().expect("it is there");
            Segment { device: file.dev(), inode: file.ino(), path: self.path.clone() }
        }

        /// Whether this process would remove it.
        fn is_found(&self) -> bool {
            let found = Segment::own(SystemTime::now() - HOUR);
            found.iter().any(|segment| segment.path == self.path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.path);
        }
    }

    #[test]
    fn shared_memory_is_known_by_its_line() {
        for (rest, found) in [
            ("rw-s 00000000 00:1b 62560   /dev/shm/vader_segment.vm.0.1", true),
            ("rw-s 00000000 00:1b 62560                      /dev/shm/sm_segment.a b", true),
            ("rw-s 00000000 00:1b 62560   /dev/shm/mpich_shar_tmp1", true),
            ("rw-s 00000000 00:1b 62560   /dev/shm/mpich_shar_tmp1 (deleted)", false),
            ("r--p 00000000 00:1b 62560   /dev/shm/vader_segment.vm.0.1", false),
            ("rw-s 00000000 00:1b 62560   /srv/chroot/dev/shm/vader_segment.vm.0.1", false),
            ("rw-s 00000000 00:1b 62560   /dev/shm/folder/vader_segment.vm.0.1", false),
            ("rw-s 00000000 00:1b 62560   /dev/shm/vader_segment.d/../mine", false),
            ("rw-s 00000000 00:1b 62560   /dev/shm/mine", false),
            ("rw-s 00000000 00:1b 62560   /dev/shm/lttng-ust-wait-8-1000", false),
            ("rw-s 00000000 00:1b 62560   /dev/shm/psm2_hfi_affinity_shm.0", false),
            ("rw-s 00000000 fe:00 62560   /tmp/session/vader_segment.vm.0.1", false),
            ("rw-s 00000000 00:01 41386   /SYSV00000000 (deleted)", false),
            ("rw-p 00000000 00:00 0", false),
        ] {
            let segment = Segment::mapped(&format!("7f01bf3fe000-7f01bf7ff000 {rest}"));
            assert_eq!(segment.is_some(), found, "{rest}");
            if let Some(segment) = segment {
                assert_eq!((segment.device, segment.inode), (0x1b, 62560), "{rest}");
                assert!(rest.ends_with(&format!(" {}", segment.path.display())), "{segment:?}");
            }
        }
    }

    #[test]
    fn what_mpi_libraries_map_is_found() {
        for name in NAMES {
            let file = File::make(&format!("{name}found"));
            assert!(!file.is_found(), "{name}: it is not mapped yet");
            map(&file.path).expect("it can be mapped");
            assert!(file.is_found(), "{name}");
        }
    }

    #[test]
    fn what_is_open_only_is_found_too() {
        let file = File::make("mpich_shar_tmp-open");
        assert!(!file.is_found());
        let open = fs::File::open(&file.path).expect("it is there");
        assert!(file.is_found());
        drop(open);
        assert!(!file.is_found());
    }

    #[test]
    fn files_that_others_may_share_are_not_touched() {
        for name in ["lttng-ust-wait-8", "my_data", "psm2_hfi_affinity_shm.0", "not_vader_segment."]
        {
            let file = File::make(name);
            map(&file.path).expect("it can be mapped");
            assert!(!file.is_found(), "{name}");
        }
    }

    #[test]
    fn a_file_elsewhere_does_not_stand_for_one_of_its_name() {
        let file = File::make("vader_segment.elsewhere");
        let root = tempfile::tempdir().expect("there is room");
        let folder = root.path().join(&FOLDER[1..]);
        fs::create_dir_all(&folder).expect("there is room");
        let inside = File::at(folder.join(file.path.file_name().expect("it has one")));
        map(&inside.path).expect("it can be mapped");
        assert!(!file.is_found() && !inside.is_found());
    }

    #[test]
    fn a_file_that_was_there_before_is_not_ours() {
        let segment = File::make("before");
        let ours = |began| segment.segment().was_made_here(began).expect("it is there");
        assert!(ours(SystemTime::now() - HOUR));
        assert!(!ours(SystemTime::now() + HOUR));
    }

    #[test]
    fn a_file_that_has_taken_the_name_of_a_mapped_one_is_not_ours() {
        let file = File::make("taken");
        let Segment { device, inode, path } = file.segment();
        let others = [(device + 1, inode), (device, inode + 1)];
        for (device, inode) in others {
            let segment = Segment { device, inode, path: path.clone() };
            assert!(!segment.was_made_here(SystemTime::now() - HOUR).expect("it is there"));
        }
    }

    #[test]
    fn only_the_same_file_is_removed() {
        let file = File::make("same");
        let segment = file.segment();
        let heard = Segment::from_line(&segment.to_line()).expect("as it was written");
        assert_eq!(heard, segment);
        // Another user's file has taken the name.
        let other = File::make("other");
        fs::rename(&other.path, &file.path).expect("the folder is everybody's");
        heard.remove();
        assert!(file.path.exists());
        let own = file.segment();
        own.remove();
        assert!(!file.path.exists());
        // A file that is gone is no error.
        own.remove();
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        for line in ["", "1 2", "x 2 /dev/shm/a", "1 y /dev/shm/a"] {
            assert_eq!(Segment::from_line(line), None, "{line}");
            assert_eq!(Segment::mapped(line), None, "{line}");
        }
    }
}
