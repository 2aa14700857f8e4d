//! What can go wrong with a job, made to be read by the person who started it.

use serde::{Deserialize, Serialize};
use std::fmt;
use ultramarine_environment::variables::Refused;
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::JobError;
use ultramarine_runtime::settings::SettingsError;
use ultramarine_runtime::transport::LaneError;
use ultramarine_topology::TopologyError;

/// The result of a program or of a part of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a program failed.
///
/// `?` makes one of any error. Those that the variants name become these; any other is
/// [`Other`](Error::Other), or [`Failed`](Error::Failed) if a task has sent it:
///
/// ```
/// fn weight(text: &str) -> ultramarine::Result<u64> {
///     Ok(text.parse()?)
/// }
/// let error = weight("heavy").expect_err("it is no number");
/// assert!(matches!(error, ultramarine::Error::Other(_)));
/// ```
///
/// It does not travel: a task returns [`Failure`] instead.
///
/// For `?` it is no [`std::error::Error`] itself, but becomes a boxed one with `?` or `into`. Its
/// text is one line, with what the error's sources say. Its `Debug` form is the same, so that a
/// `main` that returns it shows it well.
#[non_exhaustive]
pub enum Error {
    /// The job did not start.
    Start(StartError),
    /// The job did not finish.
    Job(JobError),
    /// A task that the program awaited ended without a value.
    Task(TaskError),
    /// A task that the program awaited says that it has failed.
    Failed(Failure),
    /// Reading or writing failed.
    Io(std::io::Error),
    /// What the program prints cannot be written.
    Output(std::io::Error),
    /// The program has a reason of its own.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of the program's own, such as a text.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Other(error.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
        error
            .downcast()
            .map(|error| Error::Task(*error))
            .or_else(|error| error.downcast().map(|error| Error::Job(*error)))
            .or_else(|error| error.downcast().map(|error| Error::Start(*error)))
            .or_else(|error| error.downcast().map(|error| Error::Io(*error)))
            .unwrap_or_else(Error::Other)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Start(error) => write!(f, "the job did not start: {}", with_sources(error)),
            Error::Job(error) => f.write_str(&with_sources(error)),
            Error::Task(error) => f.write_str(&with_sources(error)),
            Error::Failed(failure) => failure.fmt(f),
            Error::Io(error) => f.write_str(&with_sources(error)),
            Error::Output(error) => {
                write!(f, "standard output cannot be written ({error}): ")?;
                f.write_str("what was printed there is not whole")
            }
            Error::Other(error) => f.write_str(&with_sources(&**error)),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an error says, and what its sources say beyond that.
fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.map(ToString::to_string).fold(error.to_string(), |text, source| {
        if text.contains(&source) { text } else { format!("{text}: {source}") }
    })
}

/// Why a task of the program failed: the text of an error, which travels where the error itself
/// could not.
///
/// A task that returns `Result<T, Failure>` can use `?` on any error. Its text is one line, with
/// what the error's sources say.
///
/// ```
/// use std::path::PathBuf;
/// use ultramarine::prelude::*;
///
/// async fn weight(cx: &Context, path: PathBuf) -> ultramarine::Result<u64> {
///     let read = async |_, path: PathBuf| -> Result<u64, Failure> {
///         let text = std::fs::read_to_string(path)?;
///         Ok(text.trim().parse()?)
///     };
///     // The first `?` is for a task that is lost, for example; the second for what it returns.
///     Ok(cx.spawn(Distance::ONE, read, path).await??)
/// }
/// # fn main() -> ultramarine::Result<()> {
/// # let result = ultramarine::run(async |cx| weight(&cx, "/no/such/file".into()).await.map(drop));
/// # let error = result.expect_err("there is no such file").to_string();
/// # assert!(error.starts_with("No such file"), "{error}");
/// # Ok(())
/// # }
/// ```
///
/// To tell failures apart, return an enum of your own instead that serde can write and read.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failure(String);

