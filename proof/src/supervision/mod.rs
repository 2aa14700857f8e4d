//! Searches every state of supervision: whichever PEs die, whenever they die, and whenever and in
//! whichever order the other PEs hear of it, every future ends, and a supervised one with its
//! value.
//!
//! One PE spawns some tasks and supervises them. All PEs are `Node`s of the runtime. The model only
//! adds what is around them:
//!
//! - **Messages** between two PEs arrive in the order in which they were sent, otherwise in any
//!   order, after any time. Between living PEs none is lost.
//! - **Stealing**: a FISH of any PE may arrive at any PE at any time. That is more than a real FISH
//!   can do, so no PE needs to cast one, which would only make the search longer.
//! - **Running** a task takes one step, at any time while it waits in the pool. That covers a PE
//!   that takes longer: its task is not stolen meanwhile.
//! - **Deaths**: a PE may die at any moment. Each other PE hears of the death at any later moment,
//!   in any order. With false accusations (`SupervisionCase::accused_live_on`) it may also hear of
//!   the death before; the accused PE goes on for any time, and then leaves.
//!
//! The search ends because everything is bounded: the number of [deaths](SupervisionCase::deaths),
//! and the number of [steps](SupervisionCase::hops) that copies make between PEs other than their
//! home.

mod case;
mod host;
mod model;
mod properties;
mod state;

pub use case::{SupervisionCase, Task};
pub use model::Action;
pub use properties::NO_FUTURE_STAYS_EMPTY;
pub use state::State;
