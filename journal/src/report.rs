//! What a journal holds, for its owner and for the person who looks into it.

use crate::builds::{BuildNote, BuildResults};
use crate::positions::{Added, Positions};
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
    /// The number of intact records that do not count any more, since another build has computed
    /// their items anew.
    pub records_dropped: u64,
    /// The bytes of the results that count.
    pub result_bytes: u64,
    /// The builds whose results these are, in the order in which they come.
    pub builds: Vec<BuildResults>,
    /// The build whose records come next, by the last note.
    pub(crate) build: Option<u64>,
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

    /// The number of items whose results are of other builds than this.
    pub fn items_of_others(&self, this: Option<u64>) -> u64 {
        let others = self.builds.iter().filter(|results| !is_of(results, this));
        others.map(|results| results.done.count()).sum()
    }

    /// The build that has computed the result for the item at this position, if there is one and
    /// the build is known.
    pub fn build_of(&self, position: u64) -> Option<u64> {
        self.builds.iter().find(|results| results.done.contains(position))?.build
    }

    /// Adds a record of the present build, if it is new.
    pub(crate) fn add_record(&mut self, positions: &Range<u64>, result_bytes: u64) -> Added {
        let added = self.done.add(positions.clone());
        match added {
            Added::Overlaps => {}
            Added::Known => self.records_repeated += 1,
            Added::New => {
                self.records += 1;
                self.result_bytes += result_bytes;
                let own = |results: &BuildResults| results.build == self.build;
                let index = self.builds.iter().position(own).unwrap_or_else(|| {
                    self.builds.push(BuildResults { build: self.build, ..Default::default() });
                    self.builds.len() - 1
                });
                let results = &mut self.builds[index];
                results.records += 1;
                results.result_bytes += result_bytes;
                results.done.add(positions.clone());
            }
        }
        added
    }

    /// What follows is as the note says. Returns the positions whose results do not count any more.
    pub(crate) fn add_note(&mut self, note: BuildNote) -> Vec<Range<u64>> {
        self.build = note.build;
        if note.drops_others { self.drop_others(note.build) } else { Vec::new() }
    }

    /// The results of other builds than this count no more. Returns their positions.
    pub(crate) fn drop_others(&mut self, this: Option<u64>) -> Vec<Range<u64>> {
        let builds = std::mem::take(&mut self.builds);
        let (own, others): (Vec<_>, Vec<_>) = builds.into_iter().partition(|r| is_of(r, this));
        self.builds = own;
        self.done = self.builds.first().map(|own| own.done.clone()).unwrap_or_default();
        for others in &others {
            self.records -= others.records;
            self.records_dropped += others.records;
            self.result_bytes -= others.result_bytes;
        }
        others.iter().flat_map(|others| others.done.ranges()).collect()
    }

    pub(crate) fn add_damage(&mut self, offset: u64, bytes: u64, kind: DamageKind) {
        self.damaged_places += 1;
        self.damaged_bytes += bytes;
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(Damage { offset, bytes, kind });
        }
    }
}

/// Whether results are of this build. An unknown build is not this one, whichever this is.
fn is_of(results: &BuildResults, this: Option<u64>) -> bool {
    this.is_some() && results.build == this
}
