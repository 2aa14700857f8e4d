//! Files that examples read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use ultramarine::{Error, Result};

/// The text of a regular file of at most this many bytes: a named pipe may never have a writer, and
/// a device such as `/dev/zero` never ends. Bytes that are not UTF-8 are replaced. An error calls
/// the file's content `what`.
///
/// # Errors
///
/// The file cannot be read, is not a regular one, or is longer.
pub fn read_text(path: &Path, what: &str, bytes_max: u64) -> Result<String> {
    let name = path.display();
    let mut bytes = Vec::new();
    check_regular(path)
        .and_then(|()| File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes))
        .map_err(|e| Error::other(format!("cannot read the {what} {name}: {e}")))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::other(format!(
            "the file {name} has more than {bytes_max} bytes: is it the right file?"
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn check_regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file"))
}
