//! Searches every state of a bulk-synchronous run: whichever PE dies, whenever it dies, and in
//! whichever order messages and work come, the outputs are those of one loop.
//!
//! All PEs are [`Machine`](ultramarine_skeletons::bsp::machine::Machine)s of the skeletons. The
//! model only adds what is around them, and not the group that they are in real jobs: that has a
//! search of its own, and what it tells a machine is little (to begin, of deaths, and where the
//! program waits), so there are far fewer states without it.
//!
//! - **Messages** between two PEs arrive in the order in which they were sent, otherwise in any
//!   order, after any time.
//! - **Work** ends in any order. A rank that is saved is so before it takes its step; others may do
//!   anything in between.
//! - **Invitations**: a PE begins at once, or at any moment ([`SuperstepsCase::are_invited`]). What
//!   comes before waits.
//! - **Deaths**: a PE dies at any moment. Each other PE hears of it at any later moment; what it
//!   has not got by then is lost.
//! - **The root** may die, too ([`SuperstepsCase::root_dies`]). On the next PE the program begins
//!   anew, some time after that PE has heard of the death, and tells the others.

mod case;
mod model;
mod mutant;
mod program;
mod properties;
mod state;

pub use case::SuperstepsCase;
pub use mutant::SuperstepsMutant;
pub use program::{Habit, Program};
pub use properties::{
    CHECKPOINTS_ARE_SAFE, COPIES_ARE_FEW, EVERY_RUN_ENDS, NO_MACHINE_PANICS, OUTPUTS_ARE_RIGHT,
    SUPERSTEPS_ARE_APART, VIEWS_ARE_APART,
};
pub use state::{Action, State};
