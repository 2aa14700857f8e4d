//! The frame of every program: its flags are read, a job is started, and its main task begins.

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser};
use ultramarine::{Context, Options, Result, with_progress};

/// Flags that every program accepts.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct JobFlags {
    /// The flags of the job.
    #[command(flatten)]
    options: Options,
    /// Supervise the tasks: run those again that are lost when processes die.
    #[arg(long)]
    pub(crate) supervised: bool,
    /// Start the main task anew on another PE if the root dies.
    #[arg(long)]
    restartable: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show from time to time how many tasks have been started, nodes of a graph computed, or
    /// supersteps taken.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Print the hierarchy of the PEs first.
    #[arg(long)]
    show_topology: bool,
}

// No documentation: that of the program's own flags describes it.
#[derive(Parser)]
#[command(version)]
struct CommandLine<A: Args> {
    #[command(flatten)]
    own: A,
    #[command(flatten)]
    job: JobFlags,
}

impl<A: Args> CommandLine<A> {
    fn read() -> Self {
        let mut command = Self::command().mut_args(|arg| {
            // An option refuses a negative number with those that are allowed. Otherwise it would
            // be an unknown option.
            let is_option = arg.get_action().takes_values() && !arg.is_positional();
            if is_option { arg.allow_negative_numbers(true) } else { arg }
        });
        let own = A::augment_args(clap::Command::default());
        if let Some(about) = own.get_about() {
            command = command.about(about.clone());
        }
        if let Some(about) = own.get_long_about() {
            command = command.long_about(about.clone());
        }
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// A running job, as the main task of a program sees it.
#[derive(Clone, Debug)]
pub struct Job {
    /// The context of the main task. It supervises tasks if the flags say so.
    pub cx: Context,
    pub(crate) program: &'static str,
    pub(crate) flags: JobFlags,
}

/// Reads the flags of the program of this name, and runs it as a job. Its main task gets the flags
/// of its own.
///
/// # Errors
///
/// What the main task returned, or why the job could not be started or finished.
pub fn run_program<A, F, T>(program: &'static str, main: F) -> Result<()>
where
    A: Args + Clone + Send + Sync + 'static,
    F: Fn(Job, A) -> T + Send + Sync + 'static,
    T: Future<Output = Result<()>> + Send + 'static,
{
    let CommandLine { own, job: flags } = CommandLine::<A>::read();
    let (options, is_restartable) = (flags.options.clone(), flags.restartable);
    let main = move |cx: Context| {
        let job = Job::begin(cx, program, flags.clone());
        let done = job.map(|job| main(job, own.clone()));
        async { done?.await }
    };
    if is_restartable { options.run_restartable(main) } else { options.run(main) }
}

impl Job {
    /// Prints the hierarchy and supervises tasks, if the flags say so.
    fn begin(cx: Context, program: &'static str, flags: JobFlags) -> Result<Job> {
        if flags.show_topology {
            crate::print(cx.topology())?;
        }
        let cx = if flags.supervised { cx.supervised() } else { cx };
        Ok(Job { cx, program, flags })
    }

    /// Awaits `work`, which starts `total` tasks in all, if that is known. Shows its progress if
    /// the flags say so.
    pub async fn progress<T>(
        &self,
        total: impl Into<Option<u64>>,
        work: impl Future<Output = T>,
    ) -> T {
        if self.flags.progress { with_progress(&self.cx, total, work).await } else { work.await }
    }
}
