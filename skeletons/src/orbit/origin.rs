//! What is kept of how a state was found.

use crate::table::TableValue;
use serde::{Deserialize, Serialize};

/// What is kept of how a state of type `S` was found. (Of several ways of the same length any may
/// be kept.)
pub trait Origin<S>: TableValue {
    /// Of the start.
    fn of_start() -> Self;

    /// Of the state that is this one's successor of this number, from 0.
    fn of(state: &S, number: u32) -> Self;
}

/// Nothing is kept.
impl<S> Origin<S> for () {
    fn of_start() -> Self {}

    fn of(_: &S, _: u32) -> Self {}
}

/// The number of the successor, of an orbit that of the generator: a Schreier vector. The start has
/// none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct By(pub Option<u32>);

impl<S> Origin<S> for By {
    fn of_start() -> Self {
        By(None)
    }

    fn of(_: &S, number: u32) -> Self {
        By(Some(number))
    }
}

/// The state before. The start has none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct From<S>(pub Option<S>);

impl<S: TableValue> Origin<S> for From<S> {
    fn of_start() -> Self {
        From(None)
    }

    fn of(state: &S, _: u32) -> Self {
        From(Some(state.clone()))
    }
}
