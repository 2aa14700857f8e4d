//! Checks that run only before a real start, since they take time or their result changes.

use super::LaunchPlan;
use super::error::RunError;
use super::launcher::LauncherKind;
use super::layout::{Bind, JobRequest};
use super::ssh_check;
use crate::subprocess;
use std::ffi::OsString;
use std::net::ToSocketAddrs as _;
use std::process::Command;
use std::time::Duration;

/// scontrol asks Slurm's controller, which may be busy.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// The plugins by which Slurm binds.
const BINDERS: [&str; 2] = ["affinity", "cgroup"];

impl LaunchPlan {
    /// An error if the launcher would hang, or not do what was asked for.
    pub(crate) fn is_ready(
        &self,
        request: &JobRequest,
        launcher_flags: &[OsString],
    ) -> Result<(), RunError> {
        match self.launcher.kind {
            LauncherKind::Srun { .. } => self.slurm_binds(request.bind),
            LauncherKind::OpenMpi => self.hosts_have_addresses(),
            LauncherKind::Hydra => {
                self.hosts_have_addresses().and_then(|()| self.reaches(launcher_flags))
            }
        }
    }

    /// Hydra waits for ever for a host that it cannot reach.
    fn reaches(&self, launcher_flags: &[OsString]) -> Result<(), RunError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let hosts: Vec<_> = self.layout.hosts.iter().map(|(host, _)| host.as_str()).collect();
        ssh_check::agent(launcher_flags, variable)
            .map_or(Ok(()), |agent| ssh_check::check(&agent, &hosts))
    }

    /// Hydra also waits for a host that is none.
    fn hosts_have_addresses(&self) -> Result<(), RunError> {
        let has_none = |host: &str| (host, 0).to_socket_addrs().map_or(0, Iterator::count) == 0;
        match self.layout.hosts.iter().find(|(host, _)| has_none(host)) {
            Some((host, _)) => Err(RunError::NoAddress { host: host.clone() }),
            None => Ok(()),
        }
    }

    /// Where it does not, srun says so and goes on. A Slurm that cannot be asked is trusted.
    fn slurm_binds(&self, request: Option<Bind>) -> Result<(), RunError> {
        let Some(bind) = request.filter(|bind| *bind != Bind::None) else { return Ok(()) };
        let mut scontrol = Command::new(self.launcher.path.with_file_name("scontrol"));
        let said = subprocess::run(scontrol.args(["show", "config"]), ANSWERS_WITHIN);
        let Some(said) = said.ok().filter(subprocess::Ended::succeeded) else { return Ok(()) };
        match task_plugin(&said.out) {
            Some(plugin) if !BINDERS.iter().any(|binder| plugin.contains(binder)) => {
                Err(RunError::DoesNotBind { bind: bind.name(), plugin: plugin.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// What the configuration has for `TaskPlugin`.
fn task_plugin(config: &str) -> Option<&str> {
    let settings = config.lines().filter_map(|line| line.split_once('='));
    settings
        .map(|(name, value)| (name.trim(), value.trim()))
        .find_map(|(name, value)| (name == "TaskPlugin").then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_plugin_is_found_among_the_settings() {
        let config = "Configuration data\nTaskPluginParam         = (null type)\n\
                      TaskPlugin              = task/affinity,task/cgroup\nTCPTimeout = 2 sec\n";
        assert_eq!(task_plugin(config), Some("task/affinity,task/cgroup"));
        assert_eq!(task_plugin("TaskPluginParam = (null type)"), None);
    }
}
