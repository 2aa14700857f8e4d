//! What a job leaves behind: processes, shared memory, files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::proc;
use crate::process::{Failure, Result};

const SHARED_MEMORY: &str = "/dev/shm/";

/// How long the last processes of a job may take to end after its launcher.
const GRACE: Duration = Duration::from_secs(2);

/// What the names of shared memory of an MPI library begin with: a killed process cannot remove its
/// own. Of MPICH (and UCX below it), and of Open MPI.
const OF_MPI: [&str; 5] = ["mpich_shm", "mpich_shar", "ucx_shm", "vader_segment", "psm_shm"];

/// A folder for the temporary files of the jobs, removed with all that is in it. Its name is short:
/// sockets may be in it, whose paths have a limit.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("chaos-{}", std::process::id()));
        let failure = |error| Failure(format!("cannot make {}: {error}", path.display()));
        fs::create_dir_all(&path).map_err(failure)?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The files that are in it; they are removed.
    fn empty(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder { folders.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            // It is only tidying up.
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a job has left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// In words; there should be none.
    pub(crate) own: Vec<String>,
    /// Files of the MPI library and its launcher, which were removed: of a killed process they are
    /// to be expected.
    pub(crate) of_mpi: Vec<String>,
}

/// What is left of a job after its launcher has ended: processes, which are ended, files in `folder`
/// and those among `shared_memory`, the files there that its processes were seen to use. These are
/// removed.
pub(crate) fn of_job(mark: &str, folder: &Folder, shared_memory: &BTreeSet<PathBuf>) -> Left {
    let mut left = Left::default();
    let start = Instant::now();
    while !proc::marked(mark).is_empty() && start.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(10));
    }
    for pid in proc::marked(mark) {
        left.own.push(proc::describe(pid));
        proc::kill(pid, mark);
    }
    for path in shared_memory.iter().filter(|path| path.exists()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if OF_MPI.iter().any(|prefix| name.starts_with(prefix)) {
            left.of_mpi.push(path.display().to_string());
        } else {
            left.own.push(format!("the file {}", path.display()));
        }
        // It is only tidying up.
        let _ = fs::remove_file(path);
    }
    // Ultramarine itself writes no temporary files.
    left.of_mpi.extend(folder.empty().iter().map(|path| path.display().to_string()));
    left
}

/// The files of shared memory that processes with this mark use now.
pub(crate) fn shared_memory_of(mark: &str) -> BTreeSet<PathBuf> {
    let maps = |pid: u32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let all = proc::marked(mark).into_iter().map(maps).collect::<String>();
    let path = |line: &str| Some(PathBuf::from(&line[line.find(SHARED_MEMORY)?..]));
    all.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_and_files_that_stay_are_found_and_cleared_away() {
        let mark = format!("left-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(format!("chaos-{mark}")));
        fs::create_dir_all(folder.path()).expect("anybody may write there");
        assert_eq!(of_job(&mark, &folder, &BTreeSet::new()), Left::default());

        let session = folder.path().join("session");
        fs::create_dir_all(&session).expect("the folder is ours");
        let file = session.join("rank0");
        let names = ["vader_segment.test", "other.test"];
        let shared = names.map(|name| PathBuf::from(format!("{SHARED_MEMORY}{name}.{mark}")));
        for path in shared.iter().chain([&file]) {
            fs::write(path, "").expect("anybody may write there");
        }
        let mut child = Command::new("sleep");
        let mut child = child.arg("1000").env(proc::MARK, &mark).spawn().expect("it is everywhere");
        while !proc::is_marked(child.id(), &mark) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(shared_memory_of(&mark), BTreeSet::new());

        let gone = PathBuf::from(format!("{SHARED_MEMORY}vader_segment.gone.{mark}"));
        let used = shared.iter().cloned().chain([gone]).collect();
        let left = of_job(&mark, &folder, &used);
        child.wait().expect("it was killed");
        assert_eq!(left.own.len(), 2, "{left:?}");
        assert!(left.own[0].contains("sleep 1000"), "{left:?}");
        assert_eq!(left.own[1], format!("the file {}", shared[1].display()));
        assert_eq!(left.of_mpi, [&shared[0], &file].map(|path| path.display().to_string()));
        assert!(!shared[0].exists() && !shared[1].exists() && !file.exists());
    }
}
