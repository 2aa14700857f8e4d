//! `ultramarine topo`: where the PEs of a job stand, and how far that is in time.
//!
//! This process becomes the probe, with the same arguments: so a launcher that has started several
//! of this command has started that many processes of the probe.

use crate::error::{Error, Result};
use crate::probe;
use crate::run::{RunError, linked};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use ultramarine_environment::variables;

pub(crate) fn run() -> Result<()> {
    let probe = probe::find()?;
    // Of a library that is missing the loader only says the name. A probe without MPI runs as well.
    if let Err(error @ RunError::LibraryMissing { .. }) = linked::examine(&probe) {
        return Err(error.into());
    }
    let mut command = Command::new(&probe);
    command.args(std::env::args_os().skip(1));
    // What others see of a job is not to be replaced by what they would of the probe.
    for of_jobs in [variables::TRACE, variables::STATUS, variables::METRICS] {
        command.env_remove(of_jobs.name);
    }
    let source = command.exec();
    Err(Error::from(RunError::Exec { launcher: probe, source }))
}
