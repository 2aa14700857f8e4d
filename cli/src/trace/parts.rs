//! The parts of a trace.

use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use ultramarine_trace::{Noted, Packets, Reader, is_part, part_name};

/// The files of a trace.
pub(crate) struct Parts(Vec<PathBuf>);

impl Parts {
    /// The parts in a folder, or a file that was joined of them.
    ///
    /// # Errors
    ///
    /// It cannot be read, or there is none.
    pub(crate) fn at(path: &Path) -> Result<Parts> {
        let kind = fs::metadata(path).map_err(|error| cannot_be_read(path, &error))?;
        if kind.is_dir() { Parts::in_folder(path) } else { Ok(Parts(vec![path.into()])) }
    }

    /// The parts in a folder, by the PEs.
    ///
    /// # Errors
    ///
    /// It cannot be read, or there is none.
    pub(super) fn in_folder(folder: &Path) -> Result<Parts> {
        let mut files = Vec::new();
        for file in fs::read_dir(folder).map_err(|error| cannot_be_read(folder, &error))? {
            let path = file?.path();
            if is_part(&path) {
                files.push(path);
            }
        }
        if files.is_empty() {
            let folder = folder.display();
            return Err(Error::from(format!(
                "there is no part of a trace in `{folder}`: a job that is started with --trace \
                 {folder} writes one for each process, `{}` and so on",
                part_name(0)
            )));
        }
        files.sort();
        Ok(Parts(files))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Has the whole packets of each read to the end, and says which are cut off.
    ///
    /// # Errors
    ///
    /// One cannot be read, or is no trace.
    pub(super) fn each(&self, mut act: impl FnMut(&mut Packets<'_>) -> Result<()>) -> Result<()> {
        for path in &self.0 {
            let bytes = fs::read(path).map_err(|error| cannot_be_read(path, &error))?;
            let mut packets = Packets::of(&bytes);
            act(&mut packets)?;
            let (rest, name) = (packets.rest().len(), path.display());
            if packets.read().is_empty() && !bytes.is_empty() && !is_part(path) {
                return Err(Error::from(format!("`{name}` is no trace")));
            }
            if rest > 0 {
                eprintln!("`{name}` is cut off, or damaged: the last {rest} bytes are left out");
            } else if bytes.is_empty() {
                eprintln!(
                    "`{name}` is empty: its process was killed before it had written anything"
                );
            }
        }
        Ok(())
    }

    /// Has everything noted that they tell. Returns the reader, which knows the threads.
    ///
    /// # Errors
    ///
    /// One cannot be read, or is no trace.
    pub(crate) fn read(&self, mut note: impl FnMut(&Reader, Noted)) -> Result<Reader> {
        let mut reader = Reader::default();
        self.each(|packets| {
            for packet in packets {
                if let Some(noted) = reader.next(packet) {
                    note(&reader, noted);
                }
            }
            Ok(())
        })?;
        Ok(reader)
    }
}

fn cannot_be_read(path: &Path, error: &std::io::Error) -> Error {
    Error::from(format!("`{}` cannot be read: {error}", path.display()))
}
