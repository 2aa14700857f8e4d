//! Supervision, searched exhaustively: whichever PEs die, whenever they die, and whenever and in
//! whichever order the others hear of it, every future ends, and a supervised one with its value.
//!
//! One PE spawns some tasks and supervises them. All PEs are `Node`s of the runtime; what is
//! modelled is only what is around them:
//!
//! - **Messages** arrive in the order in which they were sent between two PEs, in any order
//!   otherwise, after any time. Between the living none is lost.
//! - **Stealing**: a FISH of anybody may arrive anywhere at any time. So nobody needs to cast one,
//!   which would only make the search longer: a real FISH can do no more.
//! - **Running** a task takes one step, at any time while it waits in the pool. A PE that takes
//!   longer for it is one whose task is not stolen in the meantime.
//! - **Deaths**: a PE may die at any moment. Who has died is heard of by each of the others at any
//!   later moment, in any order, independently of the others. With false accusations
//!   (`SupervisionCase::accused_live_on`), they may also hear of it before; the PE goes on as long
//!   as it likes, and then leaves.
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
