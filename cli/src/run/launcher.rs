//! Which launcher starts the program: Slurm's inside an allocation, else one of the program's own
//! MPI.

use super::allocation::Allocation;
use super::error::RunError;
use super::family::Family;
use super::linked::Linked;
use super::program::{is_program, on_path};
use crate::subprocess;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ultramarine_environment::variables;

/// Which launcher is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LauncherChoice {
    /// srun inside a Slurm allocation, else the mpiexec that fits the program's MPI
    #[default]
    Auto,
    /// Slurm's srun
    Srun,
    /// The mpiexec of MPICH and its relatives (Intel MPI, MVAPICH)
    Hydra,
    /// The mpiexec of Open MPI
    Openmpi,
}

/// A launcher that fits the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launcher {
    pub(crate) path: PathBuf,
    pub(crate) kind: LauncherKind,
    /// Why it is not srun, inside an allocation.
    pub(crate) not_srun: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LauncherKind {
    /// With the plugin that connects the processes.
    Srun {
        plugin: String,
    },
    Hydra,
    OpenMpi,
}

/// Launchers say their version within milliseconds; srun reads its configuration from elsewhere.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Where launchers are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LauncherSearch {
    /// `PATH`.
    pub(crate) path: Option<OsString>,
    /// `MPIEXEC`: the user's choice of an mpiexec.
    pub(crate) mpiexec: Option<OsString>,
}

impl LauncherSearch {
    pub(crate) fn from_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        LauncherSearch { path: variable("PATH"), mpiexec: variable(variables::MPIEXEC) }
    }

    /// The launcher for this program.
    ///
    /// # Errors
    ///
    /// The one that is wanted does not fit the program's MPI, or none is found that does.
    pub(crate) fn launcher(
        &self,
        wanted: LauncherChoice,
        linked: &Linked,
        allocation: Option<&Allocation>,
    ) -> Result<Launcher, RunError> {
        match wanted {
            LauncherChoice::Srun => self.srun(linked),
            LauncherChoice::Hydra => self.mpiexec(fits(linked, Family::Mpich)?),
            LauncherChoice::Openmpi => self.mpiexec(fits(linked, Family::OpenMpi)?),
            LauncherChoice::Auto if allocation.is_none() => self.mpiexec(linked),
            LauncherChoice::Auto => {
                self.srun(linked).or_else(|error| self.instead_of_srun(linked, &error))
            }
        }
    }

    /// The mpiexecs know about Slurm themselves, and start on the same hosts.
    fn instead_of_srun(&self, linked: &Linked, error: &RunError) -> Result<Launcher, RunError> {
        let not_srun = why_not(error);
        match self.mpiexec(linked) {
            Err(RunError::NoLauncher { looked, .. }) => {
                Err(no_launcher(linked, format!("{not_srun}, and {looked}")))
            }
            found => Ok(Launcher { not_srun: Some(not_srun), ..found? }),
        }
    }

    /// srun, with the plugin for this program's MPI.
    fn srun(&self, linked: &Linked) -> Result<Launcher, RunError> {
        let Some(path) = self.find_srun() else {
            return Err(RunError::NoSrun("it is not on PATH".to_owned()));
        };
        let plugins = plugins(&path).map_err(RunError::NoSrun)?;
        if let Some(plugin) = fitting(linked.family, &plugins) {
            return Ok(Launcher { path, kind: LauncherKind::Srun { plugin }, not_srun: None });
        }
        let (family, needed) = (linked.family, needed_plugin(linked.family));
        Err(RunError::NoPlugin { family, needed, has: plugins.join(", ") })
    }

    /// The mpiexecs on `PATH`, each with the MPI that it belongs to if it says so. A file that has
    /// several names is listed once.
    pub(crate) fn all(&self) -> Vec<(PathBuf, Option<Family>)> {
        let names = [names_of(Family::Mpich), names_of(Family::OpenMpi)].concat();
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for path in on_path(&names, self.path.as_deref()) {
            let file = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !seen.contains(&file) {
                seen.push(file);
                let family = family_of(&path);
                found.push((path, family));
            }
        }
        found
    }

    pub(crate) fn find_srun(&self) -> Option<PathBuf> {
        on_path(&["srun"], self.path.as_deref()).next()
    }

    /// The mpiexec of the program's MPI: the one that `MPIEXEC` names, else the one that was
    /// installed with the library, else the first that fits on `PATH`.
    fn mpiexec(&self, linked: &Linked) -> Result<Launcher, RunError> {
        let found = |path| Ok(Launcher { path, kind: kind_of(linked.family), not_srun: None });
        if let Some(named) = &self.mpiexec {
            let Some(path) = resolve(named, self.path.as_deref()) else {
                return Err(RunError::NoMpiexec(named.to_string_lossy().into_owned()));
            };
            return match family_of(&path) {
                // A wrapper of a site may say nothing of itself: the user knows.
                Some(family) if family != linked.family => Err(wrong_launcher(
                    &path.display().to_string(),
                    linked,
                    "Let MPIEXEC name another, or unset it",
                )),
                _ => found(path),
            };
        }
        let names = names_of(linked.family);
        let beside = prefixes(&linked.library).map(|prefix| prefix.join("bin"));
        let beside = beside.flat_map(|bin| names.map(|name| bin.join(name)));
        let beside = beside.filter(|file| is_program(file));
        let mut all = beside.chain(on_path(&names, self.path.as_deref()));
        match all.find(|file| family_of(file) == Some(linked.family)) {
            Some(path) => found(path),
            None => Err(no_launcher(linked, where_mpiexec(linked))),
        }
    }
}

