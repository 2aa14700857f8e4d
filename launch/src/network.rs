//! The networks that a host is on, and which of them the PEs of a job call each other in.
//!
//! MPI finds its network itself. The job's own TCP connections (those of the detector, and all once
//! a process has died) go where `--interface` says; if it says nothing, over the fastest network
//! that all hosts are on. The addresses that host names stand for are taken only if there is none:
//! often they are of a slow network for management.

use crate::error::StartError;
use std::sync::OnceLock;
use ultramarine_environment::interface::{Interface, InterfaceChoice};

/// The interfaces by which others may call this process: the one that was chosen, or all that
/// others may be able to reach.
pub(crate) fn usable(choice: Option<&InterfaceChoice>) -> Result<Vec<Interface>, StartError> {
    let all = Interface::all().unwrap_or_else(|error| {
        tracing::info!("the network interfaces of this host are not known: {error}");
        Vec::new()
    });
    let Some(choice) = choice else {
        return Ok(all.into_iter().filter(Interface::is_for_others).collect());
    };
    let chosen = choice.of(&all).cloned().ok_or_else(|| {
        let all: Vec<_> = all.iter().map(Interface::to_string).collect();
        StartError::Options(format!(
            "no network interface of this host is `{choice}`, as --interface or \
             ULTRAMARINE_INTERFACE has it; there is {}",
            all.join(", ")
        ))
    })?;
    Ok(vec![chosen])
}

static OF_THIS_JOB: OnceLock<String> = OnceLock::new();

/// Records the network in which other processes connect to this one.
#[cfg(feature = "mpi")]
pub(crate) fn set_network_of_this_job(network: String) {
    // A process is part of one job at most.
    let _ = OF_THIS_JOB.set(network);
}

/// In which network the PEs of this process's job call each other, in words; `None` if they are
/// threads of one process.
pub fn of_this_job() -> Option<&'static str> {
    OF_THIS_JOB.get().map(String::as_str)
}
