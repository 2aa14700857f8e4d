//! The parts of a trace.

use super::clocks::{Clocks, Comparisons};
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use ultramarine_trace::packet::TracePacket;
use ultramarine_trace::{Noted, Packets, Reader, is_part, part_name};

/// This much of a file is read at once.
const PIECE_BYTES: u64 = 4 << 20;

/// No packet is longer than this.
const PACKET_BYTES_MAX: usize = 64 << 20;

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
        match kind {
            kind if kind.is_dir() => Parts::in_folder(path),
            kind if kind.is_file() => Ok(Parts(vec![path.into()])),
            // Reading a pipe might never end.
            _ => Err(Error::from(format!("`{}` is no trace, as it is no file", path.display()))),
        }
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
            if is_part(&path) && path.is_file() {
                files.push(path);
            } else if is_part(&path) {
                eprintln!("`{}` is no file, and is left out", path.display());
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

    /// Has the packets of all read to the end, aligned, and says which parts are cut off. Returns
    /// the reader, which knows the threads, and the clocks.
    ///
    /// # Errors
    ///
    /// One cannot be read, or is no trace; or what `act` says.
    pub(super) fn each(
        &self,
        mut act: impl FnMut(&mut Reader, TracePacket) -> Result<()>,
    ) -> Result<(Reader, Clocks)> {
        let (mut reader, mut comparisons) = (Reader::default(), Comparisons::default());
        for path in &self.0 {
            each_packet(path, |packet| {
                if let Some(Noted::Compared(compared)) = reader.next(packet) {
                    comparisons.add(compared);
                }
                Ok(())
            })?;
        }
        let clocks = comparisons.clocks();
        let mut reader = Reader::default();
        for path in &self.0 {
            let (read, length) = each_packet(path, |mut packet| {
                clocks.align(reader.pe_of(&packet), &mut packet);
                act(&mut reader, packet)
            })?;
            say_what_is_missing(path, read, length)?;
        }
        Ok((reader, clocks))
    }

    /// Has everything noted that they tell. Returns the reader, which knows the threads, and the
    /// clocks.
    ///
    /// # Errors
    ///
    /// One cannot be read, or is no trace.
    pub(crate) fn read(&self, mut note: impl FnMut(&Reader, Noted)) -> Result<(Reader, Clocks)> {
        self.each(|reader, packet| {
            if let Some(noted) = reader.next(packet) {
                note(reader, noted);
            }
            Ok(())
        })
    }
}

/// Reads the whole packets of a file, a piece after the other. Returns how many bytes they are, and
/// how many there are.
fn each_packet(path: &Path, mut act: impl FnMut(TracePacket) -> Result<()>) -> Result<(u64, u64)> {
    let not_read = |error: std::io::Error| cannot_be_read(path, &error);
    let mut file = File::open(path).map_err(not_read)?;
    let length = file.metadata().map_err(not_read)?.len();
    let (mut piece, mut read) = (Vec::new(), 0);
    loop {
        let new = file.by_ref().take(PIECE_BYTES).read_to_end(&mut piece).map_err(not_read)?;
        let mut packets = Packets::of(&piece);
        packets.by_ref().try_for_each(&mut act)?;
        let whole = packets.read().len();
        piece.drain(..whole);
        read += whole as u64;
        if new == 0 || piece.len() > PACKET_BYTES_MAX {
            return Ok((read, length));
        }
    }
}

/// # Errors
///
/// It is no trace.
fn say_what_is_missing(path: &Path, read: u64, length: u64) -> Result<()> {
    let (rest, name) = (length.saturating_sub(read), path.display());
    if read == 0 && length > 0 && !is_part(path) {
        return Err(Error::from(format!("`{name}` is no trace")));
    }
    if rest > 0 {
        eprintln!("`{name}` is cut off, or damaged: the last {rest} bytes are left out");
    } else if length == 0 {
        eprintln!("`{name}` is empty: its process was killed before it had written anything");
    }
    Ok(())
}

fn cannot_be_read(path: &Path, error: &std::io::Error) -> Error {
    Error::from(format!("`{}` cannot be read: {error}", path.display()))
}

/// Refuses to write where a part would be expected.
///
/// # Errors
///
/// It has the name of one.
pub(crate) fn is_no_part(output: &Path) -> Result<()> {
    if is_part(output) {
        let file = output.display();
        return Err(Error::from(format!("`{file}` would be taken for a part: name another file")));
    }
    Ok(())
}
