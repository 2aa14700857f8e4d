//! What the examples share: the job's flags, the skeletons to choose from, the progress display, and
//! the report at the end.
#![forbid(unsafe_code)]

mod progress;
mod report;
mod skeleton;

pub use progress::with_progress;
pub use report::Report;
pub use skeleton::Skeleton;

use ultramarine::Options;

/// Flags that every example takes.
#[derive(Clone, Debug, clap::Args)]
pub struct JobFlags {
    /// How the job is made up.
    #[command(flatten)]
    pub options: Options,
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
