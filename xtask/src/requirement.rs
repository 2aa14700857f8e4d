//! What a build needs from the machine: how to see whether it is there, and what each distribution
//! calls it.

use std::process::Command;

use crate::mpi::{Family, Mpi};
use crate::process;

/// One thing that must be installed outside of cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// A C compiler with the C library's headers: rsmpi compiles a shim.
    CCompiler,
    /// The build scripts find hwloc with it.
    PkgConfig,
    /// bindgen reads `mpi.h` with it.
    Libclang,
    /// Topology below the host.
    Hwloc,
    /// The model checker that `proof/` runs.
    Spin,
    /// The batch system that the test cluster runs, with all that it needs.
    Slurm,
    /// The computer algebra system that computes for tasks.
    Gap,
    /// The browser that the test of a report's page opens.
    Chromium,
    /// Compiler wrapper and launcher of an MPI.
    Mpi(Family),
}

/// What `slurm/testcluster` starts.
const SLURM: [&str; 6] = ["slurmctld", "slurmd", "srun", "munged", "ip", "tc"];

/// Where software comes from, in the order of the table of [`Requirement`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// And Ubuntu.
    Debian,
    /// And its relatives with `dnf`.
    Fedora,
    /// A user's own installation, without root.
    Spack,
}

impl Requirement {
    /// What is needed whatever the MPI.
    pub(crate) const BASE: [Self; 4] =
        [Self::CCompiler, Self::PkgConfig, Self::Libclang, Self::Hwloc];

    pub(crate) fn name(self) -> &'static str {
        self.row()[0]
    }

    pub(crate) fn is_met(self) -> bool {
        let pkg_config = || Command::new("pkg-config");
        match self {
            // The compiler alone is not enough: its headers are a separate package on Debian.
            Self::CCompiler => {
                let arguments = ["-E", "-include", "stdlib.h", "-x", "c", "/dev/null"];
                process::succeeds(Command::new("cc").args(arguments))
            }
            Self::PkgConfig => process::succeeds(pkg_config().arg("--version")),
            // It looks where it will for bindgen.
            Self::Libclang => clang_sys::load().is_ok(),
            Self::Hwloc => process::succeeds(pkg_config().args(["--exists", "hwloc >= 2.0.0"])),
            Self::Spin => process::succeeds(Command::new("spin").arg("-V")),
            // Where no cluster is configured srun fails whatever it is asked.
            Self::Slurm => {
                SLURM.into_iter().all(|name| process::find_system_program(name).is_some())
            }
            // The one of Debian crashes when it is asked for its version.
            Self::Gap => process::find_program("gap").is_some(),
            Self::Chromium => process::find_program("chromium").is_some(),
            Self::Mpi(family) => Mpi::find(family).is_some(),
        }
    }

    fn packages(self, distribution: Distribution) -> impl Iterator<Item = &'static str> {
        self.row()[1 + distribution as usize].split_whitespace()
    }

    /// Its name, and its packages in each distribution. Fedora has none of SPIN, and the proofs say
    /// so where it is missing; the test cluster needs root, and root needs no Spack.
    fn row(self) -> [&'static str; 4] {
        match self {
            Self::CCompiler => ["a C compiler", "gcc libc6-dev", "gcc", "gcc"],
            Self::PkgConfig => ["pkg-config", "pkg-config", "pkgconf-pkg-config", "pkgconf"],
            Self::Libclang => ["libclang", "libclang-dev", "clang-devel", "llvm"],
            Self::Hwloc => ["hwloc", "libhwloc-dev", "hwloc-devel", "hwloc"],
            Self::Spin => ["SPIN", "spin", "", "spin"],
            Self::Slurm => [
                "Slurm",
                "slurmctld slurmd slurm-client munge iproute2 nftables",
                "slurm-slurmctld slurm-slurmd munge iproute iproute-tc nftables",
                "",
            ],
            // What is recommended with it takes hundreds of megabytes: TeX, to show its manual.
            Self::Gap => ["GAP", "gap-core", "gap-core", "gap"],
            Self::Chromium => ["Chromium", "chromium", "chromium", ""],
            Self::Mpi(Family::Mpich) => ["MPICH", "mpich libmpich-dev", "mpich-devel", "mpich"],
            Self::Mpi(Family::OpenMpi) => {
                ["Open MPI", "openmpi-bin libopenmpi-dev", "openmpi-devel", "openmpi"]
            }
        }
    }
}

/// The packages that bring everything in `missing`.
pub(crate) fn packages(missing: &[Requirement], distribution: Distribution) -> Vec<&'static str> {
    missing.iter().flat_map(|requirement| requirement.packages(distribution)).collect()
}

/// The names of everything in `missing`, as a phrase.
pub(crate) fn names(missing: &[Requirement]) -> String {
    missing.iter().map(|requirement| requirement.name()).collect::<Vec<_>>().join(", ")
}

/// What to type to get everything in `missing`, for each distribution.
pub(crate) fn advice(missing: &[Requirement]) -> String {
    let list = |distribution| packages(missing, distribution).join(" ");
    let spack = list(Distribution::Spack);
    let mpis = missing.iter().filter(|requirement| matches!(requirement, Requirement::Mpi(_)));
    // Two MPIs cannot be loaded at once; a user of Spack wants one.
    let spack = if mpis.count() == 2 { spack.replace(" openmpi", "") } else { spack };
    format!(
        "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y {}\n  \
           Fedora:          sudo dnf install -y {}\n  \
           Spack:           spack install {spack} && spack load {spack}",
        list(Distribution::Debian),
        list(Distribution::Fedora),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ALL: [Requirement; 6] = [
        Requirement::CCompiler,
        Requirement::PkgConfig,
        Requirement::Libclang,
        Requirement::Hwloc,
        Requirement::Mpi(Family::Mpich),
        Requirement::Mpi(Family::OpenMpi),
    ];

    #[test]
    fn slurm_is_there_before_it_is_configured() {
        let is_file = |name: &str| {
            ["/usr/bin", "/usr/sbin"].iter().any(|folder| Path::new(folder).join(name).is_file())
        };
        if !SLURM.into_iter().all(is_file) {
            return println!("skipped: Slurm is not installed, or elsewhere");
        }
        assert!(Requirement::Slurm.is_met());
    }

    #[test]
    fn advice_for_a_bare_machine() {
        let expected = "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y \
             gcc libc6-dev pkg-config libclang-dev libhwloc-dev mpich libmpich-dev openmpi-bin \
             libopenmpi-dev\n  \
             Fedora:          sudo dnf install -y \
             gcc pkgconf-pkg-config clang-devel hwloc-devel mpich-devel openmpi-devel\n  \
             Spack:           spack install gcc pkgconf llvm hwloc mpich && \
             spack load gcc pkgconf llvm hwloc mpich";
        assert_eq!(advice(&ALL), expected);
    }

    #[test]
    fn advice_names_only_what_is_missing() {
        let expected = "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y \
             libclang-dev openmpi-bin libopenmpi-dev\n  \
             Fedora:          sudo dnf install -y clang-devel openmpi-devel\n  \
             Spack:           spack install llvm openmpi && spack load llvm openmpi";
        let missing = [Requirement::Libclang, Requirement::Mpi(Family::OpenMpi)];
        assert_eq!(advice(&missing), expected);
    }
}
