//! The MPI that this command is linked with, and the launchers that are here.

use super::check::Check;
use crate::run::RunError;
use crate::run::launcher::{Search, Wanted};
use crate::run::linked::{self, Linked};
use std::path::Path;

pub(super) fn checks() -> Vec<Check> {
    let own = std::env::current_exe();
    let own = own.map_err(|source| RunError::Io { path: "the ultramarine command".into(), source });
    match own.and_then(|own| linked::examine(&own)) {
        Ok(linked) => vec![library(&linked), launchers(&linked)],
        Err(error) => {
            let mend = "build `ultramarine` with its default features and MPICC=<your MPI's mpicc>";
            vec![Check::wrong("mpi", error.to_string(), mend)]
        }
    }
}

fn library(linked: &Linked) -> Check {
    let file = linked.library.display();
    Check::ok("mpi", format!("{} ({file}, {})", version(), linked.family))
}

/// What the library says of itself, in short.
fn version() -> String {
    #[cfg(feature = "mpi")]
    let text = ::mpi::environment::library_version().unwrap_or_default();
    #[cfg(not(feature = "mpi"))]
    let text = String::new();
    let line = text.lines().next().unwrap_or_default();
    // MPICH writes more lines, and Open MPI more words after a comma.
    let words = line.split(',').next().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ").replace("Version:", "Version")
}

fn launchers(linked: &Linked) -> Check {
    let all = Search::from_environment().all();
    let (fitting, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, family)| *family == Some(linked.family));
    let shown = |path: &Path, word: String| format!("{} {word}", path.display());
    let fits = fitting.iter().map(|(path, _)| shown(path, "fits".to_owned()));
    let rest = others.iter().map(|(path, family)| {
        let whose = family.map_or("is of an unknown kind".to_owned(), |f| format!("is {f}'s"));
        shown(path, whose)
    });
    let srun = Search::from_environment().find_srun();
    let srun = srun.iter().map(|path| shown(path, "is here".to_owned()));
    let list = fits.chain(rest).chain(srun).collect::<Vec<_>>().join(", ");
    match Search::from_environment().launcher(Wanted::Auto, linked, None) {
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
