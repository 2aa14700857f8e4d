//! Why a program cannot be started, each in one line that says what to do.

use super::family::Family;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("there is no program `{name}` on PATH or beside this command{hint}")]
    NoProgram { name: String, hint: String },
    #[error("there is no file `{}`: build the program first, or mend the path", .0.display())]
    NoFile(PathBuf),
    #[error("`{}` cannot be executed: if it is the right file, `chmod +x` makes \
             it a program", .0.display())]
    NotExecutable(PathBuf),
    #[error(
        "`{}` is no binary ({reason}), so that it cannot be seen which MPI it needs: name the \
         program itself rather than a script that starts it", .program.display()
    )]
    NotElf { program: PathBuf, reason: String },
    #[error(
        "`{}` is linked with no MPI library: build it with the default features of `ultramarine` \
         (MPICC names the MPI's compiler wrapper), or start it as it is, with ULTRAMARINE_PES=4 \
         for four PEs in one process", .0.display()
    )]
    NoMpi(PathBuf),
    #[error(
        "`{}` needs {library}, which is not found on this host: load the module that has it, or \
         add its folder to LD_LIBRARY_PATH", .program.display()
    )]
    LibraryMissing { program: PathBuf, library: String },
    #[error(
        "`{}` needs two MPIs, {first} and {second}, which cannot work in one process: build it and \
         the libraries that it uses anew with one MPICC (after `cargo clean`)", .program.display()
    )]
    TwoMpis { program: PathBuf, first: String, second: String },
    #[error(
        "there is no `{}`, which runs what this command needs under MPI: build it with the MPI in \
         use (`MPICC=<its mpicc> cargo build --release -p ultramarine-probe`), and put it beside \
         this command or let ULTRAMARINE_PROBE name it", .0.display()
    )]
    NoProbe(PathBuf),
    #[error("ULTRAMARINE_PROBE names `{}`, which is no program: mend or unset it", .0.display())]
    NotTheProbe(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "no launcher found for {family} (`{}` is linked with {library}): {looked}; install it or \
         load its module, or let MPIEXEC name it", .program.display()
    )]
    NoLauncher { family: Family, program: PathBuf, library: String, looked: String },
    #[error("MPIEXEC names `{0}`, which is no program: mend MPIEXEC, or unset it")]
    NoMpiexec(String),
    #[error("srun cannot be used ({0}): load Slurm's module, or leave out `--launcher srun`")]
    NoSrun(String),
    #[error(
        "{launcher} cannot start `{}`, which is linked with {family} ({library}): each process \
         would be a world of its own. {mend}", .program.display()
    )]
    WrongLauncher {
        launcher: String,
        family: Family,
        program: PathBuf,
        library: String,
        mend: &'static str,
    },
    #[error(
        "srun of this cluster cannot connect {family} processes: `srun --mpi=list` has no {needed} \
         (it has {has}); leave out `--launcher srun`, or build with the other MPI"
    )]
    NoPlugin { family: Family, needed: &'static str, has: String },
    #[error("{asked}, but {has}: {mend}")]
    TooSmall { asked: String, has: String, mend: String },
    #[error("{0}")]
    Contradiction(String),
    #[error(
        "--hosts: `{host}` stands for no address: mend the name, or use the one the name service \
         has"
    )]
    NoAddress { host: String },
    #[error(
        "`{host}` cannot be reached ({reason}): see that `{agent} {host} true` works without a \
         password"
    )]
    Unreachable { host: String, reason: String, agent: String },
    #[error(
        "--hosts names `{host}`, and allocation {job} has {list} (SLURM_JOB_NODELIST): name hosts \
         of these, or ask Slurm for that one (sbatch --nodelist={host})"
    )]
    NotAllocated { host: String, job: String, list: String },
    #[error(
        "--bind {bind} was asked for, but this cluster's Slurm does not bind (TaskPlugin = \
         {plugin}): ask its administrator, or leave out --bind"
    )]
    DoesNotBind { bind: &'static str, plugin: String },
    #[error(
        "this job has {components} components (SLURM_HET_SIZE), and srun would use the first \
         alone: start it as slurm/heterogeneous.sbatch does, or name them after `--`, as in \
         --het-group=0,1"
    )]
    Heterogeneous { components: u32 },
    #[error(
        "this job has {components} components (SLURM_HET_SIZE), and {} would start on the first \
         alone: only srun starts on several, as in slurm/heterogeneous.sbatch", .launcher.display()
    )]
    NotOfComponents { components: u32, launcher: PathBuf },
    #[error(
        "--bind {bind} wants {asked} on this host, one for each process, and it has {has}: ask for \
         fewer processes, or leave out --bind"
    )]
    CannotBind { bind: &'static str, asked: String, has: u32 },
    #[error(
        "Open MPI's mpiexec refuses to work for root: set OMPI_ALLOW_RUN_AS_ROOT=1 and \
         OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 (in a container that is all right), or add \
         `-- --allow-run-as-root` at the end"
    )]
    Root,
    #[error(
        "{variable} says that a launcher has started this process already: under mpiexec or srun, \
         start the program itself instead of `ultramarine run`"
    )]
    Launched { variable: &'static str },
    #[error(
        "this shell is a step of Slurm (srun --pty), in which no job can be started: get one with \
         `salloc`"
    )]
    InStep,
    #[error("cannot start `{}`: {source}", .launcher.display())]
    Exec { launcher: PathBuf, source: std::io::Error },
}
