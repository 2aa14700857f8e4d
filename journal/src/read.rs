//! Reads the records of a journal in one pass, past all that is damaged.
//!
//! The bytes after the header are split into records, damaged places and a torn tail. At each
//! offset there is one question: is there an intact head?
//!
//! - If so, its length can be trusted. A record that ends beyond the end of the file is a torn
//!   tail. If its result does not have its checksum, this record alone is damaged.
//! - If fewer bytes are left than a head has, they are a torn tail.
//! - Else the place is damaged up to the next intact head. If there is none, it is damaged up to
//!   the end, but if all of it is zeros, it is a torn tail: file systems leave zeros where a machine
//!   has crashed before the data was on the disk.

use crate::positions::{Added, Positions};
use crate::record::{HEAD_BYTES, Head};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// The damaged places that a report lists. All are counted.
pub const DAMAGE_LISTED_MAX: usize = 100;

/// Read at once, unless a record is longer.
const WINDOW_BYTES: usize = 1 << 20;

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The positions of all items that have a result.
    pub done: Positions,
    /// The number of records that count.
    pub records: u64,
    /// The number of intact records that do not count, since their items had results before.
    pub records_repeated: u64,
    /// The bytes of the results that count.
    pub result_bytes: u64,
    /// The bytes of the file as it was found.
    pub file_bytes: u64,
    /// The bytes of the torn tail, which an opening for writing cuts off.
    pub torn_bytes: u64,
    /// The first [`DAMAGE_LISTED_MAX`] damaged places, in the order of the file.
    pub damage: Vec<Damage>,
    /// The number of damaged places.
    pub damaged_places: u64,
    /// The bytes of all damaged places.
    pub damaged_bytes: u64,
}

/// A damaged place in a journal. Its text says where it is, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong with a damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// No record can be read. Which items it was for cannot be known.
    Unreadable,
    /// The result for these items does not have its checksum.
    Result(Range<u64>),
    /// The positions are none, or are beyond the number of items.
    OutOfBounds(Range<u64>),
    /// Some of the items have a result in a former record, and others have not.
    Overlaps(Range<u64>),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at offset {}: ", self.bytes, self.offset)?;
        match &self.kind {
            DamageKind::Unreadable => f.write_str("no record can be read"),
            DamageKind::Result(items) => write!(f, "the result for the items {items:?} is damaged"),
            DamageKind::OutOfBounds(items) => write!(f, "there are no items {items:?}"),
            DamageKind::Overlaps(items) => {
                write!(f, "some of the items {items:?} have a result already, and others have not")
            }
        }
    }
}

impl Report {
    fn add_damage(&mut self, offset: u64, bytes: u64, kind: DamageKind) {
        self.damaged_places += 1;
        self.damaged_bytes += bytes;
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(Damage { offset, bytes, kind });
        }
    }
}

/// What the caller of [`open`](crate::Journal::open) says of a record that it cannot use.
pub(crate) type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    Refused { positions: Range<u64>, source: Refusal },
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

/// Reads the records from `source`, which begins after the header, up to `file_bytes`, and hands
/// each that counts to `visit`, in the order of the file.
///
/// The memory that it needs is about that of the longest record.
pub(crate) fn read(
    source: impl Read,
    (mark, items): (u64, u64),
    Range { start, end: file_bytes }: Range<u64>,
    mut visit: impl FnMut(Range<u64>, &[u8]) -> Result<(), Refusal>,
) -> Result<Report, ReadError> {
    let mut window = Window::new(source, start, file_bytes);
    let mut report = Report { file_bytes, ..Report::default() };
    loop {
        let offset = window.offset;
        let bytes = window.peek(HEAD_BYTES)?;
        if bytes.len() < HEAD_BYTES {
            report.torn_bytes = bytes.len() as u64;
            return Ok(report);
        }
        let Some(head) = Head::decode(bytes, mark, offset) else {
            let search = window.skip_to_head(mark)?;
            let bytes = window.offset - offset;
            if search == Search::OnlyZeros {
                report.torn_bytes = bytes;
                return Ok(report);
            }
            report.add_damage(offset, bytes, DamageKind::Unreadable);
            continue;
        };
        if head.result_bytes > window.left() - HEAD_BYTES as u64 {
            report.torn_bytes = window.left();
            return Ok(report);
        }
        let record_bytes = HEAD_BYTES + head.result_bytes as usize;
        let bytes = window.peek(record_bytes)?;
        let Some(result) = bytes.get(HEAD_BYTES..record_bytes) else {
            // The file has become shorter since it was opened.
            report.torn_bytes = bytes.len() as u64;
            return Ok(report);
        };
        match judge(&head, mark, items, result, &mut report.done) {
            Ok(Added::New) => {
                report.records += 1;
                report.result_bytes += head.result_bytes;
                let positions = head.positions;
                visit(positions.clone(), result)
                    .map_err(|source| ReadError::Refused { positions, source })?;
            }
            Ok(_) => report.records_repeated += 1,
            Err(kind) => report.add_damage(offset, record_bytes as u64, kind),
        }
        window.advance(record_bytes);
    }
}

