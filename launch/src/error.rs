//! What can go wrong with a job, made to be read by the person who started it.

use std::fmt;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::settings::SettingsError;
use ultramarine_runtime::transport::LaneError;
use ultramarine_topology::TopologyError;

/// The result of a program or of a part of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a program failed.
///
/// Its `Debug` form is the message itself, so that a `main` that returns it shows it well.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job did not start.
    #[error("the job did not start: {0}")]
    Start(#[from] StartError),
    /// The job did not finish.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A task that the program awaited ended without a value.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What the program prints cannot be written.
    #[error("standard output cannot be written ({0}): what was printed there is not whole")]
    Output(#[source] std::io::Error),
    /// The program has a reason of its own.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of the program's own.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Other(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a job did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option that cannot be.
    #[error("{0}")]
    Options(String),
    /// A setting that cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// It cannot be found out where the PEs are.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The lane between the PEs cannot be made.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The launcher started several processes, and each of them is alone.
    #[error(
        "{variable} says that {expected} processes were started, but MPI sees only one: the launcher \
         does not belong to the program's MPI library ({library}). Start it with `ultramarine run -n \
         {expected} PROGRAM`, with that library's own mpiexec, or with `srun --mpi={plugin}`"
    )]
    WorldOfOne {
        /// The environment variable that says how many.
        variable: &'static str,
        /// How many it says.
        expected: u32,
        /// The MPI that the program was built with.
        library: String,
        /// The plugin of Slurm that connects processes of that library.
        plugin: &'static str,
    },
    /// The launcher started several processes, and the program cannot connect them.
    #[error("{variable} says that {expected} processes were started, but {why}")]
    Unconnected {
        /// The environment variable that says how many.
        variable: &'static str,
        /// How many it says.
        expected: u32,
        /// What is missing.
        why: String,
    },
    /// Not all processes run the same program.
    #[error(
        "the processes run different programs: {0}. All must be started from one and the same \
         binary, since tasks travel as positions inside it"
    )]
    MixedPrograms(String),
    /// Something is wrong on another process.
    #[error("rank {rank} on {host}: {reason}")]
    Rank {
        /// The launcher's number of that process.
        rank: usize,
        /// Its host.
        host: String,
        /// What it said.
        reason: String,
    },
    /// Another process says why the job did not start; this one ends in peace.
    #[error("see what rank 0 says")]
    SaidElsewhere,
    /// MPI would not start as needed.
    #[error("MPI: {0}")]
    Mpi(String),
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
}
