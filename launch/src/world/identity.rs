//! Whether two processes run the same binary.

use crate::error::StartError;
use std::io::Read as _;
use xxhash_rust::xxh3::Xxh3;

/// Read at a time. (Of a file of 95 MB, read as a whole, most of the time went into memory.)
const PART_BYTES: usize = 128 << 10;

/// A hash of the program's file: equal for the same build, different for any other.
pub(crate) fn of_this_program() -> Result<u64, StartError> {
    // The system's name for the file that was started, wherever it has been moved since.
    let file = "/proc/self/exe";
    let io =
        |source| StartError::Io { doing: format!("reading the program's own file {file}"), source };
    let mut program = std::fs::File::open(file).map_err(io)?;
    let (mut hash, mut part) = (Xxh3::new(), vec![0; PART_BYTES]);
    loop {
        match program.read(&mut part).map_err(io)? {
            0 => return Ok(hash.digest()),
            length => hash.update(&part[..length]),
        }
    }
}
