//! Who is near whom.
#![forbid(unsafe_code)]

mod distance;
mod pe;

pub use distance::Distance;
pub use pe::Pe;