/// Where the library may have been installed to: `/opt/mpi` for `/opt/mpi/lib/release/libmpi.so`.
fn prefixes(library: &Path) -> impl Iterator<Item = &Path> {
    let is_lib =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "lib" || name == "lib64");
    library.ancestors().filter(is_lib).filter_map(Path::parent)
}

/// The part of an error that is about srun alone.
fn why_not(error: &RunError) -> String {
    match error {
        RunError::NoSrun(reason) => format!("srun cannot be used ({reason})"),
        RunError::NoPlugin { needed, .. } => format!("`srun --mpi=list` has no {needed}"),
        error => error.to_string(),
    }
}

fn kind_of(family: Family) -> LauncherKind {
    match family {
        Family::Mpich => LauncherKind::Hydra,
        Family::OpenMpi => LauncherKind::OpenMpi,
    }
}

/// What the launchers are called: first as Debian calls them.
fn names_of(family: Family) -> [&'static str; 4] {
    match family {
        Family::Mpich => ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"],
        Family::OpenMpi => ["mpiexec.openmpi", "mpirun.openmpi", "mpiexec", "mpirun"],
    }
}

fn where_mpiexec(linked: &Linked) -> String {
    let names = names_of(linked.family).join(", ");
    format!("none of {names} on PATH or beside the library belongs to it")
}

/// A path, or a name on `PATH`.
fn resolve(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let file = Path::new(name);
    if file.components().count() > 1 {
        return Some(file.to_owned()).filter(|file| is_program(file));
    }
    on_path(&[file.to_str()?], path).next()
}

/// The MPI that a launcher belongs to, if it says so.
fn family_of(launcher: &Path) -> Option<Family> {
    let said = subprocess::run(Command::new(launcher).arg("--version"), ANSWERS_WITHIN).ok()?;
    family_by_version(&format!("{}{}", said.out, said.err))
}

fn family_by_version(text: &str) -> Option<Family> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["Open MPI", "OpenRTE", "PRRTE", "Open-MPI"]) {
        return Some(Family::OpenMpi);
    }
    says(&["HYDRA", "Intel(R) MPI", "MPICH", "mvapich", "MVAPICH"]).then_some(Family::Mpich)
}

/// The plugins of srun, which connect processes by various protocols.
pub(crate) fn plugins(srun: &Path) -> Result<Vec<String>, String> {
    let said = subprocess::run(Command::new(srun).arg("--mpi=list"), ANSWERS_WITHIN)
        .map_err(|error| format!("srun: {error}"))?;
    if !said.succeeded() {
        let why = if said.status.is_none() { "it does not answer" } else { said.last_line() };
        return Err(format!("`srun --mpi=list` fails: {why}"));
    }
    Ok(listed(&format!("{}\n{}", said.out, said.err)))
}

