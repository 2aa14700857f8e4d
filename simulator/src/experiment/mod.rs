//! Series of runs that answer a question: tables, JSON and charts come out.
//!
//! | file | what |
//! |---|---|
//! | `weak`, `strong` | Sum Euler on more and more cores, as in the papers' figures 10 to 12 |
//! | `uts`, `spawning` | trees by stealing alone: searches, queens, Fibonacci numbers |
//! | `flat` | equal tasks: no-ops, and the Liouville function |
//! | `supervision` | jobs with supervision and without |
//! | `deaths` | jobs in which PEs die, or a rack |
//! | `detector` | what the failure detector sends, and how soon it is right |
//! | `startup` | the beginning and the end of a job |
//! | `validate`, `replay` | real jobs beside simulated ones |
//! | `faults` | thousands of random jobs with random faults |
//! | `command` | their names, and what each is for |
//! | `number` | how numbers on the command line are read |
//! | `setup`, `skeleton` | what an experiment runs on, and how it spreads its tasks |
//! | `timed_fault` | what goes wrong in it, and when |
//! | `base`, `figures` | a job on a modelled machine, and what a run of it came to |
//! | `output`, `error` | how results are shown, and why there are none |
//!
//! ```
//! use clap::Parser;
//! use ultramarine_simulator::experiment::{Command, Experiment, ExperimentError};
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
mod flat;
mod number;
mod output;
mod replay;
mod setup;
mod skeleton;
mod spawning;
mod startup;
mod strong;
mod supervision;
mod timed_fault;
mod uts;
mod validate;
mod weak;

pub use base::Base;
pub use command::Command;
pub use deaths::{Deaths, DeathsRow, Rack};
pub use detector::{Detector, DetectorRow, Incident};
pub use error::ExperimentError;
pub use faults::Faults;
pub use figures::RunFigures;
pub use flat::{LiouvilleSum, Noop};
pub use output::{Each, Experiment, Output, show};
pub use replay::{ReplayError, replay};
pub use setup::Setup;
pub use skeleton::Skeleton;
pub use spawning::{FibonacciTree, QueensTree};
pub use startup::Startup;
pub use strong::{Platform, Strong, StrongRow};
pub use supervision::{Supervision, SupervisionRow};
pub use timed_fault::{TimedFault, TimedFaultError};
pub use uts::{PublishedTree, UnbalancedSearch};
pub use validate::{Validate, ValidateError};
pub use weak::Weak;

use setup::doublings;