/// Whether a record with an intact head counts.
fn judge(
    head: &Head,
    mark: u64,
    items: u64,
    result: &[u8],
    done: &mut Positions,
) -> Result<Added, DamageKind> {
    let positions = head.positions.clone();
    if !head.fits(mark, result) {
        return Err(DamageKind::Result(positions));
    }
    if positions.is_empty() || positions.end > items {
        return Err(DamageKind::OutOfBounds(positions));
    }
    match done.add(positions.clone()) {
        Added::Overlaps => Err(DamageKind::Overlaps(positions)),
        added => Ok(added),
    }
}

/// Part of a file in memory.
struct Window<R> {
    source: R,
    /// Where in the file the next byte is.
    offset: u64,
    file_bytes: u64,
    buffer: Vec<u8>,
    /// What of the buffer is read and not yet skipped.
    filled: Range<usize>,
}

/// How a search for the next intact head ended.
#[derive(Debug, PartialEq, Eq)]
enum Search {
    Found,
    /// There is none up to the end of the file.
    NotFound,
    /// There is none, and all that was skipped is zero.
    OnlyZeros,
}

impl<R: Read> Window<R> {
    fn new(source: R, offset: u64, file_bytes: u64) -> Self {
        Window { source, offset, file_bytes, buffer: Vec::new(), filled: 0..0 }
    }

    /// The bytes of the file that are not yet skipped.
    fn left(&self) -> u64 {
        self.file_bytes - self.offset
    }

    /// The next bytes, of which there are at least `count` but at the end of the file.
    fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.filled.len() < count {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
            self.buffer.resize(self.buffer.len().max(count).max(WINDOW_BYTES), 0);
        }
        while self.filled.len() < count {
            let wanted = self.left() - self.filled.len() as u64;
            let free = &mut self.buffer[self.filled.end..];
            let free_bytes = free.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
            match self.source.read(&mut free[..free_bytes]) {
                Ok(0) => break,
                Ok(bytes) => self.filled.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.filled.clone()])
    }

    /// Skips bytes that were seen.
    fn advance(&mut self, count: usize) {
        self.filled.start += count;
        assert!(self.filled.start <= self.filled.end, "only what was seen is skipped");
        self.offset += count as u64;
    }

    /// Skips at least one byte, and goes on to the next intact head or to the end.
    fn skip_to_head(&mut self, mark: u64) -> io::Result<Search> {
        let first = mark.to_le_bytes();
        let mut is_zero = true;
        let mut skipped = 1;
        loop {
            let offset = self.offset;
            let bytes = self.peek(HEAD_BYTES)?;
            if bytes.len() < HEAD_BYTES {
                let count = bytes.len();
                is_zero &= bytes.iter().all(|byte| *byte == 0);
                self.advance(count);
                return Ok(if is_zero { Search::OnlyZeros } else { Search::NotFound });
            }
            let places = bytes.len() - HEAD_BYTES + 1;
            let is_head = |place: &usize| {
                bytes[*place..].starts_with(&first)
                    && Head::decode(&bytes[*place..], mark, offset + *place as u64).is_some()
            };
            if let Some(place) = (skipped..places).find(is_head) {
                self.advance(place);
                return Ok(Search::Found);
            }
            is_zero = is_zero && bytes[..places].iter().all(|byte| *byte == 0);
            self.advance(places);
            skipped = 0;
        }
    }
}