/// The names in srun's list: one a line, or several after a colon.
fn listed(text: &str) -> Vec<String> {
    let words = text.lines().flat_map(|line| {
        let line = line.trim().trim_start_matches("srun: ");
        match line.split_once(':') {
            Some((_, names)) => names.split(',').map(str::trim).collect(),
            None => vec![line],
        }
    });
    let is_name = |word: &&str| !word.is_empty() && !word.contains([' ', '.']);
    words.filter(is_name).map(str::to_owned).collect()
}

pub(crate) fn needed_plugin(family: Family) -> &'static str {
    match family {
        Family::Mpich => "pmi2",
        Family::OpenMpi => "pmix",
    }
}

/// The plugin for this family, if it is there. `PMIx` may be there with its version only.
pub(crate) fn fitting(family: Family, plugins: &[String]) -> Option<String> {
    let needed = needed_plugin(family);
    let exact = plugins.iter().find(|plugin| *plugin == needed);
    let versioned = || plugins.iter().find(|plugin| plugin.starts_with("pmix_v"));
    exact.or_else(|| versioned().filter(|_| family == Family::OpenMpi)).cloned()
}

fn fits(linked: &Linked, family: Family) -> Result<&Linked, RunError> {
    if linked.family == family {
        return Ok(linked);
    }
    Err(wrong_launcher(
        &format!("{family}'s mpiexec"),
        linked,
        "Leave out --launcher, and the right one is found",
    ))
}

fn wrong_launcher(launcher: &str, linked: &Linked, mend: &'static str) -> RunError {
    let Linked { program, family, name, .. } = linked.clone();
    RunError::WrongLauncher { launcher: launcher.to_owned(), family, program, library: name, mend }
}

fn no_launcher(linked: &Linked, looked: String) -> RunError {
    let Linked { program, family, name, .. } = linked.clone();
    RunError::NoLauncher { family, program, library: name, looked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_tells_where_its_launcher_may_be() {
        let found = |file| prefixes(Path::new(file)).map(Path::to_owned).collect::<Vec<_>>();
        let one = |prefix: &str| vec![PathBuf::from(prefix)];
        assert_eq!(found("/usr/lib/x86_64-linux-gnu/libmpich.so.12"), one("/usr"));
        assert_eq!(found("/opt/intel/lib/release/libmpi.so.12"), one("/opt/intel"));
        let nested = ["/usr/lib64/mpich", "/usr"].map(PathBuf::from);
        assert_eq!(found("/usr/lib64/mpich/lib/libmpi.so.12"), nested);
        assert!(found("/home/libmpi.so.12").is_empty());
    }

    #[test]
    fn a_launcher_is_known_by_what_it_says_of_itself() {
        for (text, family) in [
            ("HYDRA build details:\n    Version:    4.0.2", Some(Family::Mpich)),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.9", Some(Family::Mpich)),
            ("mpiexec.openmpi (OpenRTE) 4.1.4", Some(Family::OpenMpi)),
            ("mpirun (Open MPI) 5.0.3", Some(Family::OpenMpi)),
            ("unknown option", None),
        ] {
            assert_eq!(family_by_version(text), family, "{text}");
        }
    }

    #[test]
    fn sruns_list_is_read_as_every_version_writes_it() {
        let old = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n";
        assert_eq!(listed(old), ["none", "pmi2", "pmix_v3"]);
        let new = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n\
                   specific pmix plugin versions available: pmix_v4,pmix_v5\n";
        assert_eq!(listed(new), ["none", "pmi2", "pmix", "pmix_v4", "pmix_v5"]);
    }

    #[test]
    fn each_family_has_a_plugin() {
        let plugins = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let all = plugins(&["none", "pmi2", "pmix", "pmix_v4"]);
        assert_eq!(fitting(Family::Mpich, &all).as_deref(), Some("pmi2"));
        assert_eq!(fitting(Family::OpenMpi, &all).as_deref(), Some("pmix"));
        let versioned = plugins(&["none", "pmix_v4"]);
        assert_eq!(fitting(Family::Mpich, &versioned), None);
    }
}