impl Failure {
    /// A failure that this text describes.
    pub fn new(text: impl Into<String>) -> Self {
        Failure(text.into())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(with_sources(&error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure(error.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::Failed(failure)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An [`Error`] where a `std::error::Error` is asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Boxed(Error);

impl From<Error> for Box<dyn std::error::Error + Send + Sync> {
    fn from(error: Error) -> Self {
        match error {
            Error::Other(error) => error,
            error => Box::new(Boxed(error)),
        }
    }
}

impl From<Error> for Box<dyn std::error::Error> {
    fn from(error: Error) -> Self {
        Box::<dyn std::error::Error + Send + Sync>::from(error)
    }
}

impl From<Failure> for Box<dyn std::error::Error + Send + Sync> {
    fn from(failure: Failure) -> Self {
        failure.0.into()
    }
}

impl From<Failure> for Box<dyn std::error::Error> {
    fn from(failure: Failure) -> Self {
        failure.0.into()
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
        "{variable} says that {expected} processes were started, but MPI sees only one: the \
         launcher does not belong to the program's MPI library ({library}). Start it with \
         `ultramarine run -n {expected} PROGRAM`, with that library's own mpiexec, or with `srun \
         --mpi={plugin}`"
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
    /// The same, for a process that is not the launcher's first, which says more.
    #[error(
        "{variable} says that {expected} processes were started, of which this is number {rank}, \
         but it is alone: see what number 0 says, or, if no launcher started this process, unset \
         {variable}"
    )]
    AloneAsRank {
        /// The environment variable that says how many.
        variable: &'static str,
        /// How many it says.
        expected: u32,
        /// The launcher's number of this process.
        rank: u32,
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
    /// MPI starts once in a process.
    #[error(
        "`ultramarine::run` was called before: under a launcher a process is part of one job only"
    )]
    OneJobOnly,
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

impl From<Refused> for StartError {
    fn from(refused: Refused) -> Self {
        StartError::Options(refused.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// An error that leaves it to its source to say why.
    #[derive(Debug, thiserror::Error)]
    #[error("no weights")]
    struct NoWeights(#[source] std::num::ParseIntError);

    fn no_weights() -> Result<(), NoWeights> {
        "heavy".parse::<u64>().map(drop).map_err(NoWeights)
    }

    const SAID: &str = "no weights: invalid digit found in string";

    #[test]
    fn any_error_becomes_one_and_says_what_its_sources_say() {
        let main = || -> Result<()> { Ok(no_weights()?) };
        let error = main().expect_err("it fails");
        assert_eq!((error.to_string(), format!("{error:?}")), (SAID.to_owned(), SAID.to_owned()));
        let Error::Other(error) = error else { panic!("{error}") };
        assert!(error.is::<NoWeights>());
    }

    #[test]
    fn known_errors_become_their_variants() {
        assert!(matches!(TaskError::ShuttingDown.into(), Error::Task(TaskError::ShuttingDown)));
        assert!(matches!(StartError::SaidElsewhere.into(), Error::Start(_)));
        assert!(matches!(JobError::MainPanicked(String::new()).into(), Error::Job(_)));
        let io = std::io::Error::from(ErrorKind::NotFound);
        assert!(matches!(io.into(), Error::Io(io) if io.kind() == ErrorKind::NotFound));
    }

    #[test]
    fn what_an_error_says_of_its_source_is_not_said_twice() {
        let source = std::io::Error::other("the disk is full");
        let error = StartError::Io { doing: "writing".to_owned(), source };
        assert_eq!(
            Error::from(error).to_string(),
            "the job did not start: writing: the disk is full"
        );
    }

    #[test]
    fn a_failure_keeps_the_text_wherever_it_goes() {
        let task = || -> Result<(), Failure> { Ok(no_weights()?) };
        let failure = task().expect_err("it fails");
        assert_eq!(failure, Failure::new(SAID));
        let nested =
            || -> Result<(), Failure> { Err(Error::from(no_weights().unwrap_err()).into()) };
        assert_eq!(nested(), Err(failure.clone()));
        let error = Error::from(failure);
        assert!(matches!(&error, Error::Failed(_)));
        assert_eq!(Box::<dyn std::error::Error>::from(error).to_string(), SAID);
    }
}
