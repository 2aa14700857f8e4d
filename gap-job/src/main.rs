//! What the command `ultramarine gap` starts under MPI: a job that computes for the GAP in front of
//! it. The command itself is linked with no MPI; this program is built once for each, and is found
//! beside the command.
//!
//! ```text
//!   ultramarine gap ─┬─ GAP, with the terminal ─── requests ──→ root's main task ┈→ tasks ┈→ GAPs
//!                    │                        ←──  replies ───    of this job       on all PEs
//!                    └─ launcher ── processes of this job
//! ```
//!
//! `gap/pkg/ultramarine/lib/link.g` says what goes through the pipes. GAP asks for one operation
//! after the other; the end of its requests is the end of the job.
//!
//! | question | module |
//! |---|---|
//! | How do requests and replies get there? | `pipes` |
//! | What does a request ask for? | `request` |
//! | Which skeleton computes it? | `operation` |
//! | How does a task call GAP? | `kernel` |
//! | How is a problem divided? | `divide` |
//! | How do results outlive the job? | `journal` |
//!
//! It must never know what is computed.
#![forbid(unsafe_code)]

mod divide;
mod journal;
mod kernel;
mod operation;
mod pipes;
mod request;

use self::journal::Kept;
use self::kernel::GapFlags;
use self::operation::Job;
use clap::Parser;
use futures_util::future::{Either, select};
use std::path::{Path, PathBuf};
use std::pin::pin;
use ultramarine::{Context, Options, Result};
use ultramarine_gap::Value;

/// Called by the command `ultramarine gap`.
#[derive(Clone, Parser)]
#[command(version)]
struct Flags {
    /// The folder with the pipes `requests` and `replies`. It is removed once GAP has opened them.
    #[arg(long)]
    folder: PathBuf,
    /// Supervise all tasks, also without the option `supervised`.
    #[arg(long)]
    supervised: bool,
    /// Show the progress of all operations, also without the option `progress`.
    #[arg(long)]
    progress: bool,
    #[command(flatten)]
    gap: GapFlags,
    #[command(flatten)]
    journal: JournalFlags,
    #[command(flatten)]
    options: Options,
}

/// Where results are kept.
#[derive(Clone, clap::Args)]
struct JournalFlags {
    /// Keep the results in this file.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// End the call if the journal cannot be written, instead of a warning.
    #[arg(long, requires = "journal")]
    journal_required: bool,
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    kernel::set_flags(flags.gap);
    // Its workers wait for GAPs, which compute: that is no cause for a warning.
    let options = flags.options.clone().set("blocked_after", "86400s");
    let ended = options.run(move |cx| serve(cx, flags.clone()));
    kernel::end_idle();
    ended
}

/// Carries out requests until they end.
async fn serve(cx: Context, flags: Flags) -> Result<()> {
    let JournalFlags { journal, journal_required } = flags.journal;
    let journal = journal.map(|file| Kept::open(&file, journal_required)).transpose()?;
    let (requests, mut replies) = pipes::open(&flags.folder)?;
    let mut job = Job::new(cx.clone(), flags.supervised, flags.progress, journal);
    let mut is_first = true;
    while let Some((number, request)) = requests.next().await {
        if is_first {
            // GAP has opened both pipes, and has read its package.
            replies.gap_is_there()?;
            remove(&flags.folder);
            is_first = false;
        }
        let result = {
            let carried_out = pin!(job.carry_out(number, request));
            let interrupted = pin!(requests.is_there());
            match select(carried_out, interrupted).await {
                Either::Left((result, _)) => result,
                // Another request, or the end: this one is cancelled as its future is dropped.
                Either::Right(((), _)) => {
                    kernel::cancel(&cx, number);
                    continue;
                }
            }
        };
        replies.send(number, result);
    }
    remove(&flags.folder);
    job.finish()
}

/// The command removes it as well, unless it is killed.
fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}

/// The result of an operation, or what GAP's error says.
type Answer<T = Value> = std::result::Result<T, String>;
