//! Guests: tasks from other PEs.

use crate::protocol::Parcel;

/// A *guest*: a task from another PE, still in bytes.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) parcel: Parcel,
    /// Whether it was placed here, so that no other PE may steal it.
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
