//! Whether the MPI library can have the shared memory that it wants.
//!
//! MPICH over UCX ends the job while MPI starts, with a page of its own words, where `/dev/shm` has
//! no room for all processes of a host (a container's has 64 MiB), and where these are in user
//! namespaces of their own, as in rootless containers. So it is told to do without: within such a
//! host it talks over TCP, as between hosts. Open MPI finds out by itself.

use super::lineage::Lineage;
use ultramarine_environment::launcher::{Launched, OMPI_COMM_WORLD_SIZE, UCX_TLS, processes_here};
use ultramarine_environment::shared_memory::{BYTES_EACH, FOLDER, SharedMemory};
use ultramarine_environment::variables;

/// UCX's setting, and its value that leaves shared memory out.
pub(super) const WITHOUT: (&str, &str) = (UCX_TLS, "^shm");

/// What stands for shared memory in it, among other things.
const SHARED: [&str; 9] = ["all", "shm", "sm", "mm", "posix", "sysv", "xpmem", "cma", "knem"];

/// Where the system says which user namespace this process is in: the first has this map.
const USER_MAP: &str = "/proc/self/uid_map";
const FIRST_USER_MAP: [&str; 3] = ["0", "0", "4294967295"];

/// Why MPI has to do without, if so, in words.
pub(super) fn lacks(launched: Launched) -> Option<String> {
    if finds_out_itself() {
        return None;
    }
    let processes = processes_here(launched, variables::text);
    match SharedMemory::of_this_host() {
        Ok(space) if space.is_short_for(processes) => Some(format!(
            "{FOLDER} has {} MiB in all, and MPI needs {:.1} for each of {processes} processes",
            space.total >> 20,
            BYTES_EACH as f64 / f64::from(1 << 20)
        )),
        Ok(_) if is_apart(&Lineage::own(launched.variable)) => {
            Some("the processes are in user namespaces of their own".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(format!("{FOLDER} cannot be used ({error})")),
    }
}

/// Whether this process is in another user namespace than its launcher: so are then the others.
fn is_apart(lineage: &Lineage) -> bool {
    let map = std::fs::read_to_string(USER_MAP).unwrap_or_default();
    let own = std::fs::read_link("/proc/self/ns/user").ok();
    if map.is_empty() || own.is_none() || map.split_whitespace().eq(FIRST_USER_MAP) {
        return false;
    }
    // In the same one it could be seen, and looked at.
    std::fs::read_link(format!("/proc/{}/ns/user", lineage.launcher())).ok() != own
}

/// Whether MPI has to do without in this process, also if the user has chosen that.
pub(super) fn is_left_out() -> bool {
    std::env::var(WITHOUT.0).is_ok_and(|value| leaves_out(&value))
}

/// Whether this value of UCX's setting leaves shared memory out: a list of what to use, or behind
/// `^` of what not to use.
fn leaves_out(value: &str) -> bool {
    let value = value.trim();
    let (is_negated, list) = value.strip_prefix('^').map_or((false, value), |list| (true, list));
    let mut names = list.split(',').map(str::trim);
    if is_negated {
        names.any(|name| ["shm", "sm", "mm", "posix"].contains(&name))
    } else {
        !names.any(|name| SHARED.contains(&name))
    }
}

/// Whether the MPI of this process finds out by itself, as Open MPI does.
pub(super) fn finds_out_itself() -> bool {
    std::env::var_os(OMPI_COMM_WORLD_SIZE).is_some()
}

/// What to say before MPI starts where others have left no room for it, if so.
pub(super) fn shortage() -> Option<String> {
    let SharedMemory { total, free } = SharedMemory::of_this_host().ok()?;
    (free < BYTES_EACH && !is_left_out()).then(|| {
        format!(
            "MPI may not start: {FOLDER} has {} of {} MiB left, and MPI needs about {} for each \
             process. Make it larger (`--shm-size`), clear it, start fewer processes, or set \
             {}={}",
            free >> 20,
            total >> 20,
            BYTES_EACH.div_ceil(1 << 20),
            WITHOUT.0,
            WITHOUT.1
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_shared_memory_out_is_read_from_ucxs_setting() {
        for value in ["^shm", "tcp,self", "self, tcp", "^posix,cma", "rc,ud,self"] {
            assert!(leaves_out(value), "{value}");
        }
        for value in ["all", "shm,tcp,self", "^tcp", "sm,self", "posix"] {
            assert!(!leaves_out(value), "{value}");
        }
    }

    #[test]
    fn this_process_is_with_its_parent() {
        assert!(!is_apart(&Lineage::own("NO_LAUNCHER_GIVES_THIS")));
    }
}
