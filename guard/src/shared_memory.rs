//! Whether the MPI library can have the shared memory that it wants.
//!
//! MPICH over UCX ends the job while MPI starts, with a page of its own words, where `/dev/shm` has
//! no room for all processes of a host (a container's has 64 MiB), and where these are in user
//! namespaces of their own, as in rootless containers. So it is told to do without: within such a
//! host it talks over TCP, as between hosts. Open MPI finds out by itself.

use super::lineage::Lineage;
use std::io::ErrorKind;
use ultramarine_environment::launcher::{Launched, UCX_TLS, processes_here};
use ultramarine_environment::shared_memory::{BYTES_EACH, FOLDER, SharedMemory};
use ultramarine_environment::variables;

/// UCX's setting, and its value that leaves shared memory out.
pub(super) const WITHOUT: (&str, &str) = (UCX_TLS, "^shm");

/// Where the system says which user namespace this process is in: the first has this map.
const USER_MAP: &str = "/proc/self/uid_map";
const FIRST_USER_MAP: [&str; 3] = ["0", "0", "4294967295"];

/// Why MPI has to do without, if so, in words.
pub(super) fn lacks(launched: Launched) -> Option<String> {
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
    match std::fs::read_link(format!("/proc/{}/ns/user", lineage.launcher())) {
        Ok(launchers) => Some(launchers) != own,
        // In the same one it could be looked at, if it can be seen at all.
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// Whether MPI has to do without in this process.
pub(super) fn is_left_out() -> bool {
    std::env::var(WITHOUT.0).is_ok_and(|value| value == WITHOUT.1)
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
    fn this_process_is_with_its_parent() {
        assert!(!is_apart(&Lineage::own("NO_LAUNCHER_GIVES_THIS")));
    }
}
