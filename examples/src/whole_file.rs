//! Files that come to be as a whole or not at all.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use ultramarine::{Error, Result};

/// A file that a program will write at its end.
///
/// It is first written to a temporary file in the same folder, whose name begins with a dot, and
/// renamed at the end. So a reader of the path sees either the former file or the whole new one. If
/// writing fails, the temporary file is removed.
#[derive(Debug)]
pub(crate) struct WholeFile {
    /// What is in it, in a word.
    what: &'static str,
    path: PathBuf,
}

impl WholeFile {
    /// Checks that the file can be written; it may exist already. A program calls this before a
    /// long computation. It leaves no file behind.
    ///
    /// # Errors
    ///
    /// The folder does not exist or is not writable, or something other than a file is at the path.
    pub(crate) fn at(path: &Path, what: &'static str) -> Result<WholeFile> {
        let file = WholeFile { what, path: path.to_owned() };
        if path.metadata().is_ok_and(|there| !there.is_file()) || path.file_name().is_none() {
            return Err(file.refused("something else than a file is there"));
        }
        file.draft()?;
        Ok(file)
    }

    /// Has `write` write the file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn save(self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        let mut draft = self.draft()?;
        let file = draft.as_file_mut();
        let written = write(file).and_then(|()| file.sync_all());
        written.map_err(|error| self.refused(error))?;
        draft.persist(&self.path).map_err(|failure| self.refused(failure.error))?;
        Ok(())
    }

    /// A temporary file, which is removed when it is dropped.
    fn draft(&self) -> Result<NamedTempFile> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The permissions of any new file; by default temporary files belong to the owner alone.
        tempfile::Builder::new()
            .prefix(".unfinished")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| self.refused(error))
    }

    fn refused(&self, reason: impl std::fmt::Display) -> Error {
        let reason = reason.to_string();
        // What the temporary file was to be called is of no interest.
        let reason = reason.split(" at path ").next().unwrap_or_default();
        Error::other(format!(
            "cannot write the {} {}: {reason}; give a file in a folder that exists and that you \
             may write to",
            self.what,
            self.path.display()
        ))
    }
}
