//! Where the program is that must run under MPI, `ultramarine-probe`: it is built once for each
//! MPI, with that MPI's `MPICC`.

use crate::run::error::RunError;
use crate::run::program::is_program;
use std::path::{Path, PathBuf};
use ultramarine_environment::variables;

/// How the program's file is called.
const NAME: &str = "ultramarine-probe";

/// The probe: the file that `ULTRAMARINE_PROBE` names, or else the one beside this command.
///
/// # Errors
///
/// There is none.
pub(crate) fn find() -> Result<PathBuf, RunError> {
    if let Some(named) = variables::PROBE.value().filter(|name| !name.is_empty()) {
        let probe = PathBuf::from(named);
        return if is_program(&probe) { Ok(probe) } else { Err(RunError::NotTheProbe(probe)) };
    }
    let probe = beside_this_command(NAME)?;
    if is_program(&probe) { Ok(probe) } else { Err(RunError::NoProbe(probe)) }
}

/// The file of this name beside this command, whether it is there or not.
///
/// # Errors
///
/// The system does not say where this command is.
pub(crate) fn beside_this_command(name: &str) -> Result<PathBuf, RunError> {
    let own = std::env::current_exe();
    let own =
        own.map_err(|source| RunError::Io { path: "the ultramarine command".into(), source })?;
    Ok(own.with_file_name(name))
}

/// Whether a program is this command itself, which stands for its probe where MPI is needed.
pub(crate) fn is_this_command(program: &Path) -> bool {
    let file = |path: &Path| path.canonicalize().ok();
    std::env::current_exe()
        .ok()
        .and_then(|own| file(&own))
        .is_some_and(|own| file(program) == Some(own))
}
