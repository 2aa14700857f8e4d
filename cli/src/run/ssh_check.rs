//! Whether the hosts that were named can be reached as hydra reaches them, by ssh. It waits for
//! ever for one that its ssh does not get to. (Open MPI's mpiexec ends as soon as its ssh does.)

use super::error::RunError;
use crate::subprocess::{self, Ended};
use std::ffi::OsString;
use std::net::{ToSocketAddrs as _, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use ultramarine_environment::launcher::{
    HYDRA_BOOTSTRAP, HYDRA_BOOTSTRAP_EXEC, HYDRA_LAUNCHER, HYDRA_LAUNCHER_EXEC,
    I_MPI_HYDRA_BOOTSTRAP, I_MPI_HYDRA_BOOTSTRAP_EXEC, LOADL_HOSTFILE, LSB_JOBID, PBS_JOBID,
    PE_HOSTFILE, SLURM_JOB_ID,
};

/// How long a host may take to accept a login.
const LETS_IN_WITHIN: Duration = Duration::from_secs(10);

/// This many hosts are tried at once.
const AT_ONCE: usize = 64;

/// Flags by which hydra is told another way.
const OTHER_WAYS: [&str; 2] = ["-launcher", "-bootstrap"];

/// Variables with the kind of hydra's launcher, and with its file.
const KINDS: [&str; 3] = [HYDRA_LAUNCHER, HYDRA_BOOTSTRAP, I_MPI_HYDRA_BOOTSTRAP];
const FILES: [&str; 3] = [HYDRA_LAUNCHER_EXEC, HYDRA_BOOTSTRAP_EXEC, I_MPI_HYDRA_BOOTSTRAP_EXEC];

/// What batch systems set, in whose jobs hydra goes their ways.
const BATCH_SYSTEMS: [&str; 5] = [SLURM_JOB_ID, LSB_JOBID, PBS_JOBID, PE_HOSTFILE, LOADL_HOSTFILE];

/// The program by which hydra starts processes on other hosts, if it is one like ssh: it takes a
/// host and a command.
pub(super) fn agent(
    flags: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<OsString> {
    let is_told = flags.iter().filter_map(|flag| flag.to_str()).any(|flag| {
        let flag = flag.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(flag);
        OTHER_WAYS.iter().any(|way| flag.starts_with(way))
    });
    let is_in_batch = || BATCH_SYSTEMS.iter().any(|name| variable(name).is_some());
    let kind = KINDS.iter().find_map(|name| variable(name));
    match &kind {
        _ if is_told => return None,
        None if is_in_batch() => return None,
        Some(kind) if kind != "ssh" && kind != "rsh" => return None,
        _ => {}
    }
    let file = FILES.iter().find_map(|name| variable(name));
    Some(file.or(kind).unwrap_or_else(|| "ssh".into()))
}

/// An error unless the agent gets to all of these hosts.
pub(super) fn check(agent: &OsString, hosts: &[&str]) -> Result<(), RunError> {
    let name = Path::new(agent).file_name().unwrap_or(agent).to_string_lossy();
    let knock = |host: &&str| {
        let mut command = Command::new(agent);
        if name == "ssh" {
            // There is no user to answer its questions.
            command.arg("-oBatchMode=yes");
        }
        command.args([host, "true"]);
        command
    };
    let others: Vec<&str> = hosts.iter().copied().filter(|host| !is_this_host(host)).collect();
    for hosts in others.chunks(AT_ONCE) {
        let knocks = hosts.iter().map(knock).collect();
        for (host, ended) in hosts.iter().zip(subprocess::run_all(knocks, LETS_IN_WITHIN)) {
            let reason = match ended {
                Ok(ended) if ended.succeeded() => continue,
                Ok(Ended { status: None, .. }) => format!("no answer in {LETS_IN_WITHIN:?}"),
                Ok(ended) => ended.last_line().to_owned(),
                Err(error) => error.to_string(),
            };
            let reason = reason.strip_prefix("ssh: ").unwrap_or(&reason);
            return Err(RunError::Unreachable {
                host: (*host).to_owned(),
                reason: format!("{name}: {reason}"),
                agent: agent.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}

/// Whether an address of the name is one of this host, where hydra starts processes itself.
fn is_this_host(name: &str) -> bool {
    let addresses = (name, 0).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|address| UdpSocket::bind(address).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydra_goes_by_ssh_unless_it_is_told_another_way() {
        let by = |flag: &str, set: &[(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
            agent(&[flag.into()], variable)
        };
        let is = |word: &str| Some(OsString::from(word));
        assert_eq!(by("-v", &[]), is("ssh"));
        assert_eq!(by("-v", &[("HYDRA_LAUNCHER", "rsh")]), is("rsh"));
        let of_site = ("HYDRA_LAUNCHER_EXEC", "/opt/ssh");
        assert_eq!(by("-v", &[("HYDRA_LAUNCHER", "ssh"), of_site]), is("/opt/ssh"));
        assert_eq!(by("-v", &[of_site]), is("/opt/ssh"));
        assert_eq!(by("-v", &[("SLURM_JOB_ID", "7"), ("HYDRA_LAUNCHER", "ssh")]), is("ssh"));
        for (flag, set) in [
            ("-launcher", &[][..]),
            ("--launcher-exec", &[]),
            ("-v", &[("I_MPI_HYDRA_BOOTSTRAP", "slurm")]),
            ("-v", &[("SLURM_JOB_ID", "7"), of_site]),
            ("-v", &[("PBS_JOBID", "7")]),
        ] {
            assert_eq!(by(flag, set), None, "{flag} {set:?}");
        }
    }

    #[test]
    fn this_host_is_known_by_its_addresses() {
        assert!(is_this_host("localhost"));
        // This address is for documentation; no host has it.
        assert!(!is_this_host("198.51.100.1"));
    }
}
