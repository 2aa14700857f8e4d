//! The `ultramarine` command as its user sees it: what it starts, what it says, and how it ends.
//!
//! | file | what |
//! |---|---|
//! | `harness` | running the command, and stand-ins for programs and launchers |
//! | `dry_run` | the launchers' command lines |
//! | `refusals` | what is said about bad input |
//! | `interrupts` | signals while it asks others, and afterwards |
//! | `real` | jobs under the launcher that `MPIEXEC_FOR_TESTS` names |
//! | `doctor` | what the doctor finds, with good launchers and bad ones |
//! | `papers` | completions and manual pages |

#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod dry_run;
mod harness;
mod interrupts;
mod papers;
#[cfg(feature = "mpi")]
mod real;
mod refusals;
