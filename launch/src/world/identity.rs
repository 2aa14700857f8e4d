//! Whether two processes run the same binary.

use crate::error::StartError;
use xxhash_rust::xxh3::xxh3_64;

/// A hash of the program's file: equal for the same build, different for any other.
pub(crate) fn of_this_program() -> Result<u64, StartError> {
    // The system's name for the file that was started, wherever it has been moved since.
    let file = "/proc/self/exe";
    let io =
        |source| StartError::Io { doing: format!("reading the program's own file {file}"), source };
    Ok(xxh3_64(&std::fs::read(file).map_err(io)?))
}
