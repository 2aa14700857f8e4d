//! What a journal holds, for its owner and for the person who looks into it.

use crate::positions::Positions;
use std::fmt;
use std::ops::Range;

/// The damaged places that a report lists. All are counted.
pub const DAMAGE_LISTED_MAX: usize = 100;

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
            DamageKind::Result(Range { start, end }) if end - start == 1 => {
                write!(f, "the result for item {start} is damaged")
            }
            DamageKind::Result(items) => write!(f, "the result for the items {items:?} is damaged"),
            DamageKind::OutOfBounds(items) => write!(f, "there are no items {items:?}"),
            DamageKind::Overlaps(items) => {
                write!(f, "some of the items {items:?} have a result already, and others have not")
            }
        }
    }
}

impl Report {
    /// Whether the items of this damaged result have another one in the same file, as they have
    /// once they are computed again.
    pub fn is_replaced(&self, damage: &Damage) -> bool {
        let DamageKind::Result(items) = &damage.kind else { return false };
        self.done.ranges().any(|done| done.start <= items.start && items.end <= done.end)
    }

    pub(crate) fn add_damage(&mut self, offset: u64, bytes: u64, kind: DamageKind) {
        self.damaged_places += 1;
        self.damaged_bytes += bytes;
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(Damage { offset, bytes, kind });
        }
    }
}
