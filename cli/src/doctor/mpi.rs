//! The MPI that the probe is linked with, and the launchers that are here.

use super::check::Check;
use crate::probe;
use crate::run::RunError;
use crate::run::launcher::{LauncherChoice, LauncherSearch};
use crate::run::linked::{self, Linked};
use crate::subprocess;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The library answers within milliseconds, unless a file system hangs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

pub(super) fn checks() -> Vec<Check> {
    match probe::find().and_then(|probe| linked::examine(&probe)) {
        Ok(linked) => vec![library(&linked), launchers(&linked)],
        Err(
            error @ (RunError::NoProbe(_)
            | RunError::NotTheProbe(_)
            | RunError::LibraryMissing { .. }),
        ) => {
            vec![Check::wrong("mpi", "the probe cannot run", error.to_string())]
        }
        Err(error) => {
            let mend =
                "build `ultramarine-probe` with its default features and MPICC=<your MPI's mpicc>";
            vec![Check::wrong("mpi", error.to_string(), mend)]
        }
    }
}

fn library(linked: &Linked) -> Check {
    // The probe asks it.
    let said = subprocess::run(Command::new(&linked.program).arg("mpi"), ANSWERS_WITHIN);
    let version = said.map(|said| said.out.trim().to_owned()).unwrap_or_default();
    let file = linked.library.display();
    Check::ok("mpi", format!("{version} ({file}, {})", linked.family))
}

fn launchers(linked: &Linked) -> Check {
    let all = LauncherSearch::from_environment().all();
    let (fitting, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, family)| *family == Some(linked.family));
    let shown = |path: &Path, word: String| format!("{} {word}", path.display());
    let fits = fitting.iter().map(|(path, _)| shown(path, "fits".to_owned()));
    let rest = others.iter().map(|(path, family)| {
        let whose = family.map_or("is of an unknown kind".to_owned(), |f| format!("is {f}'s"));
        shown(path, whose)
    });
    let srun = LauncherSearch::from_environment().find_srun();
    let srun = srun.iter().map(|path| shown(path, "is here".to_owned()));
    let list = fits.chain(rest).chain(srun).collect::<Vec<_>>().join(", ");
    match LauncherSearch::from_environment().launcher(LauncherChoice::Auto, linked, None) {
        Ok(launcher) if list.is_empty() => {
            Check::ok("launcher", shown(&launcher.path, "fits".to_owned()))
        }
        Ok(_) => Check::ok("launcher", list),
        Err(error) => {
            let list = if list.is_empty() { "none is here".to_owned() } else { list };
            Check::wrong("launcher", list, error.to_string())
        }
    }
}
