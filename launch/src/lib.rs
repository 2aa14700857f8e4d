//! Irregular task parallelism on supercomputers.
//!
//! Write a closure, pick a skeleton, and start one binary with `mpiexec` or `srun`:
//!
//! ```
//! use ultramarine::prelude::*;
//!
//! fn totient(n: u64) -> u64 {
//!     let gcd = |mut a: u64, mut b: u64| { while b > 0 { (a, b) = (b, a % b) } a };
//!     (1..=n).filter(|k| gcd(n, *k) == 1).count() as u64
//! }
//!
//! fn main() -> ultramarine::Result<()> {
//!     ultramarine::run(async |cx| {                      // runs on the root; the other PEs serve
//!         let ranges = chunks(1..2_001, 40);
//!         let sums = par_map(&cx, |r| r.map(totient).sum::<u64>(), ranges).await?;
//!         println!("{}", sums.iter().sum::<u64>());
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Started without a launcher this is one PE with all cores; `ULTRAMARINE_PES=4` makes it four
//! PEs inside one process. [`Options`] sets the same from the program.
//!
//! - [`prelude`]: what most programs need.
//! - [`Context`]: spawning and placing single tasks; [`Future`]: awaiting them.
//! - [`Context::supervised`]: the same for tasks that survive the death of processes.
//! - [`skeletons`]: parallel patterns; [`skeletons::TaskSet`]: tasks that come and go.
//! - [`Context::mailbox`], [`Context::tell`]: messages; [`Context::deaths`]: who has died.
//! - [`Shared`]: a value that goes once to each process; [`Remote`]: one that stays where it was
//!   made.
//! - [`Portable`]: what arguments and results may be; [`mod@plain`]: large arrays within them.
//! - [`Error`]: why a program fails; [`Failure`]: why a task of it does. `?` makes them of any
//!   error.
//! - [`shutdown_requested`]: ending in order when the time is up.
//! - [`with_progress`]: showing how far the work is.
//! - [`Distance`], [`Topology`]: who is near.
#![deny(unsafe_code)]

mod allowance;
mod describe;
#[cfg(doctest)]
mod doctests;
mod error;
mod faults;
#[cfg(feature = "mpi")]
mod guard;
pub mod latency;
mod launcher;
mod log;
#[doc(hidden)]
pub mod network;
mod options;
mod progress;
mod request;
mod start;
mod threads;
#[cfg(feature = "mpi")]
mod world;

pub use error::{Error, Failure, Result, StartError};
pub use log::log_line;
pub use options::{LaneKind, Options};
pub use progress::with_progress;
pub use request::{EndRequest, shutdown_requested};
pub use ultramarine_runtime::code::Stateless;
pub use ultramarine_runtime::error::TaskError;
pub use ultramarine_runtime::executor::{
    AbortOnDrop, Context, DeathStream, Demand, Elapsed, Fork, Future, JobError, Key, Mailbox,
    Placement, Portable, Remote, Shared,
};
pub use ultramarine_runtime::plain;
pub use ultramarine_runtime::protocol::{Histogram, Statistics, Traffic, Upkeep};
pub use ultramarine_runtime::settings::{
    DetectorSettings, FishingSettings, PortSettings, Settings, SettingsError,
};
#[doc(inline)]
pub use ultramarine_skeletons as skeletons;
pub use ultramarine_topology::file as topology_file;
pub use ultramarine_topology::{
    Ball, Distance, Label, LevelKind, Outline, Pe, Place, Shape, Topology,
};

/// What most programs need.
pub mod prelude {
    pub use crate::skeletons::*;
    pub use crate::{Context, Distance, Failure, Pe, Remote, Shared, TaskError};
}

/// For the `ultramarine` command, which is of no job itself: the variable by which a launcher says
/// that it has started this process, if one has.
#[doc(hidden)]
pub fn launched_by() -> Option<&'static str> {
    #[cfg(feature = "mpi")]
    world::early_end::takes_part();
    launcher::launched(options::utf8_variable).map(|launched| launched.variable)
}

/// Runs the program's main task on the root PE of a job, while the other PEs serve. Blocks until
/// the job has ended. The environment says how the job is made up; see [`Options::from_env`].
///
/// Call it early in the program's `main`: under a launcher the process splits here in a small
/// guard, which the launcher knows, and the program proper (see [`Options::guard`]). A process that
/// has threads already is started anew for this, and does again what it did before. A process
/// started by a launcher can do this once.
///
/// The main task goes on at once when a result, a timer or a message comes for it. It runs on a
/// worker thread if one is free, or else on a thread of its own beside them, where rayon's
/// functions use rayon's global pool. So let it wait rather than compute: tasks are for that.
///
/// What the runtime has to say goes to standard error, panics included (unless the program has set
/// a panic hook by then). If that cannot be written, or is not read, it is lost, and the job goes
/// on.
///
/// # Errors
///
/// On the root: what `main` returned, or why the job could not be started or finished, or that what
/// was printed could not be written. On the other PEs: only what went wrong there.
pub fn run<F, T>(main: F) -> Result<()>
where
    F: FnOnce(Context) -> T,
    T: std::future::Future<Output = Result<()>> + Send + 'static,
{
    Options::default().run(main)
}
