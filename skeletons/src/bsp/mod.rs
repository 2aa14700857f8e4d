//! Bulk-synchronous programs that survive deaths (Kromonov, NEWT, ch. 3 and 4).
//!
//! | question | file |
//! |---|---|
//! | What is a program? | `program` |
//! | How do ranks speak to each other? | `comm`, [`op`] |
//! | How is a program run? | `run` |
//! | What does a PE do in a run, and after a death? | `machine` |
//! | What are states, messages and values to a machine? | `kind` |
//! | How is that done in a job? | `part`, `work` |
//! | When is a checkpoint due? | `pace` |
//! | What is on the disk, and who writes and reads it? | `folder`, `disk` |

mod comm;
mod disk;
mod error;
mod folder;
mod kind;
#[doc(hidden)]
pub mod machine;
pub mod op;
mod pace;
mod part;
mod program;
mod run;
mod work;

pub use comm::Comm;
pub use error::BspError;
pub use program::{Next, Program, Start, own_range};
pub use run::{Bsp, Progress, bsp, files_in};
pub use ultramarine_journal::OtherBuilds;
