//! Complete [programs], and what they share: flags, choices of a skeleton and a splitting, random
//! numbers, pictures, and the report at the end.
//!
//! All of this is compiled once. The binary of a program only calls its `main`.
#![forbid(unsafe_code)]

mod assignment;
mod divide_skeleton;
mod graph;
mod input;
mod journal;
mod map_skeleton;
#[cfg(feature = "all")]
mod picture;
pub mod programs;
mod random;
mod recording;
mod report;
mod splitting;
mod whole_file;

pub use assignment::AssignmentChoice;
pub use divide_skeleton::{DivideSkeleton, Solvers};
pub use graph::{GraphFlags, GraphRun};
pub use input::read_text;
pub use journal::JournalFlags;
pub use map_skeleton::MapSkeleton;
#[cfg(feature = "all")]
pub use picture::Picture;
pub use random::random;
pub use recording::{MapFlags, MapRun};
pub use report::{Report, print};
pub use splitting::splitting;

use ultramarine::{Context, Options, Result, with_progress};

/// The largest number of tasks that a program accepts: all of them are in the root's memory at
/// once.
pub const TASKS_MAX: i64 = 10_000_000;

/// Flags that every example accepts.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct JobFlags {
    /// The flags of the job.
    #[command(flatten)]
    pub options: Options,
    /// Supervise the tasks: run those again that are lost when processes die.
    #[arg(long)]
    pub supervised: bool,
    /// Start the main task anew on another PE if the root dies.
    #[arg(long)]
    pub restartable: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub json: bool,
    /// Show from time to time how many tasks have been started, or nodes of a graph computed.
    #[arg(long)]
    pub progress: bool,
    /// Print the hierarchy of the PEs first.
    #[arg(long)]
    pub show_topology: bool,
}

impl JobFlags {
    /// Runs the job, whose main task gets these arguments.
    ///
    /// # Errors
    ///
    /// What the main task returned, or why the job could not be started or finished.
    pub fn run<A, F, T>(self, arguments: A, main: F) -> Result<()>
    where
        A: Clone + Send + Sync + 'static,
        F: Fn(Context, A) -> T + Send + Sync + 'static,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        if self.restartable {
            self.options.run_restartable(move |cx| main(cx, arguments.clone()))
        } else {
            self.options.run(move |cx| main(cx, arguments))
        }
    }

    /// Begins the main task: prints the hierarchy and supervises tasks, if the flags say so.
    ///
    /// # Errors
    ///
    /// The hierarchy cannot be printed.
    pub fn begin(&self, cx: Context) -> Result<Context> {
        if self.show_topology {
            print(cx.topology())?;
        }
        Ok(if self.supervised { cx.supervised() } else { cx })
    }

    /// Awaits `work`, which starts `total` tasks in all, if that is known. Shows its progress if
    /// the flags say so.
    pub async fn progress<T>(
        &self,
        cx: &Context,
        total: impl Into<Option<u64>>,
        work: impl Future<Output = T>,
    ) -> T {
        if self.progress { with_progress(cx, total, work).await } else { work.await }
    }
}

/// The name of a value on the command line.
pub fn name_of(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
