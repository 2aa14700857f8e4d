//! One MPI installation: its compiler wrapper, its launcher, and what a build or a run with it
//! needs in the environment.
//!
//! rsmpi takes the MPI to build against from `$MPICC` and does not notice when that changes (the
//! runtime does, and refuses to be built), so each installation has its own build folder.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure, Result};

/// The variable that tells the tests which launcher belongs to their build.
const TEST_LAUNCHER: &str = "MPIEXEC_FOR_TESTS";

/// The two families of MPI, which differ in launcher and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// MPICH and what descends from it: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    OpenMpi,
}

impl Family {
    /// Most wanted first.
    pub(crate) const ALL: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
        }
    }

    /// The name in file names and on command lines.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }

    /// Where the family's compiler wrapper is on Debian, and on Fedora without `module load`.
    fn wrappers(self) -> [&'static str; 2] {
        match self {
            Self::Mpich => ["mpicc.mpich", "/usr/lib64/mpich/bin/mpicc"],
            Self::OpenMpi => ["mpicc.openmpi", "/usr/lib64/openmpi/bin/mpicc"],
        }
    }

    /// Asks a compiler wrapper for its family: only Open MPI's knows `--showme`.
    fn of_wrapper(mpicc: &str) -> Self {
        if process::succeeds(Command::new(mpicc).arg("--showme:version")) {
            Self::OpenMpi
        } else {
            Self::Mpich
        }
    }
}

/// An MPI that can be built against and launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mpi {
    pub(crate) family: Family,
    /// The compiler wrapper, as it is called: a name on `$PATH` or a path.
    pub(crate) mpicc: String,
    /// The launcher, as it is called.
    pub(crate) mpiexec: String,
}

impl Mpi {
    /// The MPI the user names by `$MPICC` (and its launcher by `$MPIEXEC`, if it is not beside it);
    /// `None` if `$MPICC` is unset or empty.
    ///
    /// # Errors
    /// `$MPICC` names no program, or no launcher is found for it.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Some(mpicc) = env::var("MPICC").ok().filter(|mpicc| !mpicc.is_empty()) else {
            return Ok(None);
        };
        if process::find_program(&mpicc).is_none() {
            return Err(Failure(format!(
                "MPICC is set to `{mpicc}`, which is no program here; set it to the compiler \
                 wrapper of your MPI, or unset it to let xtask choose"
            )));
        }
        let launcher = env::var("MPIEXEC").ok().filter(|mpiexec| !mpiexec.is_empty());
        match launcher.or_else(|| launcher_of(&mpicc)) {
            Some(mpiexec) => Ok(Some(Self { family: Family::of_wrapper(&mpicc), mpicc, mpiexec })),
            None => Err(Failure(format!(
                "no mpiexec found for MPICC={mpicc}; set MPIEXEC to the launcher of that MPI"
            ))),
        }
    }

    /// The installation of `family` on this machine, if there is one.
    pub(crate) fn find(family: Family) -> Option<Self> {
        let known = family.wrappers().into_iter().map(|mpicc| (mpicc, family));
        let plain = std::iter::once_with(|| ("mpicc", Family::of_wrapper("mpicc")));
        known.chain(plain).find_map(|(mpicc, actual)| {
            process::find_program(mpicc).filter(|_| actual == family)?;
            let mpiexec = launcher_of(mpicc)?;
            Some(Self { family, mpicc: mpicc.to_owned(), mpiexec })
        })
    }

    /// The folder for builds against this MPI.
    pub(crate) fn target_dir(&self) -> PathBuf {
        process::target_root().join(self.target_name())
    }

    /// A folder name that no other installation has. The usual names of Debian give a short one;
    /// for any other wrapper its path is part of the name.
    fn target_name(&self) -> String {
        match self.mpicc.as_str() {
            "mpicc.mpich" | "mpicc.openmpi" => self.family.word().to_owned(),
            _ => {
                let path = process::find_program(&self.mpicc);
                let path = path.unwrap_or_else(|| PathBuf::from(&self.mpicc));
                let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let path: String = path.to_string_lossy().chars().map(kept).collect();
                format!("{}-{}", self.family.word(), path.trim_matches('-'))
            }
        }
    }

    /// Makes `command` build against, and run under, this MPI and no other.
    pub(crate) fn apply_to(&self, command: &mut Command) {
        command.env("MPICC", &self.mpicc);
        command.env("CARGO_TARGET_DIR", self.target_dir());
        command.env(TEST_LAUNCHER, &self.mpiexec);
        // rsmpi would prefer these to $MPICC.
        command.env_remove("MPI_PKG_CONFIG").env_remove("CRAY_MPICH_DIR");
        if self.family == Family::OpenMpi {
            // In a container one is root, and has fewer cores than the tests have processes.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        }
        if let Some(paths) = self.library_path() {
            command.env("LD_LIBRARY_PATH", paths);
        }
    }

    /// Has cargo build something for this MPI.
    ///
    /// # Errors
    /// It cannot be built.
    pub(crate) fn build(&self, arguments: &[&str]) -> Result<()> {
        let mut build = process::cargo();
        build.arg("build").args(arguments);
        self.apply_to(&mut build);
        process::run(&mut build)
    }

    /// `$LD_LIBRARY_PATH` with the libraries of an MPI that lives in its own tree (Fedora,
    /// Spack): rsmpi passes on where to link but not where to load from.
    fn library_path(&self) -> Option<std::ffi::OsString> {
        let prefix = process::find_program(&self.mpicc)?.parent()?.parent()?.to_owned();
        if prefix == Path::new("/usr") || prefix == Path::new("/") {
            return None;
        }
        let own = ["lib", "lib64"].map(|name| prefix.join(name));
        let before = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let all = own.into_iter().filter(|path| path.is_dir()).chain(env::split_paths(&before));
        env::join_paths(all.filter(|path| !path.as_os_str().is_empty())).ok()
    }
}

