//! Why an experiment gives no result, worded for the person who started it.

use super::ValidateError;
use crate::chart::ChartError;
use crate::machine::MachineError;
use crate::network::MeasuredError;
use crate::report::RunFault;
use std::io;
use std::path::PathBuf;

/// Why an experiment ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// There is no such machine.
    #[error(transparent)]
    Machine(#[from] MachineError),

    /// The measured network cannot be used.
    #[error("{}: {cause}", path.display())]
    Measured {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: MeasuredError,
    },

    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },

    /// A folder for charts cannot be made.
    #[error("cannot make the folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },

    /// A file for a chart cannot be written, which is known before the runs.
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },

    /// A chart cannot be drawn or written.
    #[error(transparent)]
    Chart(#[from] ChartError),

    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),

    /// Numbers that each are allowed are not allowed together.
    #[error("{what}; {allowed}")]
    Refused {
        /// What was asked for.
        what: String,
        /// What is allowed.
        allowed: String,
    },

    /// Real and simulated jobs cannot be compared.
    #[error(transparent)]
    Validate(#[from] ValidateError),

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
    /// Whether the command line is not valid, or a file or folder that it names cannot be used.
    /// Otherwise a job has gone wrong, or results cannot be written.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Validate(error) => !matches!(error, ValidateError::Replay(_)),
            Self::Chart(_) | Self::Output(_) | Self::Fault { .. } => false,
            _ => true,
        }
    }

    /// Whether the reader of the output has gone, which is no one's mistake (`… | head`).
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
