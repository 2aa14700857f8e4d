//! `cargo xtask demo`: the project at work, from a fresh checkout, in one command: on four
//! processes of this machine, or on the nodes of the Slurm allocation that it is started in.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::mpi::{Family, Mpi};
use crate::process::{self, Failure, Result};
use crate::setup::{self, Wanted};

/// Outside of an allocation, which says itself how many.
const PROCESSES: &str = "4";
const PROGRAM: &str = "sum_euler";
/// Quick to build. Only the program itself is as fast as in a release.
const PROFILE: &str = "demo";
/// The sum of Euler's totient over 1..=12000, compared with the time of one thread in the same run.
const ARGUMENTS: &str = "--upto 12000 --tasks 400 --skeleton par-map --progress --show-topology \
                         --efficiency";

/// The command that starts jobs, built beside the program, with the probe that its other parts
/// need, such as `doctor`.
const LAUNCH: &str = "ultramarine";
/// What is built, without the other examples and what they need.
#[rustfmt::skip]
pub(crate) const BUILT: [&str; 15] = [
    "--package", "ultramarine-examples", "--bin", PROGRAM,
    "--package", "ultramarine-cli", "--bin", LAUNCH,
    "--package", "ultramarine-probe", "--bin", "ultramarine-probe", "--no-default-features",
    "--features", "ultramarine-examples/mpi,ultramarine-examples/hwloc,ultramarine-cli/hwloc,\
                   ultramarine-probe/mpi,ultramarine-probe/hwloc",
];

pub(crate) fn run() -> Result<ExitCode> {
    let mpis = setup::ensure(Wanted::OneMpi)?;
    let is_allocation = env::var_os("SLURM_JOB_ID").is_some_and(|job| !job.is_empty());
    let plugins = if is_allocation { plugins_of_slurm() } else { String::new() };
    let mpi = chosen(mpis, &plugins).ok_or_else(|| Failure("no MPI found".into()))?;

    println!("Building {PROGRAM} for speed, and what is below it in little time …");
    mpi.build(&[&["--profile", PROFILE], &BUILT[..]].concat())?;

    let programs = mpi.target_dir().join(PROFILE);
    let mut launch = Command::new(programs.join(LAUNCH));
    launch.arg("run");
    if !is_allocation {
        launch.args(["-n", PROCESSES]);
    }
    launch.arg(programs.join(PROGRAM)).args(ARGUMENTS.split(' '));
    mpi.apply_to(&mut launch);
    // In an allocation it takes srun, if that can connect the processes.
    launch.env("MPIEXEC", &mpi.mpiexec);
    println!("{}", process::shown(&launch));
    let status = process::status_of(&mut launch)?;
    if status.success() && !is_allocation && cfg!(target_os = "linux") {
        let here = env::current_dir().unwrap_or_default();
        if let Some(sudo) = sudo() {
            let command = on_test_cluster(&programs, &here, sudo);
            println!("\nThe same on four hosts with Slurm, which this machine plays:\n\n{command}");
        }
    }
    Ok(process::exit_code(status))
}

/// What this user types before a command for root, which the test cluster needs; nothing if the
/// user cannot become root.
fn sudo() -> Option<&'static str> {
    let user = process::output_of(Command::new("id").arg("-u"));
    if user.is_some_and(|number| number.trim() == "0") {
        return Some("");
    }
    process::find_program("sudo").map(|_| "sudo ")
}

/// The command that starts these programs there, to be typed in the folder `here`.
fn on_test_cluster(programs: &Path, here: &Path, sudo: &str) -> String {
    let short = |path: PathBuf| path.strip_prefix(here).unwrap_or(&path).display().to_string();
    let cluster = short(process::root().join("slurm/testcluster"));
    let [launch, program] = [LAUNCH, PROGRAM].map(|name| short(programs.join(name)));
    format!(
        "{sudo}{cluster} exec login salloc --nodes=4 \\\n    {launch} run {program} --show-topology"
    )
}

/// What `srun --mpi=list` says; nothing where it cannot be asked.
fn plugins_of_slurm() -> String {
    let output = Command::new("srun").arg("--mpi=list").output();
    // Older versions write it to the standard error.
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

/// The first MPI that srun has a plugin for, else the first.
fn chosen(mpis: Vec<Mpi>, plugins: &str) -> Option<Mpi> {
    let is_served = |mpi: &Mpi| {
        plugins.contains(match mpi.family {
            Family::Mpich => "pmi2",
            Family::OpenMpi => "pmix",
        })
    };
    let served = mpis.iter().position(is_served);
    mpis.into_iter().nth(served.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_cluster_is_told_where_the_programs_are() {
        let (root, programs) = (process::root(), process::root().join("target/openmpi/demo"));
        let shown = |here, sudo| on_test_cluster(&programs, here, sudo);
        let rest = "slurm/testcluster exec login salloc --nodes=4 \\\n    \
                    target/openmpi/demo/ultramarine run target/openmpi/demo/sum_euler \
                    --show-topology";
        assert_eq!(shown(root, "sudo "), format!("sudo {rest}"));
        assert_eq!(shown(root, ""), rest);
        let elsewhere = shown(Path::new("/elsewhere"), "");
        assert!(elsewhere.starts_with(&format!("{}/slurm/testcluster ", root.display())));
        assert!(elsewhere.contains(&format!(" {}/sum_euler ", programs.display())));
    }

    #[test]
    fn the_cluster_decides_which_mpi_is_shown() {
        let mpi = |family| Mpi { family, mpicc: "mpicc".into(), mpiexec: "mpiexec".into() };
        let both = || vec![mpi(Family::Mpich), mpi(Family::OpenMpi)];
        let family = |mpis, plugins| chosen(mpis, plugins).map(|mpi| mpi.family);
        assert_eq!(family(both(), "none\n\tpmi2\n\tpmix"), Some(Family::Mpich));
        assert_eq!(family(both(), "none\n\tpmix_v4"), Some(Family::OpenMpi));
        assert_eq!(family(both(), ""), Some(Family::Mpich));
        assert_eq!(family(vec![mpi(Family::OpenMpi)], "pmi2"), Some(Family::OpenMpi));
        assert_eq!(family(vec![], "pmi2"), None);
    }
}