/// The launcher that belongs to a compiler wrapper: the one beside it, else the `mpiexec` on
/// `$PATH`.
fn launcher_of(mpicc: &str) -> Option<String> {
    let (folder, name) = mpicc.rsplit_once('/').map_or(("", mpicc), |(f, n)| (f, n));
    let beside =
        |name: &str| if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
    let suffix = name.strip_prefix("mpicc").unwrap_or_default();
    let candidates = [beside(&format!("mpiexec{suffix}")), "mpiexec".to_owned()];
    // Debian's `mpiexec` may belong to another MPI than `mpicc.mpich`: no falling back there.
    let considered = if suffix.is_empty() { 2 } else { 1 };
    candidates.into_iter().take(considered).find(|name| process::find_program(name).is_some())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn installation(files: &[&str]) -> TempDir {
        let prefix = TempDir::new().unwrap();
        fs::create_dir(prefix.path().join("bin")).unwrap();
        fs::create_dir(prefix.path().join("lib")).unwrap();
        for file in files {
            fs::write(prefix.path().join("bin").join(file), "").unwrap();
        }
        prefix
    }

    fn at(mpicc: &str, family: Family) -> Mpi {
        Mpi { family, mpicc: mpicc.to_owned(), mpiexec: "mpiexec".to_owned() }
    }

    #[test]
    fn each_installation_builds_in_a_folder_of_its_own() {
        let name = |mpicc, family| at(mpicc, family).target_name();
        assert_eq!(name("mpicc.mpich", Family::Mpich), "mpich");
        assert_eq!(name("mpicc.openmpi", Family::OpenMpi), "openmpi");
        assert_eq!(name("/opt/a.b/bin/mpicc", Family::Mpich), "mpich-opt-a-b-bin-mpicc");
        assert_eq!(name("/opt/c/bin/mpicc", Family::OpenMpi), "openmpi-opt-c-bin-mpicc");
    }

    #[test]
    fn the_launcher_is_the_one_beside_the_wrapper() {
        let prefix = installation(&["mpicc", "mpiexec", "mpicc.x", "mpiexec.x", "mpicc.y"]);
        let bin = prefix.path().join("bin").display().to_string();
        let launcher = |name: &str| launcher_of(&format!("{bin}/{name}"));
        assert_eq!(launcher("mpicc"), Some(format!("{bin}/mpiexec")));
        assert_eq!(launcher("mpicc.x"), Some(format!("{bin}/mpiexec.x")));
        assert_eq!(launcher("mpicc.y"), None, "another MPI's launcher must not be taken");
    }

    #[test]
    fn an_mpi_in_its_own_tree_brings_its_libraries() {
        let prefix = installation(&["mpicc"]);
        let mpicc = prefix.path().join("bin/mpicc").display().to_string();
        let paths = at(&mpicc, Family::Mpich).library_path().unwrap();
        assert_eq!(env::split_paths(&paths).next(), Some(prefix.path().join("lib")));
    }

    #[test]
    fn only_open_mpi_is_told_to_run_as_root() {
        let told = |family| {
            let mut command = Command::new("true");
            at("mpicc", family).apply_to(&mut command);
            command.get_envs().any(|(name, _)| name == "OMPI_ALLOW_RUN_AS_ROOT")
        };
        assert!(told(Family::OpenMpi));
        assert!(!told(Family::Mpich));
    }
}
