//! What the examples share: the job's flags, the skeletons and splittings to choose from, random
//! numbers, and the report at the end.
#![forbid(unsafe_code)]

mod division;
mod picture;
mod random;
mod report;
mod skeleton;
mod splitting;

pub use division::{Division, Ways};
pub use picture::Picture;
pub use random::random;
pub use report::{Report, print};
pub use skeleton::Skeleton;
pub use splitting::splitting;

use ultramarine::{Context, Options, Result, with_progress};

/// The most tasks that a program can be told to make of its range: all of them are in the root's
/// memory at once.
pub const TASKS_MAX: i64 = 10_000_000;

/// Flags that every example takes.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct JobFlags {
    /// How the job is made up.
    #[command(flatten)]
    pub options: Options,
    /// Supervise the tasks: what is lost when processes die is run again.
    #[arg(long)]
    pub supervised: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub json: bool,
    /// Show how many tasks have been started, now and then.
    #[arg(long)]
    pub progress: bool,
    /// Show the hierarchy of the machine first.
    #[arg(long)]
    pub show_topology: bool,
}

impl JobFlags {
    /// Begins the main task: shows the hierarchy, and has tasks supervised, if the flags say so.
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

    /// Awaits `work`, which starts `total` tasks in all, if that is known. Shows how far it is if
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

/// What the value is called on the command line.
pub fn name_of(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
