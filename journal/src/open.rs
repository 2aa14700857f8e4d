//! Opens a journal: for reading, or to go on with it.

use crate::builds::{Builds, OtherBuilds};
use crate::error::{OpenError, Refusal};
use crate::header::{HEADER_BYTES_MAX, Header, HeaderError, Identity};
use crate::output::{LockedFile, Output};
use crate::read::{ReadError, read};
use crate::report::Report;
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

/// What [`inspect`] finds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// What the journal belongs to.
    pub identity: Identity,
    /// The mark of the file: a random number that no other journal has.
    pub mark: u64,
    /// When it was begun, in seconds of Unix time.
    pub begun_unix_s: u64,
    /// When the file was changed last.
    pub last_written: SystemTime,
    /// What it holds.
    pub report: Report,
}

/// Reads a journal without locking or changing it, which may be done while a job writes it: then
/// the record that is just being written is taken for a torn tail.
///
/// # Errors
/// If the file cannot be read, or is no journal.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, OpenError> {
    inspect_with(path.as_ref(), None, |_, _| Ok(()))
}

/// Reads a journal, which may have to be of this identity, and hands its records to `visit`.
pub(crate) fn inspect_with(
    path: &Path,
    expected: Option<&Identity>,
    visit: impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), Refusal>,
) -> Result<Inspection, OpenError> {
    let (mut file, metadata, header) = open_to_read(path, expected)?;
    let report = read_records(path, &mut file, &header, metadata.len(), visit)?;
    let failed = |source| io_error(path, "opened", source);
    let last_written = metadata.modified().map_err(failed)?;
    let Header { identity, mark, begun_unix_s, .. } = header;
    Ok(Inspection { identity, mark, begun_unix_s, last_written, report })
}

/// Opens a journal, which may have to be of this identity, and reads its header.
pub(crate) fn open_to_read(
    path: &Path,
    expected: Option<&Identity>,
) -> Result<(File, Metadata, Header), OpenError> {
    let failed = |source| io_error(path, "opened", source);
    // Before it is opened, since opening a FIFO waits for its writer.
    refuse_other_kinds(path, &path.metadata().map_err(failed)?)?;
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    refuse_other_kinds(path, &metadata)?;
    let header = read_header(path, &mut file)?.ok_or_else(|| OpenError::Unbegun(path.into()))?;
    if let Some(differences) = expected.and_then(|other| header.identity.differences(other)) {
        return Err(OpenError::Differs { path: path.into(), differences });
    }
    Ok((file, metadata, header))
}

/// A journal that is open for writing and locked.
pub(crate) struct Opened {
    pub(crate) mark: u64,
    pub(crate) output: Output,
    pub(crate) report: Report,
    /// The results of other builds, which the file still has, are to be dropped.
    pub(crate) drops_others: bool,
}

/// Opens the journal of `identity`, or begins it, and hands its records to `visit`.
pub(crate) fn open(
    path: &Path,
    identity: &Identity,
    builds: Builds,
    mut visit: impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), Refusal>,
) -> Result<Opened, OpenError> {
    let mut locked = LockedFile::new(path, open_file(path)?)?;
    let file = &mut locked.0;
    let length = file.metadata().map_err(|error| io_error(path, "read", error))?.len();
    let Some(header) = read_header(path, file)? else {
        return begin(path, locked, identity);
    };
    if let Some(differences) = header.identity.differences(identity) {
        return Err(OpenError::Differs { path: path.into(), differences });
    }
    let mut report = read_records(path, file, &header, length, &mut visit)?;
    let items_of_others = report.items_of_others(builds.this);
    if builds.others == OtherBuilds::Refuse && items_of_others > 0 {
        let items_of_this = report.done.count() - items_of_others;
        return Err(OpenError::OtherBuild { path: path.into(), items_of_others, items_of_this });
    }
    let drops_others = builds.others == OtherBuilds::Anew && items_of_others > 0;
    if drops_others {
        for positions in report.drop_others(builds.this) {
            visit(positions.clone(), None).map_err(|source| OpenError::Unusable {
                path: path.into(),
                positions,
                source,
            })?;
        }
    }
    let end = report.file_bytes - report.torn_bytes;
    if report.torn_bytes > 0 {
        file.set_len(end).map_err(|error| io_error(path, "cut where it is torn", error))?;
    }
    let output = Output::new(path, locked, end);
    if end == header.length as u64 {
        // The process that has begun it may have been killed before it was on the disk.
        output.begin_on_disk()?;
    }
    Ok(Opened { mark: header.mark, output, report, drops_others })
}

