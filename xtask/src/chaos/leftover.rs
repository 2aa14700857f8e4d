//! What a job leaves behind and should not: processes, shared memory, files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::proc;
use crate::process::{Failure, Result};

const SHARED_MEMORY: &str = "/dev/shm/";

/// How long the last processes of a job may take to end after its launcher.
const GRACE: Duration = Duration::from_secs(2);

/// A folder for files of the jobs, removed with all that is in it. Its name is short: sockets may
/// be in it, whose paths have a limit.
pub(crate) fn folder() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("chaos-").tempdir();
    made.map_err(|error| Failure(format!("cannot make a folder for files of jobs: {error}")))
}

/// The files in a folder; they are removed.
fn empty(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // It is only tidying up.
        let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
    }
    files
}

/// What is left of a job after its launcher has ended, in words: processes, which are ended, files
/// in `folder` and those among `shared_memory`, the files there that its processes were seen to
/// use. These are removed. Those of the MPI library count as well: nothing may stay of killed
/// processes either.
pub(crate) fn of_job(mark: &str, folder: &Path, shared_memory: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut left = Vec::new();
    let start = Instant::now();
    while !proc::marked(mark).is_empty() && start.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(10));
    }
    for pid in proc::marked(mark) {
        left.push(proc::describe(pid));
        proc::kill(pid, mark);
    }
    for path in shared_memory.iter().filter(|path| path.exists()) {
        left.push(format!("the file {}", path.display()));
        // It is only tidying up.
        let _ = fs::remove_file(path);
    }
    left.extend(empty(folder).iter().map(|path| format!("the file {}", path.display())));
    left
}

/// Whether this is part of the folder that Open MPI's mpiexec, or its orted, makes for a session,
/// and cannot remove if it is killed.
pub(crate) fn is_session_of_open_mpi(what: &str) -> bool {
    what.starts_with("the file ") && what.contains("/ompi.")
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
        let folder = folder().expect("there is room");
        assert_eq!(of_job(&mark, folder.path(), &BTreeSet::new()), [""; 0]);

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
        let left = of_job(&mark, folder.path(), &used);
        child.wait().expect("it was killed");
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(left[0].contains("sleep 1000"), "{left:?}");
        let files = [&shared[1], &shared[0], &file];
        assert_eq!(left[1..], files.map(|path| format!("the file {}", path.display())));
        assert!(!shared[0].exists() && !shared[1].exists() && !file.exists());
    }
}
