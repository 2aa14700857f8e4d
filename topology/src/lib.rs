//! Who is near whom.
#![forbid(unsafe_code)]

mod ball;
mod distance;
mod error;
mod hierarchy;
mod pe;
mod place;

pub use ball::Ball;
pub use distance::Distance;
pub use error::TopologyError;
pub use hierarchy::{DEPTH_LIMIT, Topology};
pub use pe::Pe;
pub use place::{Label, LevelKind, Place};
