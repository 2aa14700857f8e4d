//! What is looked at only when a job is really to start, since it takes time or depends on the hour.

use super::Plan;
use super::error::RunError;
use super::launcher::Kind;
use std::net::ToSocketAddrs as _;

impl Plan {
    /// An error if the launcher would hang, or not do what was asked for.
    pub(crate) fn is_ready(&self) -> Result<(), RunError> {
        match self.launcher.kind {
            Kind::Srun { .. } => Ok(()),
            Kind::Hydra | Kind::OpenMpi => self.hosts_have_addresses(),
        }
    }

    /// Hydra waits for ever for a host that it cannot reach.
    fn hosts_have_addresses(&self) -> Result<(), RunError> {
        let has_none = |host: &str| (host, 0).to_socket_addrs().map_or(0, Iterator::count) == 0;
        match self.shape.hosts.iter().find(|(host, _)| has_none(host)) {
            Some((host, _)) => Err(RunError::NoAddress { host: host.clone() }),
            None => Ok(()),
        }
    }
}
