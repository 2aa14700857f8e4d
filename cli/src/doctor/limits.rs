//! What the system allows a process: files, threads, locked and shared memory.

use super::check::Check;
use rustix::process::{Resource, getrlimit};
use ultramarine_environment::shared_memory::{BYTES_EACH, FOLDER, SharedMemory};

/// What a process has open beside its connections to others.
const FILES_APART: u64 = 128;

/// Threads and guards beside the workers, for each process.
const THREADS_APART: u64 = 16;

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
        shared_memory(per_host),
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

fn shared_memory(per_host: u32) -> Check {
    let mend = "mount a larger one (docker run --shm-size=1g)";
    match SharedMemory::of_this_host() {
        Err(error) => {
            let found = format!("{FOLDER} cannot be used ({error})");
            Check::warning("shm", found, mend)
        }
        Ok(space) => shared_memory_of(space, per_host, mend),
    }
}

fn shared_memory_of(space: SharedMemory, per_host: u32, mend: &str) -> Check {
    let needed = BYTES_EACH * u64::from(per_host);
    let found = format!("{FOLDER} has {} of {} MiB free", space.free >> 20, space.total >> 20);
    if space.free >= needed {
        return Check::ok("shm", found);
    }
    let found = format!("{found}, and MPI needs {} for {per_host} processes", needed >> 20);
    if space.is_short_for(per_host) {
        let found = format!("{found}: jobs do without it, and are slower within a host");
        Check::warning("shm", found, mend)
    } else {
        Check::wrong("shm", found, "remove what others have left there")
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
    fn shared_memory_has_to_be_there_for_each_process_of_a_host() {
        let line = |total: u64, free: u64, per_host| {
            let space = SharedMemory { total: total << 20, free: free << 20 };
            shared_memory_of(space, per_host, "a").to_string()
        };
        assert!(line(64, 64, 14).starts_with("ok "), "{}", line(64, 64, 14));
        let short = "warning  shm       /dev/shm has 64 of 64 MiB free, and MPI needs 67 for 15 \
                     processes: jobs do without it";
        assert!(line(64, 64, 15).starts_with(short), "{}", line(64, 64, 15));
        assert!(line(4000, 10, 4).starts_with("wrong "), "{}", line(4000, 10, 4));
    }
}
