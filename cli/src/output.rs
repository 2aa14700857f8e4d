//! What the command writes for its user: whole files, and names that a terminal can show.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file at once: what was there stays until all is written, and if that fails. What is no
/// file, such as a pipe, is written to.
///
/// # Errors
///
/// It cannot be written; or what `write` says.
pub(crate) fn write_whole<T>(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let named = |error: std::io::Error| {
        Error::from(format!("`{}` cannot be written: {error}", file.display()))
    };
    let is_file = fs::symlink_metadata(file).map_or(true, |of| of.is_file() || of.is_symlink());
    let next = if is_file { beside(file) } else { file.to_owned() };
    let mut out = BufWriter::new(File::create(&next).map_err(named)?);
    let written = write(&mut out).and_then(|done| {
        out.flush().map_err(named)?;
        if is_file {
            fs::rename(&next, file).map_err(named)?;
        }
        Ok(done)
    });
    if is_file && written.is_err() {
        let _ = fs::remove_file(&next);
    }
    written
}

/// The name of a file that becomes this one.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}

/// A name without what would change the terminal.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '·' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_unless_all_is_written() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("page");
        fs::write(&file, "before").expect("there is room");
        let fails = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err::<(), _>(Error::from("no more"))
        };
        assert!(write_whole(&file, fails).is_err());
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "before");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("there is room");
        write_whole(&link, |out| Ok(out.write_all(b"after")?)).expect("there is room");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "before", "a link is replaced");
        assert_eq!(fs::read_to_string(&link).expect("it is there"), "after");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_name_cannot_change_the_terminal() {
        assert_eq!(printable("a\x1b[31m\n b"), "a·[31m· b");
    }
}
