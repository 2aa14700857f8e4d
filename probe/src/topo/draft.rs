//! Files that come to be as a whole or not at all.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};
use ultramarine::{Error, Result};

/// A file that is being written, beside the one that it will be. Unless it is finished, nothing of
/// it stays.
pub(super) struct Draft {
    path: PathBuf,
    file: NamedTempFile,
    replaces: bool,
}

impl Draft {
    /// Begins a file at `path`, which may replace one that is there.
    ///
    /// # Errors
    /// There is one already, or none can be made.
    pub(super) fn begin(path: &Path, replaces: bool) -> Result<Draft> {
        match path.metadata() {
            Ok(found) if !found.is_file() => {
                return Err(Error::other(format!(
                    "{} is not a plain file: give another name, or - for standard output",
                    path.display()
                )));
            }
            Ok(_) if !replaces => return Err(exists(path)),
            _ => {}
        }
        // A link stays a link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        // As any other new file: what the user's mask leaves.
        let permissions = std::fs::Permissions::from_mode(0o666);
        let mut file = Builder::new();
        file.prefix(".ultramarine-").permissions(permissions);
        let file = file.tempfile_in(folder).map_err(|cause| refused(&path, &cause))?;
        Ok(Draft { path, file, replaces })
    }

    /// Gives it its content and its name.
    ///
    /// # Errors
    /// The disk is full, say, or another process has made the file meanwhile.
    pub(super) fn finish(mut self, content: &str) -> Result<()> {
        let written = self.file.write_all(content.as_bytes());
        written
            .and_then(|()| self.file.as_file().sync_all())
            .map_err(|e| refused(&self.path, &e))?;
        let named = if self.replaces {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        match named {
            Ok(_) => Ok(()),
            Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(&self.path))
            }
            Err(failure) => Err(refused(&self.path, &failure.error)),
        }
    }
}

fn exists(path: &Path) -> Error {
    Error::other(format!("{} exists already: give another name, or --force", path.display()))
}

fn refused(path: &Path, cause: &io::Error) -> Error {
    // What the temporary file was to be called is of no interest.
    let cause = cause.to_string();
    let cause = cause.split(" at path ").next().unwrap_or_default();
    Error::other(format!(
        "cannot write {}: {cause}; give a file in a folder that exists and that you may write to",
        path.display()
    ))
}
