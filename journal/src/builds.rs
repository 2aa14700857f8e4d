//! Which build of the program has computed which results. The names in the header do not say that:
//! a function that is changed keeps its name.

use crate::positions::Positions;
use serde::{Deserialize, Serialize};

/// What becomes of results in a journal that another build of the program has computed. A build
/// that is not known counts as another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OtherBuilds {
    /// They count, like those of this build.
    #[default]
    Keep,
    /// The journal is refused.
    Refuse,
    /// They count no more: they are computed anew.
    Anew,
}

/// The build that opens a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builds {
    /// A number that no other build has; `None` if it is not known.
    pub this: Option<u64>,
    /// What becomes of the results of others.
    pub others: OtherBuilds,
}

/// The results of one build in a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildResults {
    /// The number of the build. It is not known for the files of format 1, nor after a place where
    /// nothing can be read.
    pub build: Option<u64>,
    /// The positions of its items.
    pub done: Positions,
    /// The number of its records.
    pub records: u64,
    /// The bytes of its results.
    pub result_bytes: u64,
}

/// A note in the file: the records that follow it are of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuildNote {
    pub(crate) build: Option<u64>,
    /// The records before it that are of other builds count no more.
    pub(crate) drops_others: bool,
}

/// The bytes of a note.
pub(crate) const NOTE_BYTES: usize = 9;

const IS_KNOWN: u8 = 1;
const DROPS_OTHERS: u8 = 2;

impl BuildNote {
    pub(crate) fn encode(self) -> [u8; NOTE_BYTES] {
        let mut bytes = [0; NOTE_BYTES];
        bytes[0] = if self.build.is_some() { IS_KNOWN } else { 0 };
        bytes[0] |= if self.drops_others { DROPS_OTHERS } else { 0 };
        bytes[1..].copy_from_slice(&self.build.unwrap_or(0).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (flags, build) = bytes.split_first()?;
        let build = u64::from_le_bytes(*build.first_chunk()?);
        Some(BuildNote {
            build: (flags & IS_KNOWN != 0).then_some(build),
            drops_others: flags & DROPS_OTHERS != 0,
        })
    }
}
