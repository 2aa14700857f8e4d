//! Series of runs that answer a question: tables, JSON and charts come out.
//!
//! | file | what |
//! |---|---|
//! | `sum_euler` | Sum Euler on more and more cores, as in the papers' figures 10 to 12 |
//! | `trees` | trees by stealing alone: searches, queens, Fibonacci numbers |
//! | `maps` | tasks of given times, the Liouville function, the beginning and the end of a job |
//! | `supervision` | jobs with supervision and without |
//! | `deaths` | jobs in which PEs die, or a rack |
//! | `detector` | what the failure detector sends, and how soon it is right |
//! | `groups` | what all PEs do together |
//! | `supersteps` | what they do superstep by superstep |
//! | `validate`, `replay` | real jobs beside simulated ones |
//! | `faults` | thousands of random jobs with random faults |
//! | `command` | their names, and what each is for |
//! | `number` | how numbers on the command line are read |
//! | `setup` | what an experiment runs on |
//! | `timed_fault` | what goes wrong in it, and when |
//! | `base`, `figures` | a job on a modelled machine, and what a run of it came to |
//! | `output`, `error` | how results are shown, and why there are none |
//!
//! ```
//! use clap::Parser;
//! use ultramarine_simulator::experiment::{Command, ExperimentError};
//! let weak = Command::parse_from(["simulate", "weak", "--cores", "32", "--network", "ideal"]);
//! let mut table = Vec::new();
//! weak.show(&mut table)?;
//! assert!(String::from_utf8_lossy(&table).starts_with("skeleton"));
//! # Ok::<(), ExperimentError>(())
//! ```

mod base;
mod command;
mod deaths;
mod detector;
mod error;
mod faults;
mod figures;
mod groups;
mod maps;
mod number;
mod output;
mod replay;
mod setup;
mod sum_euler;
mod supersteps;
mod supervision;
mod timed_fault;
mod trees;
mod validate;

pub(crate) use base::Base;
pub use command::Command;
pub use error::ExperimentError;
pub use timed_fault::{TimedFault, TimedFaultError};

use figures::RunFigures;
use output::Experiment;
use setup::{Setup, Sweep, doublings, given_or};
