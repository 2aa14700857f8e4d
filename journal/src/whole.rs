//! Files that have all of their records, or are not there.

use crate::builds::{BuildNote, Builds};
use crate::error::{OpenError, Refusal, WriteError};
use crate::header::Identity;
use crate::open::{self, Inspection, Opened};
use crate::output::Output;
use crate::record::Head;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes a journal at once: aside, into a file whose name ends in `.new`; then it is put on the
/// disk, and gets its name. What had that name before is replaced. A note says by which build the
/// records are, if that is known. Returns the bytes of the file.
///
/// # Errors
///
/// It cannot be written. Nothing is left of it then.
pub fn write_whole(
    path: impl AsRef<Path>,
    identity: &Identity,
    build: Option<u64>,
    records: impl IntoIterator<Item = (Range<u64>, Vec<u8>)>,
) -> Result<u64, OpenError> {
    let path = path.as_ref();
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    // A writer that was killed may have left one.
    let _ = std::fs::remove_file(&aside);
    let written = write(&aside, identity, build, records).and_then(|output| {
        let failed = |source| WriteError::Io { path: path.into(), source: Arc::new(source) };
        std::fs::rename(&aside, path).map_err(failed)?;
        output.on_disk().sync_folder();
        Ok(output.end())
    });
    written.inspect_err(|_| drop(std::fs::remove_file(&aside)))
}

/// Writes all records, and puts them on the disk.
fn write(
    path: &Path,
    identity: &Identity,
    build: Option<u64>,
    records: impl IntoIterator<Item = (Range<u64>, Vec<u8>)>,
) -> Result<Output, OpenError> {
    let opened = open::open(path, identity, Builds::default(), |_, _| Ok(()))?;
    let Opened { mark, mut output, .. } = opened;
    if build.is_some() {
        let note = BuildNote { build, drops_others: false }.encode();
        output.write_record(&Head::of_note(mark, &note).encode(mark, output.end()), &note)?;
    }
    for (positions, result) in records {
        let head = Head::new(mark, positions, &result).encode(mark, output.end());
        output.write_record(&head, &result)?;
    }
    output.on_disk().sync(output.end())?;
    Ok(output)
}

/// Reads from the header of a journal what it belongs to.
///
/// # Errors
///
/// It cannot be read, or is no journal.
pub fn read_identity(path: impl AsRef<Path>) -> Result<Identity, OpenError> {
    let (.., header) = open::open_to_read(path.as_ref(), None)?;
    Ok(header.identity)
}

/// Reads a journal of this identity without locking or changing it, and hands its intact records to
/// `visit`. What is missing or damaged is in the report.
///
/// # Errors
///
/// It cannot be read, is no journal, or belongs to something else; or `visit` has failed.
pub fn read_whole(
    path: impl AsRef<Path>,
    identity: &Identity,
    mut visit: impl FnMut(Range<u64>, &[u8]) -> Result<(), Refusal>,
) -> Result<Inspection, OpenError> {
    let visit =
        |positions, result: Option<&[u8]>| result.map_or(Ok(()), |result| visit(positions, result));
    open::inspect_with(path.as_ref(), Some(identity), visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(program: &str) -> Identity {
        let [call, result] = [const { String::new() }; 2];
        Identity { program: program.into(), call, result, items: 4, digest: 0 }
    }

    type Record = (Range<u64>, Vec<u8>);

    /// The records that are read, and the number of damaged places.
    fn read(path: &Path) -> (Vec<Record>, u64) {
        let mut records = Vec::new();
        let visit = |positions, result: &[u8]| {
            records.push((positions, result.to_vec()));
            Ok(())
        };
        let found = read_whole(path, &identity("a"), visit).expect("it is a journal");
        (records, found.report.damaged_places)
    }

    #[test]
    fn a_file_is_there_with_all_records_or_as_it_was() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.records");
        let records = |text: &str| vec![(0..1, text.into()), (2..4, vec![7; 100_000])];
        let bytes =
            write_whole(&path, &identity("a"), Some(7), records("one")).expect("there is room");
        assert_eq!(path.metadata().expect("it is there").len(), bytes);
        assert_eq!(read(&path), (records("one"), 0));

        // The second is interrupted.
        let interrupted = || -> Result<u64, OpenError> {
            let mut records = records("two");
            records.push((4..5, Vec::new()));
            let mut taken = records.into_iter().map(|(positions, result)| {
                assert!(positions.end <= 4, "interrupted");
                (positions, result)
            });
            write_whole(&path, &identity("a"), Some(7), taken.by_ref())
        };
        std::panic::catch_unwind(interrupted).expect_err("it is interrupted");
        assert_eq!(read(&path), (records("one"), 0));
        write_whole(&path, &identity("a"), Some(7), records("three")).expect("there is room");
        assert_eq!(read(&path), (records("three"), 0));
        assert_eq!(folder.path().read_dir().expect("it is ours").count(), 1);

        let other = read_whole(&path, &identity("b"), |_, _| Ok(()));
        assert!(matches!(other, Err(OpenError::Differs { .. })));
        let nowhere = folder.path().join("nowhere").join("a.records");
        assert!(write_whole(&nowhere, &identity("a"), None, records("one")).is_err());
    }

    #[test]
    fn damage_costs_the_record_that_it_touches() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.records");
        let records = [(0..1, vec![1; 10]), (1..2, vec![2; 10])];
        write_whole(&path, &identity("a"), Some(7), records.clone()).expect("there is room");
        let mut bytes = std::fs::read(&path).expect("it is there");
        *bytes.last_mut().expect("it has some") ^= 1;
        std::fs::write(&path, bytes).expect("there is room");
        assert_eq!(read(&path), (records[..1].to_vec(), 1));
    }
}
