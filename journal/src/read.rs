//! Reads the records of a journal in one pass, past all that is damaged.
//!
//! The bytes after the header are split into records, damaged places and a torn tail. At each
//! offset there is one question: is there an intact head?
//!
//! - If so, its length can be trusted. A record that ends beyond the end of the file is a torn
//!   tail. If its result does not have its checksum, this record alone is damaged.
//! - If fewer bytes are left than a head has, they are a torn tail.
//! - Else the place is damaged up to the next intact head, or up to the end if there is none. But
//!   if only zeros are left, they are a torn tail: file systems leave zeros where the data was not
//!   yet on the disk when a machine crashed.

use crate::builds::BuildNote;
use crate::error::Refusal;
use crate::positions::Added;
use crate::record::{HEAD_BYTES, Head};
use crate::report::{DamageKind, Report};
use crate::window::{Search, Window};
use std::io::{self, Read};
use std::ops::Range;

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
/// each that counts to `visit`, in the order of the file. When results do not count any more, it
/// gets their positions alone.
///
/// The memory that it needs is about that of the longest record.
pub(crate) fn read(
    source: impl Read,
    (mark, items): (u64, u64),
    Range { start, end: file_bytes }: Range<u64>,
    mut visit: impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), Refusal>,
) -> Result<Report, ReadError> {
    let mut visit = |positions: Range<u64>, result: Option<&[u8]>| {
        visit(positions.clone(), result).map_err(|source| ReadError::Refused { positions, source })
    };
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
            // There may have been a note.
            report.build = None;
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
        let content = judge(&head, mark, items, result);
        if let Some(kind) = add(&mut report, &head, content, result, &mut visit)? {
            report.add_damage(offset, record_bytes as u64, kind);
        }
        window.advance(record_bytes);
    }
}

