//! Irregular task parallelism on supercomputers: write a closure, pick a pattern, and start one
//! binary with `mpiexec` or `srun`.
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
//!         let ranges = split_range(1..2_001, 40);
//!         let sums = par_map(&cx, |r| r.map(totient).sum::<u64>(), ranges).await?;
//!         println!("{}", sums.iter().sum::<u64>());
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Five things to know first
//!
//! - **Every process calls [`run`]**. The *main task* that it is given runs in one of them, on the
//!   *root*. The others run tasks that they steal or that are sent to them. A *PE* (processing
//!   element) is a scheduler with worker threads, mostly one for each process.
//! - **A task's function captures nothing**; what it needs is its argument. Arguments and results
//!   are [`Portable`]: serde can write and read them.
//! - **`.await` blocks no worker** and always ends: with the value, or with a [`TaskError`] that
//!   names the cause. `?` makes an [`Error`] of any error.
//! - **[`supervised`](Context::supervised) tasks survive the death of processes**: pass
//!   `&cx.supervised()` instead of `&cx`. Any process but the first may die; the first, too, if the
//!   main task is [started again](run_restartable) on another.
//! - **Started without a launcher** a program is one PE with all cores; `ULTRAMARINE_PES=4` makes
//!   it four PEs in one process. [`Options`] sets the same from the program, or from its flags.
//!
//! # What you look for
//!
//! | for | see |
//! |---|---|
//! | what most programs need | [`prelude`] |
//! | a pattern for many tasks | [`skeletons`]: maps, divide and conquer, search, [`JoinSet`](skeletons::JoinSet) |
//! | a single task | [`Context::spawn`], [`Context::spawn_at`]; its [`Future`] |
//! | something on each PE that others can tell things | [`group`](mod@group) |
//! | a large value for many tasks | [`map_with`](skeletons::map_with), [`Shared`] |
//! | a result that stays where it was made | [`Remote`] |
//! | large arrays inside structs | [`mod@plain`] |
//! | tasks and results in memory that outlives the processes | [`taskset`] |
//! | messages between tasks | [`Context::mailbox`], [`Context::tell`] |
//! | who has died | [`Context::deaths`] |
//! | who is near | [`Distance`], [`Topology`], [`Context::equidistant_basis`] |
//! | an end in order when the time is up | [`shutdown_requested`] |
//! | how far the work is | [`with_progress`], [`progress_display`] |
//! | why a program fails, why a task does | [`Error`], [`Failure`], [`TaskError`] |
//! | what was stolen, and from how far | [`Context::statistics`] |
//! | everything that can be set | [`Options`], [`Settings`] |
//!
//! The repository has a guide (`docs/guide`), a cookbook of complete programs (`docs/COOKBOOK.md`)
//! and a glossary (`docs/GLOSSARY.md`).
#![forbid(unsafe_code)]

mod beside;
mod cpu_budget;
mod describe;
#[cfg(doctest)]
mod doctests;
mod error;
#[cfg(feature = "mpi")]
mod faults;
pub mod latency;
mod log;
mod main_task;
#[doc(hidden)]
pub mod network;
mod options;
mod progress;
mod request;
#[cfg(test)]
mod settings_page;
mod start;
mod status;
mod stdout;
mod threads;
mod trace;
#[cfg(feature = "mpi")]
mod world;

pub use error::{Error, Failure, Result, StartError};
pub use log::log_line;
pub use options::Options;
pub use progress::{progress_display, with_progress};
pub use request::{EndRequest, shutdown_requested};
pub use trace::TraceSpans;
pub use ultramarine_environment::flags::LaneKind;
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
pub use ultramarine_runtime::trace::TraceSpan;
#[doc(inline)]
pub use ultramarine_skeletons as skeletons;
pub use ultramarine_status::server::Metrics;
#[doc(inline)]
pub use ultramarine_taskset as taskset;
pub use ultramarine_topology::file as topology_file;
pub use ultramarine_topology::{
    Ball, Distance, Label, LevelKind, Outline, OutlineKind, Pe, Place, Topology,
};

/// The allocator of programs with the feature `allocator`.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: ultramarine_runtime::Allocator = ultramarine_runtime::Allocator;

/// Which build of a program this is, for files that outlive a job.
pub mod build {
    pub use ultramarine_runtime::build::of_this_program;
}

/// Parts of a program on all PEs, which send messages to each other.
pub mod group {
    #[doc(inline)]
    pub use ultramarine_group::{Group, Handle, Outbox, Peer, group};
}

/// The environment variables that every program reads. Each of the [`Settings`] has one as well.
pub mod variables {
    #[doc(inline)]
    pub use ultramarine_environment::variables::{Scope, TABLE, Variable};
}

/// What most programs need. All else is to be named by its path, as in
/// [`ultramarine::skeletons::dag`](crate::skeletons::dag).
pub mod prelude {
    // By its module, because the module has the same name.
    pub use crate::skeletons::map::map;
    pub use crate::skeletons::{
        Algorithm, Bounded, DivideAndConquer, JoinSet, JournalError, OtherBuilds, Splitting, Tree,
        divide_and_conquer, enumerate, fork_divide_and_conquer, fork_map, map_async,
        map_async_with, map_shared, map_with, maximise, par_divide_and_conquer, par_enumerate,
        par_map, par_map_2level, par_map_2level_relaxed, par_map_local, par_map_reduce,
        par_map_reduce_range_thresh, par_map_stream, par_maximise, push_map, race, select,
        split_range,
    };
    pub use crate::{Context, Distance, Failure, Key, Pe, Remote, Shared, TaskError};
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
/// What the runtime has to say goes to standard error, panics included, unless the program has
/// installed a subscriber of `tracing` or a panic hook by then. If that cannot be written, or is
/// not read, it is lost, and the job goes on.
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

/// As [`run`], for a job that outlives its root: when the process that runs the main task dies,
/// another takes its place and starts the main task anew. Any process may be killed then, and all
/// but one in turn. Of processes whose hosts fall silent less than half may be lost at a time.
/// [`Context::attempt`] says which time this is.
///
/// ```
/// # use ultramarine::prelude::*;
/// fn main() -> ultramarine::Result<()> {
///     ultramarine::run_restartable(async |cx| {
///         let cx = cx.supervised();
///         if cx.attempt() > 1 {
///             eprintln!("{} goes on: the root has died", cx.pe());
///         }
///         let squares = par_map(&cx, |n: u64| n * n, 0..1000).await?;
///         cx.agree_to_end().await;
///         println!("{}", squares.iter().sum::<u64>());
///         Ok(())
///     })
/// }
/// ```
///
/// The main task is a function that may be called more than once, in different processes. What a
/// root has done that died stays done: what it has printed, files that it has written. What only it
/// knew is lost. So print at the end, after [`agree_to_end`](Context::agree_to_end); if the root
/// dies just after that, the result is printed again. Tasks that it has spawned are dropped; the
/// new main task spawns them again.
///
/// Who takes the place is agreed on: the PE with the smallest number of those that live, once more
/// than half of all follow it, or all that live if the others were seen to die. Of a job that is
/// cut in two, the smaller part ends.
///
/// PEs that are threads of one process die together: there, this is the same as [`run`].
///
/// # Errors
///
/// On the PE on which the main task ended: what it returned. Otherwise as for [`run`]. A main task
/// that panics or returns an error ends the job; it is not started again.
pub fn run_restartable<F, T>(main: F) -> Result<()>
where
    F: Fn(Context) -> T + Send + Sync + 'static,
    T: std::future::Future<Output = Result<()>> + Send + 'static,
{
    Options::default().run_restartable(main)
}
