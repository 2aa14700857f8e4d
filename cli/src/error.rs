//! Why the command failed, as its `main` shows it.

use std::fmt;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error. Its `Debug` form is its text, so that a `main` that returns it shows it well.
pub(crate) struct Error(Box<dyn std::error::Error + Send + Sync>);

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        Error(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
