//! A task from another PE.

use crate::protocol::Parcel;

/// A task from another PE, still in bytes.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) parcel: Parcel,
    /// Whether no other PE may take it.
    pub(crate) is_placed: bool,
}

impl Guest {
    pub(crate) fn placed(parcel: Parcel) -> Self {
        Guest { parcel, is_placed: true }
    }

    pub(crate) fn stolen(parcel: Parcel) -> Self {
        Guest { parcel, is_placed: false }
    }
}
