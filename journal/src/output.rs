//! The file as the writer sees it: whole records go in, and after an error it is cut back to those.
//! And as the thread sees it that puts it on the disk.

use crate::error::{OpenError, WriteError};
use crate::record::whole_records;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

pub(crate) struct Output {
    path: PathBuf,
    /// The same, wherever the process goes.
    absolute_path: Arc<Path>,
    file: Arc<LockedFile>,
    /// Where the last whole record ends, in bytes from the beginning of the file.
    end: u64,
    bytes_max: u64,
}

impl Output {
    /// A file that is written at its end, which is the offset `end`.
    pub(crate) fn new(path: &Path, file: LockedFile, end: u64) -> Self {
        let absolute_path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (path, file) = (path.to_owned(), Arc::new(file));
        let absolute_path = absolute_path.into();
        Output { path, absolute_path, file, end, bytes_max: file_size_limit() }
    }

    /// The same file, for the thread that puts it on the disk.
    pub(crate) fn on_disk(&self) -> OnDisk {
        let (path, absolute_path) = (self.path.clone(), self.absolute_path.clone());
        OnDisk { path, absolute_path, file: self.file.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Writes the header of a new journal, and puts it on the disk.
    pub(crate) fn begin(&mut self, header: &[u8]) -> Result<(), WriteError> {
        if header.len() as u64 > self.bytes_max {
            return Err(self.limit_error());
        }
        self.write_bytes(header).1?;
        self.end = header.len() as u64;
        self.begin_on_disk()
    }

    /// Puts what was written and the name of the file on the disk.
    pub(crate) fn begin_on_disk(&self) -> Result<(), WriteError> {
        let disk = self.on_disk();
        disk.sync(self.end)?;
        disk.sync_folder();
        Ok(())
    }

    /// Looks whether the file is still where it was, and as long as it was written.
    pub(crate) fn look(&self) -> Result<(), WriteError> {
        let found = self.on_disk().look(self.end)?;
        // It is appended to, so bytes of another program put the records in a wrong place.
        if found.is_file() && found.len() > self.end {
            return Err(WriteError::Spoilt { path: self.path.clone(), what: "written to" });
        }
        Ok(())
    }

    /// Writes whole records. After an error the last of what was written may be torn.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        // The system kills a process that writes beyond its limit, unless it ignores SIGXFSZ.
        let room = usize::try_from(self.bytes_max.saturating_sub(self.end)).unwrap_or(usize::MAX);
        let fits = if records.len() > room { whole_records(records, room) } else { records.len() };
        let (written, result) = self.write_bytes(&records[..fits]);
        if result.is_ok() {
            self.end += fits as u64;
        } else {
            self.end += whole_records(records, written) as u64;
        }
        result.and_then(|()| if fits < records.len() { Err(self.limit_error()) } else { Ok(()) })
    }

    /// Writes one record.
    pub(crate) fn write_record(&mut self, head: &[u8], result: &[u8]) -> Result<(), WriteError> {
        let end = self.end + (head.len() + result.len()) as u64;
        if end > self.bytes_max {
            return Err(self.limit_error());
        }
        self.write_bytes(head).1?;
        self.write_bytes(result).1?;
        self.end = end;
        Ok(())
    }

    /// Writes all, and says how much of it is written in any case.
    fn write_bytes(&mut self, bytes: &[u8]) -> (usize, Result<(), WriteError>) {
        let mut written = 0;
        while written < bytes.len() {
            let error = match (&self.file.0).write(&bytes[written..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    written += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return (written, Err(self.io_error(error)));
        }
        (written, Ok(()))
    }

    /// Cuts the file after an error, if that is possible: the next opening would cut it, too.
    pub(crate) fn cut(&self, end: u64) {
        let file = &self.file.0;
        if file.metadata().is_ok_and(|found| found.len() > end) {
            let _ = file.set_len(end).and_then(|()| file.sync_data());
        }
    }

    fn limit_error(&self) -> WriteError {
        WriteError::FileSizeLimit { path: self.path.clone(), bytes_max: self.bytes_max }
    }

    fn io_error(&self, error: io::Error) -> WriteError {
        WriteError::Io { path: self.path.clone(), source: Arc::new(error) }
    }
}

/// The file, for the thread that puts it on the disk.
pub(crate) struct OnDisk {
    path: PathBuf,
    absolute_path: Arc<Path>,
    file: Arc<LockedFile>,
}

impl OnDisk {
    /// Puts what was written on the disk, and looks whether the file still reaches `end`.
    pub(crate) fn sync(&self, end: u64) -> Result<(), WriteError> {
        self.file.0.sync_data().map_err(|error| self.io_error(error))?;
        self.look(end).map(drop)
    }

    /// Looks whether the file is still where it was, and reaches `end`.
    fn look(&self, end: u64) -> Result<Metadata, WriteError> {
        let found = self.file.0.metadata().map_err(|error| self.io_error(error))?;
        let there = self.absolute_path.metadata();
        let is_same = |other: &Metadata| (found.dev(), found.ino()) == (other.dev(), other.ino());
        let what = match there {
            _ if found.nlink() == 0 => "removed",
            _ if found.is_file() && found.len() < end => "cut",
            Ok(other) if !is_same(&other) => "replaced",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "moved away",
            // Of another error the next write tells, unless it passes.
            _ => return Ok(found),
        };
        Err(WriteError::Spoilt { path: self.path.clone(), what })
    }

    fn io_error(&self, error: io::Error) -> WriteError {
        WriteError::Io { path: self.path.clone(), source: Arc::new(error) }
    }

    /// Makes the name of the file durable. Not all file systems can do that, and those that cannot
    /// need not be asked.
    pub(crate) fn sync_folder(&self) {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
}

/// The longest file that this process may write, in bytes, by `RLIMIT_FSIZE`.
fn file_size_limit() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limit_in(&limits).unwrap_or(u64::MAX)
}

/// The soft limit in a text such as `Max file size   1024   unlimited   bytes`.
fn limit_in(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file size"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Head;
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    #[test]
    fn the_soft_limit_counts() {
        assert_eq!(limit_in("Limit Soft\nMax file size    512     unlimited   bytes\n"), Some(512));
        assert_eq!(limit_in("Max file size   unlimited   unlimited   bytes\n"), None);
        assert_eq!(limit_in(""), None);
    }

    #[test]
    fn a_device_that_is_full_is_said() {
        let path = Path::new("/dev/full");
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("on Linux");
        let error =
            Output::new(path, LockedFile(file), 0).write(b"record").expect_err("it is full");
        let text = "the journal `/dev/full` cannot be written: No space left on device (os error \
                    28); free some space there, or name a file on another disk";
        assert_eq!(error.to_string(), text);
    }

    /// A pipe whose reader goes away stands for a disk that takes a part.
    #[test]
    fn after_a_short_write_only_whole_records_count() {
        let (mut reader, writer) = io::pipe().expect("there are files");
        let file = File::from(OwnedFd::from(writer));
        let mut output = Output::new(Path::new("pipe"), LockedFile(file), 0);
        let record = [&Head::new(1, 0..1, &[7; 1000]).encode(1, 0)[..], &[7; 1000]].concat();
        // It takes 64 KiB at a time; the write that waits has written some of them by then.
        let thread = std::thread::spawn(move || reader.read_exact(&mut [0]).map(|()| drop(reader)));
        let error = output.write(&record.repeat(200)).expect_err("no one reads");
        assert!(matches!(error, WriteError::Io { .. }), "{error}");
        thread.join().expect("it does not panic").expect("something is written");
        let (end, length) = (output.end(), record.len() as u64);
        assert!(end > 0 && end.is_multiple_of(length) && end < 200 * length, "{end}");
    }

    #[test]
    fn what_goes_beyond_the_limit_of_the_process_is_not_written() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.journal");
        let file = LockedFile(File::create(&path).expect("there is room"));
        let mut output = Output { bytes_max: 100, ..Output::new(&path, file, 0) };
        assert!(output.begin(&[0; 101]).is_err());
        output.begin(&[0; 4]).expect("it fits");
        let record = Head::new(1, 0..1, b"").encode(1, 0);
        output.write(&record.repeat(2)).expect("both fit");
        assert_eq!(output.end(), 100);
        let error = output.write(&record).expect_err("it is full");
        assert!(matches!(error, WriteError::FileSizeLimit { bytes_max: 100, .. }), "{error}");
        let length = || std::fs::metadata(&path).expect("it is there").len();
        assert_eq!((output.end(), length()), (100, 100));
        output.cut(100);
        assert_eq!(length(), 100);
        output.cut(52);
        assert_eq!(length(), 52);
    }

    #[test]
    fn a_file_that_is_gone_or_too_short_is_spoilt() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.journal");
        let file = LockedFile(File::create(&path).expect("there is room"));
        let mut output = Output::new(&path, file, 0);
        output.begin(&[0; 10]).expect("it fits");
        let on_disk = output.on_disk();
        let spoilt = |end| match on_disk.sync(end) {
            Err(WriteError::Spoilt { what, .. }) => Some(what),
            Err(other) => panic!("{other}"),
            Ok(()) => None,
        };
        assert_eq!([10, 11].map(spoilt), [None, Some("cut")]);
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(spoilt(10), Some("removed"));
    }
}
