//! `ultramarine trace`: what a job recorded.
//!
//! | file | what |
//! |---|---|
//! | `parts` | reads what there is, whole or cut off |
//! | `totals` | adds it up |

pub(crate) mod parts;
mod totals;

use crate::error::{Error, Result};
use parts::Parts;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use totals::Totals;

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
    let named = |error: std::io::Error| {
        Error::from(format!("`{}` cannot be written: {error}", arguments.output.display()))
    };
    let mut out = BufWriter::new(File::create(&arguments.output).map_err(named)?);
    let mut bytes = 0;
    parts.each(|packets| {
        packets.for_each(drop);
        bytes += packets.read().len();
        out.write_all(packets.read()).map_err(named)
    })?;
    out.flush().map_err(named)?;
    let (count, file) = (parts.count(), arguments.output.display());
    Ok(writeln!(std::io::stdout(), "{count} parts, {bytes} bytes in {file}")?)
}

fn show(arguments: &Show) -> Result<()> {
    let mut totals = Totals::default();
    let reader = Parts::at(&arguments.trace)?.read(|reader, noted| totals.add(reader, &noted))?;
    let page = totals.page(&reader);
    let mut out = std::io::stdout();
    if arguments.json {
        let object = serde_json::to_string_pretty(&page).map_err(std::io::Error::other)?;
        return Ok(writeln!(out, "{object}")?);
    }
    Ok(write!(out, "{page}")?)
}
