//! `ultramarine trace`: what a job recorded.
//!
//! | file | what |
//! |---|---|
//! | `parts` | reads what there is, whole or cut off |
//! | `clocks` | brings the clocks of all PEs to that of one |
//! | `totals` | adds it up |

pub(crate) mod clocks;
pub(crate) mod parts;
mod totals;

use crate::error::Result;
use crate::output::write_whole;
use parts::Parts;
use std::io::Write as _;
use std::path::PathBuf;
use totals::Totals;
use ultramarine_trace::append;

/// Join or read the trace that a job has recorded (`--trace FOLDER`).
///
/// Each process of a job writes a part of its own. That of a process that was killed holds what had
/// ended some 0.1 s before.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Merge(Merge),
    Show(Show),
}

/// Join the parts of a trace into one file, which <https://ui.perfetto.dev> opens.
#[derive(clap::Args)]
pub(crate) struct Merge {
    /// The folder that the job was told to record in.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Say what is in a trace: how long each function ran, and what each PE did.
#[derive(clap::Args)]
pub(crate) struct Show {
    /// The folder that the job was told to record in, or a file that was joined of it.
    #[arg(value_name = "FOLDER|FILE")]
    trace: PathBuf,
    /// Print a JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Merge(arguments) => merge(arguments),
        Command::Show(arguments) => show(arguments),
    }
}

fn merge(arguments: &Merge) -> Result<()> {
    parts::is_no_part(&arguments.output)?;
    let parts = Parts::in_folder(&arguments.folder)?;
    let (mut bytes, mut piece) = (0, Vec::new());
    let (reader, clocks) = write_whole(&arguments.output, |out| {
        parts.each(|reader, packet| {
            piece.clear();
            append(&packet, &mut piece);
            bytes += piece.len();
            // It tells of which PE the next ones are.
            reader.next(packet);
            Ok(out.write_all(&piece)?)
        })
    })?;
    let (count, file) = (parts.count(), arguments.output.display());
    let said = clocks.said(&reader).map_or_else(String::new, |said| format!("; {said}"));
    Ok(writeln!(std::io::stdout(), "{count} parts, {bytes} bytes in {file}{said}")?)
}

fn show(arguments: &Show) -> Result<()> {
    let mut totals = Totals::default();
    let parts = Parts::at(&arguments.trace)?;
    let (reader, _) = parts.read(|reader, noted| totals.add(reader, &noted))?;
    let page = totals.page(&reader);
    let mut out = std::io::stdout();
    if arguments.json {
        let object = serde_json::to_string_pretty(&page).map_err(std::io::Error::other)?;
        return Ok(writeln!(out, "{object}")?);
    }
    Ok(write!(out, "{page}")?)
}
