//! Which build of the program this process runs.

use std::io::{self, Read as _};
use std::sync::OnceLock;
use xxhash_rust::xxh3::Xxh3;

/// Read at a time. (Of a file of 95 MB, read as a whole, most of the time went into memory.)
const PART_BYTES: usize = 128 << 10;

/// The system's name for the file that was started, wherever it has been moved since.
pub const PROGRAM_FILE: &str = "/proc/self/exe";

/// A hash of the program's file: equal for the same build, different for any other. The file is
/// read once.
///
/// # Errors
///
/// The file cannot be read.
pub fn of_this_program() -> io::Result<u64> {
    static HASH: OnceLock<u64> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return Ok(*hash);
    }
    let mut program = std::fs::File::open(PROGRAM_FILE)?;
    let (mut hash, mut part) = (Xxh3::new(), vec![0; PART_BYTES]);
    loop {
        match program.read(&mut part)? {
            0 => return Ok(*HASH.get_or_init(|| hash.digest())),
            length => hash.update(&part[..length]),
        }
    }
}
