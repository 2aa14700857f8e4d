//! Why an experiment gives no result, worded for the person who started it.

use crate::chart::ChartError;
use crate::machine::MachineError;
use crate::report::RunFault;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// There is no such machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A file or folder cannot be read, made or written, which is known before the runs.
    #[error("cannot {0} {path}: {2}", path = .1.display())]
    Path(&'static str, PathBuf, io::Error),
    /// What is in a file, a measured network or a recording, cannot be used.
    #[error("{path}: {1}", path = .0.display())]
    Content(PathBuf, Box<dyn Error + Send + Sync>),
    /// What was asked for is not allowed. The text says what is.
    #[error("{0}")]
    Refused(String),
    /// A chart cannot be drawn or written.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// A recorded job cannot be simulated.
    #[error("a recorded job cannot be simulated: {0}")]
    Replay(String),
    /// A simulated job did not come to its end, or not to the right result.
    #[error(
        "the job of {what} is not as it must be: {fault}; --tell prints all its events, --seed \
         {seed} repeats it"
    )]
    Fault {
        /// Which job.
        what: String,
        /// What is wrong with it.
        fault: RunFault,
        /// Its seed.
        seed: u64,
    },
}

impl ExperimentError {
    /// What is in this file cannot be used.
    pub(super) fn content(path: &Path, cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Content(path.to_owned(), Box::new(cause))
    }

    /// Whether the command line is not valid, or a file or folder that it names cannot be used.
    /// Otherwise a job has gone wrong, or results cannot be written.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Chart(_) | Self::Output(_) | Self::Replay(_) | Self::Fault { .. })
    }

    /// Whether the reader of the output has gone, which is no one's mistake (`… | head`).
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
