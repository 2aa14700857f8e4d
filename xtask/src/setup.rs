//! Gets the machine ready for a build: finds what is missing and installs it where that is allowed.
//!
//! Looking costs a tenth of a second, so every chore that builds does it first. Only `apt-get` is
//! ever run, and only by root or with a `sudo` that asks nothing; everywhere else the exact
//! command is printed and the rest is left to the user.

use std::fs;
use std::process::Command;

use crate::mpi::{Family, Mpi};
use crate::process::{self, Failure, Result};
use crate::requirement::{Distribution, Requirement, advice, names, packages};

/// What only some tests need, which say so where it is missing.
const TESTED_WITH: [Requirement; 4] =
    [Requirement::Spin, Requirement::Slurm, Requirement::Gap, Requirement::Chromium];

/// Which MPIs a chore can use. If the user set `$MPICC`, that one is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The installed ones; MPICH if none is.
    OneMpi,
    /// MPICH and Open MPI where they can be installed; else those that are.
    EveryMpi,
}

/// Makes sure that the project can be built; returns the MPIs it can be built against, at least
/// one, the preferred one first.
///
/// # Errors
/// Something is missing and cannot be installed from here; the text says what to type.
pub(crate) fn ensure(wanted: Wanted) -> Result<Vec<Mpi>> {
    let given = Mpi::from_environment()?;
    let look = || Found::look(given.clone(), wanted);

    let mut found = look();
    if found.missing.is_empty() {
        return Ok(found.mpis);
    }
    if let Some(apt_get) = AptGet::find() {
        println!("Installing {} …", names(&found.missing));
        if let Err(failure) = apt_get.install(&packages(&found.missing, Distribution::Debian)) {
            eprintln!("xtask: {failure}");
        }
        found = look();
    }
    found.settle()
}

/// Gets the machine ready for a build with one MPI.
///
/// # Errors
/// Something is missing and cannot be installed.
pub(crate) fn one_mpi() -> Result<Mpi> {
    let mpi = ensure(Wanted::OneMpi)?.into_iter().next();
    mpi.ok_or_else(|| Failure("no MPI found".into()))
}

/// What is installed, and what is missing.
#[derive(Debug, Default)]
struct Found {
    mpis: Vec<Mpi>,
    missing: Vec<Requirement>,
}

impl Found {
    fn look(given: Option<Mpi>, wanted: Wanted) -> Self {
        let base = Requirement::BASE.into_iter().filter(|requirement| !requirement.is_met());
        let mut found = Self { mpis: Vec::new(), missing: base.collect() };
        if wanted == Wanted::EveryMpi {
            found.missing.extend(TESTED_WITH.into_iter().filter(|tool| !tool.is_met()));
        }
        if let Some(mpi) = given {
            found.mpis.push(mpi);
            return found;
        }
        let mut absent = Vec::new();
        for family in Family::ALL {
            match Mpi::find(family) {
                Some(mpi) => found.mpis.push(mpi),
                None => absent.push(Requirement::Mpi(family)),
            }
        }
        match wanted {
            Wanted::EveryMpi => found.missing.append(&mut absent),
            Wanted::OneMpi if found.mpis.is_empty() => found.missing.push(absent[0]),
            Wanted::OneMpi => {}
        }
        found
    }

    /// The MPIs to go on with, if what is still missing can be done without: a second MPI, and what
    /// only some tests need, which then say that it is missing.
    fn settle(self) -> Result<Vec<Mpi>> {
        let is_dispensable = |missing: &Requirement| match missing {
            Requirement::Mpi(_) => !self.mpis.is_empty(),
            other => TESTED_WITH.contains(other),
        };
        if self.missing.iter().all(is_dispensable) {
            if !self.missing.is_empty() {
                let here = self.mpis.iter().map(|mpi| mpi.family.name()).collect::<Vec<_>>();
                let (here, missing) = (here.join(", "), names(&self.missing));
                println!("Going on with {here} alone: {missing} is not installed.");
            }
            return Ok(self.mpis);
        }
        Err(Failure(format!(
            "missing: {}. Install with the line for your system, then try again:\n{}\n\
             An MPI elsewhere (a module, your own build) is taken from MPICC=/path/to/mpicc.",
            names(&self.missing),
            advice(&self.missing),
        )))
    }
}

/// The right to install Debian packages.
struct AptGet {
    /// The words before `apt-get`.
    prefix: &'static [&'static str],
}

impl AptGet {
    fn find() -> Option<Self> {
        let known = fs::read_to_string("/etc/os-release").is_ok_and(|text| is_debian(&text));
        if !known || process::find_program("apt-get").is_none() {
            return None;
        }
        let user = process::output_of(Command::new("id").arg("-u"))?;
        if user.trim() == "0" {
            return Some(Self { prefix: &["env"] });
        }
        let may_sudo = process::succeeds(Command::new("sudo").args(["-n", "true"]));
        may_sudo.then_some(Self { prefix: &["sudo", "-n", "env"] })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.prefix[0]);
        command.args(&self.prefix[1..]);
        // `sudo` drops the environment, hence `env` here.
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q"]);
        command
    }

    fn install(&self, packages: &[&str]) -> Result<()> {
        process::run(self.command().arg("update"))?;
        process::run(self.command().args(["install", "--no-install-recommends"]).args(packages))
    }
}

/// Whether an `os-release` file is of Debian or one of its descendants.
fn is_debian(os_release: &str) -> bool {
    let families = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")));
    families.flat_map(|value| value.trim_matches('"').split_whitespace()).any(|id| id == "debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpich() -> Mpi {
        Mpi { family: Family::Mpich, mpicc: "mpicc.mpich".into(), mpiexec: "mpiexec.mpich".into() }
    }

    #[test]
    fn one_mpi_is_enough_to_go_on() {
        let missing = vec![Requirement::Mpi(Family::OpenMpi)];
        let found = Found { mpis: vec![mpich()], missing };
        assert_eq!(found.settle(), Ok(vec![mpich()]));
    }

    #[test]
    fn no_mpi_is_not() {
        let found = Found { mpis: vec![], missing: vec![Requirement::Mpi(Family::Mpich)] };
        let text = found.settle().unwrap_err().0;
        assert!(text.starts_with("missing: MPICH. "), "{text}");
        assert!(text.contains("apt-get install -y mpich libmpich-dev\n"), "{text}");
    }

    #[test]
    fn a_missing_tool_is_never_done_without() {
        let missing = vec![Requirement::Hwloc, Requirement::Mpi(Family::OpenMpi)];
        let found = Found { mpis: vec![mpich()], missing };
        assert!(found.settle().unwrap_err().0.starts_with("missing: hwloc, Open MPI. "));
    }

    #[test]
    fn debian_and_its_descendants() {
        assert!(is_debian("NAME=x\nID=debian\n"));
        assert!(is_debian("ID=ubuntu\nID_LIKE=debian\n"));
        assert!(is_debian("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian("ID=fedora\nHOME_URL=debian\n"));
        assert!(!is_debian("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"));
    }
}