fn open_file(path: &Path) -> Result<File, OpenError> {
    match path.metadata() {
        Ok(metadata) => refuse_other_kinds(path, &metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A bare name has an empty folder.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if folder.is_some_and(|folder| !folder.exists()) {
                return Err(OpenError::NoFolder(path.into()));
            }
        }
        Err(error) => return Err(io_error(path, "opened", error)),
    }
    let mut options = OpenOptions::new();
    // It is appended to: so a file that another program cuts stays shorter than it was written.
    let opened = options.read(true).append(true).create(true).open(path);
    let file = opened.map_err(|error| io_error(path, "opened for writing", error))?;
    let metadata = file.metadata().map_err(|error| io_error(path, "opened", error))?;
    refuse_other_kinds(path, &metadata)?;
    Ok(file)
}

fn refuse_other_kinds(path: &Path, metadata: &Metadata) -> Result<(), OpenError> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "a folder" } else { "a device, a FIFO or a socket" };
    Err(OpenError::NoFile { path: path.into(), what })
}

/// The header, or nothing where a journal can be begun.
fn read_header(path: &Path, file: &mut File) -> Result<Option<Header>, OpenError> {
    let mut bytes = Vec::new();
    let read = file.by_ref().take(HEADER_BYTES_MAX as u64).read_to_end(&mut bytes);
    read.map_err(|error| io_error(path, "read", error))?;
    match Header::decode(&bytes) {
        Ok(header) => Ok(Some(header)),
        Err(HeaderError::Unbegun) => Ok(None),
        // The length of a file may be on the disk before its bytes are, when a machine crashes.
        Err(HeaderError::NoJournal)
            if has_only_zeros(&bytes, file).map_err(|error| io_error(path, "read", error))? =>
        {
            Ok(None)
        }
        Err(HeaderError::NoJournal) => Err(OpenError::NoJournal(path.into())),
        Err(HeaderError::UnknownVersion(version)) => {
            Err(OpenError::UnknownVersion { path: path.into(), version })
        }
        Err(HeaderError::Damaged) => Err(OpenError::DamagedHeader(path.into())),
    }
}

/// Whether a file that begins with these bytes, and goes on where it stands, has zeros alone.
fn has_only_zeros(begin: &[u8], file: &mut File) -> io::Result<bool> {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !is_zero(begin) {
        return Ok(false);
    }
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(count) if is_zero(&bytes[..count]) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn read_records(
    path: &Path,
    file: &mut File,
    header: &Header,
    file_bytes: u64,
    visit: impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), Refusal>,
) -> Result<Report, OpenError> {
    let start = header.length as u64;
    let failed = |error| io_error(path, "read", error);
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    // A file that another process has just cut may be shorter than it was.
    let bytes = start..file_bytes.max(start);
    read(file, (header.mark, header.identity.items), bytes, visit).map_err(|error| match error {
        ReadError::Io(error) => failed(error),
        ReadError::Refused { positions, source } => {
            OpenError::Unusable { path: path.into(), positions, source }
        }
    })
}

/// Writes the header of a new journal.
fn begin(path: &Path, locked: LockedFile, identity: &Identity) -> Result<Opened, OpenError> {
    // Each `RandomState` has other keys.
    let mark = RandomState::new().hash_one(std::process::id());
    let header = Header::new(identity, mark).encode();
    let file = &locked.0;
    let length = file.metadata().map_err(|error| io_error(path, "read", error))?.len();
    if length > 0 {
        tracing::warn!(
            "the journal `{}` has {length} bytes and no results, as after a crash of the machine: \
             it is begun anew",
            path.display()
        );
    }
    file.set_len(0).map_err(|error| io_error(path, "begun", error))?;
    let mut output = Output::new(path, locked, 0);
    output.begin(&header).inspect_err(|_| output.cut(0))?;
    let report = Report { file_bytes: header.len() as u64, ..Report::default() };
    Ok(Opened { mark, output, report, drops_others: false })
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> OpenError {
    OpenError::Io { path: path.into(), action, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another program has moved it away meanwhile.
    #[test]
    fn a_new_file_that_cannot_be_begun_is_left_empty() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.journal");
        let file = open_file(&path).expect("there is room");
        let locked = LockedFile::new(&path, file).expect("no one else has it");
        let names = [const { String::new() }; 3];
        let [program, call, result] = names;
        let identity = Identity { program, call, result, items: 4, digest: 0 };
        let failed = begin(&folder.path().join("other"), locked, &identity).err();
        let Some(OpenError::Write(error)) = failed else { panic!("it is not there") };
        assert!(error.to_string().contains("moved away"), "{error}");
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 0);
        let opened = open(&path, &identity, Builds::default(), |_, _| Ok(()));
        assert_eq!(opened.expect("it can be begun").report.records, 0);
    }
}