/// Adds what a record holds to the report, and hands it to `visit` if it counts. Returns how the
/// record is damaged, if it is.
fn add(
    report: &mut Report,
    head: &Head,
    content: Result<Content, DamageKind>,
    result: &[u8],
    visit: &mut impl FnMut(Range<u64>, Option<&[u8]>) -> Result<(), ReadError>,
) -> Result<Option<DamageKind>, ReadError> {
    let positions = &head.positions;
    match content {
        Ok(Content::Note(note)) => {
            let dropped = report.add_note(note);
            dropped.into_iter().try_for_each(|positions| visit(positions, None))?;
        }
        Ok(Content::Result) => match report.add_record(positions, head.result_bytes) {
            Added::New => visit(positions.clone(), Some(result))?,
            Added::Known => {}
            Added::Overlaps => return Ok(Some(DamageKind::Overlaps(positions.clone()))),
        },
        Err(kind) => {
            if head.is_note() {
                report.build = None;
            }
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// What a record holds.
enum Content {
    Result,
    Note(BuildNote),
}

/// What a record with an intact head holds.
fn judge(head: &Head, mark: u64, items: u64, result: &[u8]) -> Result<Content, DamageKind> {
    let positions = &head.positions;
    let is_whole = head.fits(mark, result);
    if head.is_note() {
        let note = if is_whole { BuildNote::decode(result) } else { None };
        return note.map(Content::Note).ok_or(DamageKind::Unreadable);
    }
    if !is_whole {
        return Err(DamageKind::Result(positions.clone()));
    }
    if positions.is_empty() || positions.end > items {
        return Err(DamageKind::OutOfBounds(positions.clone()));
    }
    Ok(Content::Result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DAMAGE_LISTED_MAX, Damage};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    const MARK: u64 = 0x1122_3344_5566_7788;
    const ITEMS: u64 = 100;
    /// Where the records begin, as if there were a header.
    const START: u64 = 1000;

    type Record = (Range<u64>, Vec<u8>);

    #[derive(Default)]
    struct File {
        bytes: Vec<u8>,
        /// Where each record ends.
        ends: Vec<usize>,
    }

    impl File {
        fn new(records: &[Record]) -> Self {
            let mut file = File::default();
            records.iter().for_each(|(positions, result)| file.append(positions.clone(), result));
            file
        }

        fn append(&mut self, positions: Range<u64>, result: &[u8]) {
            let offset = START + self.bytes.len() as u64;
            self.bytes.extend(Head::new(MARK, positions, result).encode(MARK, offset));
            self.bytes.extend(result);
            self.ends.push(self.bytes.len());
        }

        /// What is read, in small pieces.
        fn read(&self) -> (Vec<Record>, Report) {
            struct Pieces<'a>(&'a [u8]);
            impl Read for Pieces<'_> {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    let count = buffer.len().min(37);
                    self.0.read(&mut buffer[..count])
                }
            }
            let mut records = Vec::new();
            let range = START..START + self.bytes.len() as u64;
            let report = read(Pieces(&self.bytes), (MARK, ITEMS), range, |positions, result| {
                records.push((positions, result.expect("there are no notes").to_vec()));
                Ok(())
            });
            (records, report.expect("memory can be read"))
        }
    }

    /// Results of any bytes, many of them with what could be taken for a record.
    fn results() -> impl Strategy<Value = Vec<Record>> {
        let mark = Just(MARK.to_le_bytes().to_vec());
        // A copy of the head of the record itself, if that were the first one.
        let head = Just(Head::new(MARK, 0..1, b"").encode(MARK, START).to_vec());
        let piece = prop_oneof![vec(any::<u8>(), 0..60), mark, head, Just(vec![0; 20])];
        let result = vec(piece, 0..4).prop_map(|pieces| pieces.concat());
        vec(result, 1..8).prop_map(|results| {
            let item = |(index, result): (usize, Vec<u8>)| {
                (3 * index as u64..3 * index as u64 + 1 + index as u64 % 3, result)
            };
            results.into_iter().enumerate().map(item).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(records in results()) {
            let (found, report) = File::new(&records).read();
            prop_assert_eq!(report.records, records.len() as u64);
            prop_assert_eq!((report.torn_bytes, report.damaged_places), (0, 0));
            let items: u64 = records.iter().map(|(items, _)| items.end - items.start).sum();
            prop_assert_eq!(report.done.count(), items);
            prop_assert_eq!(found, records);
        }

        #[test]
        fn a_cut_leaves_the_records_before_it(records in results(), cut in any::<Index>()) {
            let mut file = File::new(&records);
            let cut = cut.index(file.bytes.len() + 1);
            file.bytes.truncate(cut);
            let (found, report) = file.read();
            let wholes = file.ends.iter().filter(|end| **end <= cut).count();
            prop_assert_eq!(&found[..], &records[..wholes]);
            let end = if wholes == 0 { 0 } else { file.ends[wholes - 1] };
            prop_assert_eq!(report.torn_bytes, (cut - end) as u64);
            prop_assert_eq!(report.damaged_places, 0);
        }

        #[test]
        fn a_wrong_byte_costs_its_record_alone(
            records in results(),
            place in any::<Index>(),
            bits in 1..=u8::MAX,
        ) {
            let mut file = File::new(&records);
            let place = place.index(file.bytes.len());
            file.bytes[place] ^= bits;
            let (found, report) = file.read();
            let hit = file.ends.iter().filter(|end| **end <= place).count();
            let mut expected = records.clone();
            expected.remove(hit);
            prop_assert_eq!(found, expected);
            let offset = START + if hit == 0 { 0 } else { file.ends[hit - 1] as u64 };
            let bytes = START + file.ends[hit] as u64 - offset;
            let in_result = (place as u64 + START - offset) >= HEAD_BYTES as u64;
            let result = DamageKind::Result(records[hit].0.clone());
            let kind = if in_result { result } else { DamageKind::Unreadable };
            prop_assert_eq!(report.damage, [Damage { offset, bytes, kind }]);
            prop_assert_eq!((report.damaged_bytes, report.torn_bytes), (bytes, 0));
        }

        #[test]
        fn whatever_is_in_a_file_no_wrong_record_is_read(
            records in results(),
            places in vec((any::<Index>(), 0..80_usize, any::<u8>()), 1..5),
        ) {
            let mut file = File::new(&records);
            for (place, length, byte) in places {
                let place = place.index(file.bytes.len());
                let end = file.bytes.len().min(place + length);
                file.bytes[place..end].fill(byte);
            }
            let (found, _) = file.read();
            prop_assert!(found.iter().all(|record| records.contains(record)));
        }
    }

    #[test]
    fn the_first_result_for_an_item_counts() {
        let first = (0..4, b"a".to_vec());
        let file = File::new(&[first.clone(), (0..4, b"b".to_vec()), (1..2, b"c".to_vec())]);
        let (found, report) = file.read();
        assert_eq!((found, report.records_repeated), (vec![first], 2));
        assert_eq!(report.damaged_places, 0);
    }

    #[test]
    fn positions_that_cannot_be_are_damage() {
        let record = |positions| (positions, b"a".to_vec());
        let file = File::new(&[record(3..6), record(5..7), record(7..7), record(99..101)]);
        let (found, report) = file.read();
        assert_eq!(found, [record(3..6)]);
        let texts: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "49 bytes at offset 1049: some of the items 5..7 have a result already, and others \
                 have not",
                "49 bytes at offset 1098: there are no items 7..7",
                "49 bytes at offset 1147: there are no items 99..101",
            ]
        );
    }

    #[test]
    fn zeros_at_the_end_are_torn_and_other_bytes_are_damage() {
        let mut file = File::new(&[(0..1, b"a".to_vec())]);
        file.bytes.extend([0; 5000]);
        let (found, report) = file.read();
        assert_eq!((found.len(), report.torn_bytes, report.damaged_places), (1, 5000, 0));
        file.bytes.extend([1; 100]);
        let (found, report) = file.read();
        assert_eq!((found.len(), report.torn_bytes, report.damaged_bytes), (1, 0, 5100));
        file.bytes.extend([0; 100]);
        let (found, report) = file.read();
        assert_eq!((found.len(), report.torn_bytes, report.damaged_bytes), (1, 0, 5200));
        file.append(1..2, b"b");
        let (found, report) = file.read();
        assert_eq!((found.len(), report.damage[0].kind.clone()), (2, DamageKind::Unreadable));
        assert_eq!(
            report.damage[0].to_string(),
            "5200 bytes at offset 1049: no record can be read"
        );
    }

    /// Of a long record only the head was written before a crash.
    #[test]
    fn a_record_that_ends_beyond_the_file_is_torn_and_needs_no_memory() {
        let mut file = File::new(&[(0..1, b"a".to_vec())]);
        let mut head = Head::new(MARK, 1..2, b"");
        head.result_bytes = 1 << 60;
        file.bytes.extend([&head.encode(MARK, START + 49)[..], &[7; 10]].concat());
        let (found, report) = file.read();
        assert_eq!((found.len(), report.torn_bytes, report.damaged_places), (1, 58, 0));
    }

    /// Each of the 300,000 marks begins what could be a record of 3 MB.
    #[test]
    fn a_file_full_of_marks_is_read_in_linear_time() {
        let mut head = Head::new(MARK, 0..1, &[]);
        head.result_bytes = 3_000_000;
        let mut file = File { bytes: b"damaged".to_vec(), ends: Vec::new() };
        let part = &head.encode(MARK, START)[..40];
        file.bytes.extend(part.repeat(75_000));
        file.bytes.extend(MARK.to_le_bytes().repeat(300_000));
        file.append(0..1, b"a");
        let (found, report) = ultramarine_testkit::bounded(move || file.read());
        assert_eq!((found.len(), report.damaged_places), (1, 1));
    }

    #[test]
    fn only_the_first_damaged_places_are_listed() {
        let mut file = File::default();
        (0..300).for_each(|_| file.append(0..ITEMS + 1, b""));
        let (_, report) = file.read();
        assert_eq!((report.damage.len(), report.damaged_places), (DAMAGE_LISTED_MAX, 300));
    }

    /// A disk that cannot be read.
    struct Failing(u32);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            let kind = [io::ErrorKind::Interrupted, io::ErrorKind::TimedOut][self.0 as usize / 2];
            Err(kind.into())
        }
    }

    #[test]
    fn a_disk_that_cannot_be_read_is_an_error_and_an_interruption_is_none() {
        let failed = read(Failing(0), (MARK, ITEMS), START..START + 100, |_, _| Ok(()));
        let Err(ReadError::Io(error)) = failed else { panic!("{failed:?}") };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
