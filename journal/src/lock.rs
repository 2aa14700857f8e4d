//! The lock on a journal's file: one job at a time writes it.

use crate::error::OpenError;
use std::fs::{File, TryLockError};
use std::path::Path;

/// A file that no other `LockedFile` is open at, unless its file system has no locks.
pub(crate) struct LockedFile(pub(crate) File);

impl LockedFile {
    pub(crate) fn new(path: &Path, file: File) -> Result<Self, OpenError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.into())),
            Err(TryLockError::Error(error)) => tracing::warn!(
                "the journal `{}` cannot be locked ({error}): see that no other job writes it",
                path.display()
            ),
        }
        Ok(LockedFile(file))
    }
}

/// Closing the file would unlock it as well, but not while another thread starts a program: until
/// that program runs, its process has the file open, too.
impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
