//! What the system allows a process: files, threads, locked and shared memory.

use super::check::Check;
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// What a process has open beside its connections to others.
const FILES_APART: u64 = 128;

/// Threads and guards beside the workers, for each process.
const THREADS_APART: u64 = 16;

/// What MPI libraries put into shared memory, for each process.
const SHARED_EACH: u64 = 16 << 20;

const SHARED_MEMORY: &str = "/dev/shm";

/// The fast networks, which read and write memory that must stay where it is.
const FAST_NETWORKS: &str = "/sys/class/infiniband";

pub(super) fn checks(processes: u32, per_host: u32) -> [Check; 4] {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = u64::from(per_host) * THREADS_APART + cores as u64;
    [
        // After a death each process may be connected with each other.
        at_least(
            ("files", "open files", "ulimit -n"),
            getrlimit(Resource::Nofile).current,
            u64::from(processes) + FILES_APART,
        ),
        at_least(
            ("threads", "processes and threads of this user", "ulimit -u"),
            getrlimit(Resource::Nproc).current,
            threads,
        ),
        locked_memory(),
        shared_memory(u64::from(per_host) * SHARED_EACH),
    ]
}

fn at_least(
    (name, what, command): (&'static str, &str, &str),
    limit: Option<u64>,
    needed: u64,
) -> Check {
    match limit {
        None => Check::ok(name, format!("{what}: without limit")),
        Some(limit) if limit >= needed => {
            Check::ok(name, format!("{what}: at most {limit}, and about {needed} are needed"))
        }
        Some(limit) => {
            let found = format!("{what}: at most {limit}, and about {needed} are needed");
            Check::wrong(name, found, format!("`{command} {needed}` before the start"))
        }
    }
}

fn locked_memory() -> Check {
    let networks = std::fs::read_dir(FAST_NETWORKS);
    let is_fast = networks.is_ok_and(|mut networks| networks.next().is_some());
    match getrlimit(Resource::Memlock).current {
        Some(limit) if is_fast => {
            let found = format!("locked memory: at most {} KiB", limit >> 10);
            Check::warning("memlock", found, "`ulimit -l unlimited`, or InfiniBand may not work")
        }
        Some(limit) => {
            let found =
                format!("locked memory: at most {} KiB; no network needs more", limit >> 10);
            Check::ok("memlock", found)
        }
        None => Check::ok("memlock", "locked memory: without limit"),
    }
}

fn shared_memory(needed: u64) -> Check {
    let mend = "mount a larger one (docker run --shm-size=1g)";
    match statvfs(Path::new(SHARED_MEMORY)) {
        Err(error) => {
            let found = format!("{SHARED_MEMORY} cannot be used ({error})");
            Check::warning("shm", found, mend)
        }
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let found = format!("{SHARED_MEMORY} has {} MiB free", free >> 20);
            if free >= needed {
                return Check::ok("shm", found);
            }
            let found = format!("{found}, and MPI may need {} MiB", needed >> 20);
            Check::warning("shm", found, mend)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_comes_with_the_command_that_raises_it() {
        let files = ("files", "open files", "ulimit -n");
        let line = |limit| at_least(files, limit, 300).to_string();
        assert_eq!(line(None), "ok       files     open files: without limit");
        assert!(line(Some(300)).starts_with("ok "));
        assert_eq!(
            line(Some(299)),
            "wrong    files     open files: at most 299, and about 300 are needed: `ulimit -n 300` \
             before the start"
        );
    }

    #[test]
    fn shared_memory_without_end_is_too_much() {
        let line = shared_memory(u64::MAX).to_string();
        assert!(line.starts_with("warning  shm       /dev/shm "), "{line}");
    }
}
